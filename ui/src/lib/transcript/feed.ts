// The loaded part of one session's transcript: an unbroken run of entries. It ends with the newest, but after a jump to a
// far place, until one comes back to the end.
//
// Entries are never changed in place: a row redraws when its entry is another object. No clock, no screen.
import type { DeltaStream, Entry, TranscriptEvent, TranscriptPage, TurnChanges } from "../wire";

/** Entries kept when the far end is dropped; it can be loaded again. */
export const KEPT = 4000;

export type Applied =
  | { kind: "reset" }
  | { kind: "tail"; /** How many entries are new. */ added: number; /** The lowest index that changed. */ from: number }
  | { kind: "none" };

export class Feed {
  entries: Entry[] = [];
  /** Ask for entries before this ordinal; `null`: the beginning is loaded. */
  before: number | null = null;
  /** How many entries there are in all. */
  total = 0;
  loaded = false;
  /** After a jump: the run ends here, and news wait until the end is loaded again. */
  after: number | null = null;
  /** What the turns of these entries changed. */
  changes = new Map<string, TurnChanges>();
  /** Turns whose changes are unfolded. */
  unfolded = new Set<string>();

  apply(events: readonly TranscriptEvent[]): Applied {
    let result: Applied = { kind: "none" };
    let from = Infinity;
    let added = 0;
    for (const event of events) {
      if (event.type === "page") {
        this.reset(event.page);
        result = { kind: "reset" };
        from = Infinity;
        added = 0;
      } else if (event.type === "changes") {
        this.changes.set(event.changes.turn, event.changes);
        from = Math.min(from, Math.max(0, this.entries.length - 1));
      } else if (this.after !== null) {
        if (event.type === "upsert") this.total = Math.max(this.total, event.entry.ordinal);
      } else if (event.type === "upsert") {
        const [at, fresh] = this.upsert(event.entry);
        from = Math.min(from, at);
        if (fresh) added++;
      } else {
        from = Math.min(from, this.grow(event.id, event.stream, event.text));
      }
    }
    if (result.kind === "none" && from !== Infinity) return { kind: "tail", added, from };
    return result;
  }

  private reset(page: TranscriptPage): void {
    this.entries = [...page.entries];
    this.before = page.before;
    this.total = Math.max(page.total, page.entries.length);
    this.loaded = true;
    this.after = null;
    this.know(page);
  }

  private know(page: TranscriptPage): void {
    for (const changes of page.changes) this.changes.set(changes.turn, changes);
  }

  /** Shows a far part instead; true where that is not the end. */
  jump(page: TranscriptPage): boolean {
    this.reset(page);
    const last = page.entries.at(-1)?.ordinal ?? 0;
    if (last < this.total) this.after = last;
    return this.after !== null;
  }

  /** Puts the next part behind a far one; false once the end is reached and must be followed again. */
  append(page: TranscriptPage): boolean {
    const last = this.entries.at(-1)?.ordinal ?? 0;
    const newer = page.entries.filter((e) => e.ordinal > last);
    this.total = Math.max(this.total, page.total);
    const end = newer.at(-1)?.ordinal ?? last;
    if (newer.length === 0 || newer[0]!.ordinal !== last + 1 || end >= this.total) return false;
    this.entries = [...this.entries, ...newer];
    this.after = end;
    this.know(page);
    return true;
  }

  /** Where the entry with this ordinal stands, if it is loaded. */
  index(ordinal: number): number | null {
    const at = this.position(ordinal);
    return this.entries[at]?.ordinal === ordinal ? at : null;
  }

  /** Puts an older page in front; returns how many entries that added. */
  prepend(page: TranscriptPage): number {
    const first = this.entries[0]?.ordinal ?? Infinity;
    const older = page.entries.filter((e) => e.ordinal < first);
    this.entries = [...older, ...this.entries];
    this.before = page.before;
    this.total = Math.max(this.total, page.total);
    this.know(page);
    return older.length;
  }

  /** Forgets the far beginning; returns how many entries went. */
  trim(): number {
    const gone = this.entries.length - KEPT;
    if (gone < KEPT / 4) return 0;
    this.entries = this.entries.slice(gone);
    this.before = this.entries[0]!.ordinal;
    return gone;
  }

  /** The index of the first entry whose ordinal is not below. */
  private position(ordinal: number): number {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.entries[mid]!.ordinal < ordinal) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  private upsert(entry: Entry): [at: number, fresh: boolean] {
    const at = this.position(entry.ordinal);
    if (this.entries[at]?.id === entry.id) {
      this.entries[at] = entry;
      return [at, false];
    }
    const elsewhere = this.find(entry.id);
    if (elsewhere >= 0) {
      this.entries[elsewhere] = { ...entry, ordinal: this.entries[elsewhere]!.ordinal };
      return [elsewhere, false];
    }
    // Older than what is loaded: it comes with its page.
    if (at === 0 && this.before !== null && this.entries.length > 0) return [Infinity, false];
    this.entries.splice(at, 0, entry);
    this.total++;
    return [at, true];
  }

  /** Changes happen near the end, so that is where to look first. */
  private find(id: string): number {
    for (let i = this.entries.length - 1; i >= 0; i--) if (this.entries[i]!.id === id) return i;
    return -1;
  }

  private grow(id: string, stream: DeltaStream, text: string): number {
    const at = this.find(id);
    const entry = this.entries[at];
    if (!entry) return Infinity;
    const body = entry.body;
    const field = FIELD[stream];
    if (!(field in body)) return Infinity;
    const grown = (body as unknown as Record<string, string>)[field] + text;
    this.entries[at] = { ...entry, body: { ...body, [field]: grown } as Entry["body"] };
    return at;
  }
}

const FIELD: Record<DeltaStream, string> = {
  agentMessage: "text", reasoningSummary: "summary", reasoning: "text", commandOutput: "output", plan: "text",
};
