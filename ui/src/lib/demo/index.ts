// A scripted shell for the browser and the tests: no agent, no file, no network.
import { app } from "../app.svelte";
import { use, type Transport } from "../shell";
import type { Answer, Entry, Session, Snapshot, TranscriptEvent, WindowEvent } from "../wire";
import { HOME, NOW, commands, longEntry, runtimes, session as makeSession, sessionSettings, threads, transcriptOf, turnDiff } from "./data";
import { holds } from "../transcript/rows";
import { scene } from "./scenes";

export class DemoShell implements Transport {
  calls: [command: string, args: Record<string, unknown>][] = [];
  refuse: Record<string, string> = {};
  private listener: ((events: WindowEvent[]) => void) | null = null;
  private transcripts = new Map<string, Entry[]>();
  private next = 1000;

  constructor(public snapshot: Snapshot, public long: string | null = null, public live = false) {}

  async watch(onEvents: (events: WindowEvent[]) => void): Promise<void> {
    this.listener = onEvents;
    this.emit();
  }

  emit(...more: WindowEvent[]): void {
    this.snapshot = { ...this.snapshot, seq: this.snapshot.seq + 1 };
    this.listener?.([{ type: "snapshot", snapshot: this.snapshot }, ...more]);
  }

  transcript(session: string, ...events: TranscriptEvent[]): void {
    this.listener?.([{ type: "transcript", session, events }]);
  }

  change(id: string, part: Partial<Session>): void {
    this.snapshot = { ...this.snapshot, sessions: this.snapshot.sessions.map((s) => (s.id === id ? { ...s, ...part } : s)) };
    this.emit();
  }

  private entries(id: string): Entry[] {
    const known = this.transcripts.get(id);
    if (known) return known;
    const made = transcriptOf(id);
    this.transcripts.set(id, made);
    return made;
  }

  private page(session: string, before: number | null, limit: number) {
    if (session === this.long) {
      const end = before ?? 100_000;
      const start = Math.max(0, end - limit);
      return { session, entries: Array.from({ length: end - start }, (_, i) => longEntry(start + i)), before: start > 0 ? start : null, total: 100_000, changes: [] };
    }
    const all = this.entries(session);
    const changed = all.find((entry) => entry.body.type === "fileChange");
    return { session, entries: all, before: null, total: all.length, changes: changed ? [{ turn: changed.turn, files: 2, added: 5, removed: 1 }] : [] };
  }

  async invoke(command: string, args: Record<string, unknown>): Promise<unknown> {
    this.calls.push([command, args]);
    if (this.refuse[command]) throw { code: "other", message: this.refuse[command] };
    const id = args.session as string;
    const found = this.snapshot.sessions.find((s) => s.id === id);
    switch (command) {
      case "open_session":
        this.transcript(id, { type: "page", page: this.page(id, null, 200) });
        return null;
      
      case "find_entries": {
        const wanted = (args.text as string).toLocaleLowerCase();
        const all = id === this.long ? [] : this.entries(id).filter((e) => holds(e, wanted)).map((e) => e.ordinal).reverse();
        return { ordinals: id === this.long ? [90_000, 50_000, 7] : all, before: null, total: all.length };
      }
      case "session_commands": return commands;
      case "fork_session": return found ? this.invoke("create_session", { ...found, title: args.title }) : null;
      case "turn_changes": return turnDiff;
      case "runtimes": return runtimes;
      case "provider_threads": return args.cursor === null ? { threads: threads.slice(0, 2), nextCursor: "more" } : { threads: threads.slice(2), nextCursor: null };
      case "cancel_quit": this.snapshot = { ...this.snapshot, quit: null }; this.emit(); return null;
      case "transcript_page": return this.page(id, args.before as number | null, args.limit as number);
      case "try_demo":
        return this.invoke("create_session", { title: args.title, folder: `${HOME}/.local/share/turnkeep/demo`, provider: "demo" });
      case "create_session": {
        const made = String(this.next++);
        this.snapshot = { ...this.snapshot, sessions: [...this.snapshot.sessions, makeSession({ id: made, title: (args.title as string) || "New session", provider: args.provider as string, folder: args.folder as string, activeAt: Date.now(), settings: sessionSettings })] };
        this.transcripts.set(made, []);
        this.emit();
        return made;
      }
      case "send":
        if (!found) return null;
        if (found.turn) this.change(id, { queue: [...found.queue, { id: args.message as string, text: args.text as string, at: Date.now(), delivery: "queued" }] });
        else this.begin(found, args.text as string);
        return null;
      case "steer":
        if (found?.turn) {
          const entry: Entry = { ordinal: this.entries(id).length + 1, id: args.message as string, turn: found.turn.id, completed: true, at: Date.now(), body: { type: "userMessage", text: args.text as string } };
          this.entries(id).push(entry);
          this.transcript(id, { type: "upsert", entry });
        }
        return null;
      case "edit_queued": if (found) this.change(id, { queue: found.queue.map((m) => (m.id === args.message ? { ...m, text: args.text as string } : m)) }); return null;
      case "remove_queued": if (found) this.change(id, { queue: found.queue.filter((m) => m.id !== args.message) }); return null;
      case "interrupt": if (found) this.change(id, { turn: null, group: "idle", status: { type: "idle" }, lastTurn: found.turn && { id: found.turn.id, outcome: "interrupted", failure: null, startedAt: found.turn.startedAt, endedAt: Date.now() } }); return null;
      case "answer": this.answered(args.approval as string, args.answer as Answer); return null;
      case "rename_session": this.change(id, { title: args.title as string }); return null;
      case "archive_session": this.change(id, { archived: args.archived as boolean }); return null;
      case "configure_session": this.change(id, { settings: args.settings as Session["settings"] }); return null;
      case "set_goal": this.change(id, { goal: args.goal as Session["goal"] }); return null;
      case "mark_read": if (found) this.change(id, { unread: false, group: found.group === "finished" ? "idle" : found.group }); return null;
      case "change_settings": this.snapshot = { ...this.snapshot, settings: args.settings as Snapshot["settings"] }; this.emit(); return null;
      case "own_agents": return [];
      case "sign_in": return this.signIn(args);
      case "cancel_sign_in": this.snapshot = { ...this.snapshot, signIns: this.snapshot.signIns.filter((s) => s.id !== args.signIn) }; this.emit(); return null;
      case "open_link": {
        const url = new URL(args.url as string);
        return { host: url.hostname, opened: args.confirmed === true };
      }
      case "pick_folder": return "/home/maria/src/billing";
      case "check_folder": return (args.path as string).startsWith("/") ? null : "Choose a folder by its whole path.";
      case "quit": this.snapshot = { ...this.snapshot, quit: { since: Date.now(), forced: args.force as boolean, waitingFor: this.snapshot.sessions.filter((s) => s.turn).map((s) => s.id), deadline: null } }; this.emit(); return null;
      case "unlock_keychain": this.snapshot = { ...this.snapshot, keychain: { type: "unlocked" } }; this.emit(); return null;
      case "diagnostics": return { version: "0.1.0", data: "/home/maria/.local/share/turnkeep", logs: "/home/maria/.local/state/turnkeep/logs" };
      default: return null;
    }
  }

  private signIn(args: Record<string, unknown>): string {
    const id = `s${this.next++}`;
    const method = args.method as Snapshot["signIns"][number]["method"];
    this.snapshot = {
      ...this.snapshot,
      signIns: [...this.snapshot.signIns, {
        id, provider: args.provider as string, account: (args.account as string | null) ?? "new", method, failure: null,
        url: method === "apiKey" ? null : method === "browser" ? "https://auth.example.com/authorize?client=turnkeep" : "https://auth.example.com/device",
        code: method === "deviceCode" ? "KQ4T-9WDN" : null,
      }],
    };
    this.emit();
    return id;
  }

  private answered(approval: string, answer: Answer): void {
    const found = this.snapshot.approvals.find((a) => a.id === approval);
    this.snapshot = { ...this.snapshot, approvals: this.snapshot.approvals.filter((a) => a.id !== approval) };
    if (!found) return;
    const denied = answer.type === "choice" && answer.kind.startsWith("deny");
    this.change(found.session, { group: "running", status: { type: "running" }, preview: denied ? "Looking for another way" : "Running it" });
    if (this.live && found.body.type === "command") void this.stream(found.session);
  }

  private begin(session: Session, text: string): void {
    const turn = `t${this.next++}`;
    const entry: Entry = { ordinal: this.entries(session.id).length + 1, id: `u${turn}`, turn, completed: true, at: Date.now(), body: { type: "userMessage", text } };
    this.entries(session.id).push(entry);
    this.transcript(session.id, { type: "upsert", entry });
    this.change(session.id, { group: "running", status: { type: "running" }, activeAt: Date.now(), turn: { id: turn, startedAt: Date.now(), dispatched: true, retrying: null, interrupting: false, text, steers: [], quiet: null } });
    if (this.live) void this.stream(session.id);
  }

  /** Streams a reply word by word, then ends the turn. */
  private async stream(id: string): Promise<void> {
    const turn = this.snapshot.sessions.find((s) => s.id === id)?.turn;
    if (!turn) return;
    const all = this.entries(id);
    const say: Entry = { ordinal: all.length + 1, id: `r${this.next++}`, turn: turn.id, completed: false, at: Date.now(), body: { type: "agentMessage", text: "", finalAnswer: true } };
    all.push(say);
    this.transcript(id, { type: "upsert", entry: say });
    const text = "I looked at it.\n\n- the first place is **fine**\n- the second needs a `round()`\n\n```ts\nreturn sum(perLine);\n```\n\nNothing else calls it, so the change is small and safe.";
    for (const word of text.split(/(?<=\s)/)) {
      await new Promise((done) => setTimeout(done, 40));
      this.transcript(id, { type: "delta", id: say.id, stream: "agentMessage", text: word });
    }
    const done: Entry = { ...say, completed: true, body: { type: "agentMessage", text, finalAnswer: true } };
    all[all.indexOf(say)] = done;
    this.transcript(id, { type: "upsert", entry: done });
    this.change(id, { group: "finished", status: { type: "idle" }, unread: true, preview: "The change is small and safe.", turn: null, lastTurn: { id: turn.id, outcome: "completed", failure: null, startedAt: turn.startedAt, endedAt: Date.now() } });
  }
}

/** Begins a scene by name; "main" when there is none. `name/session` opens a session. */
export function play(hash: string): DemoShell {
  const [name = "main", open] = hash.split("/");
  const { snapshot, long } = scene(name === "" ? "main" : name);
  // The scenes have their own time of day.
  const shift = NOW - Date.now();
  const real = Date.now.bind(Date);
  Date.now = () => real() + shift;
  const shell = new DemoShell(snapshot, long, true);
  use(shell);
  if (open === "settings") app.view = { type: "settings", page: hash.split("/")[2] ?? "accounts" };
  else if (open) queueMicrotask(() => app.open(open));
  return shell;
}
