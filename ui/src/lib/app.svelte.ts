// What the window shows: the last snapshot, the open session, and what is only the window's own (view, dialogs, drafts).
//
// It decides nothing that outlives the window; every act is a command to the shell.
import * as shell from "./shell";
import { Feed, type Applied } from "./transcript/feed";
import type { Account, Approval, CommandError, Provider, Session, Snapshot, View, WindowEvent } from "./wire";
import { words } from "./words";

export type SettingsPage = keyof typeof words.settings.pages;

export type Dialog =
  | { kind: "newSession" }
  | { kind: "signIn"; provider: string; account: string | null }
  | { kind: "server"; provider: string }
  | { kind: "signOut"; account: string }
  | { kind: "renameAccount"; account: string }
  | { kind: "removeAccount"; account: string }
  | { kind: "renameSession"; session: string }
  | { kind: "goal"; session: string }
  | { kind: "process"; session: string }
  | { kind: "link"; url: string; host: string }
  | { kind: "quit" }
  | { kind: "quitNow" };

export type Place = "list" | "transcript" | "composer" | "accounts";

const PAGE = 200;

class App {
  snapshot = $state.raw<Snapshot | null>(null);
  view = $state.raw<View>({ type: "sessions" });
  /** The session that was opened last. */
  private last: string | null = null;
  dialog = $state.raw<Dialog | null>(null);
  /** The last refused command that no form shows itself. */
  problem = $state.raw<CommandError | null>(null);
  /** The shell could not be reached at all. */
  lost = $state(false);
  now = $state(Date.now());
  /** Recovery was put aside in this window. */
  recoverySeen = $state(false);
  /** Approvals answered here whose end the snapshot does not tell yet. */
  answering = $state.raw<ReadonlySet<string>>(new Set());

  /** There is room for both sides of a change next to each other. */
  wide = $state(false);
  /** The last thing that was seen of the open session before it was opened, where something was unread. */
  unreadFrom = $state<number | null>(null);

  /** The open session's transcript; `revision` tells that it changed. */
  feed = new Feed();
  revision = $state(0);
  /** How the transcript view learns what changed, without comparing entries. */
  onFeed: ((applied: Applied) => void) | null = null;

  /** Where the focus is asked to go; the place takes it and clears this. */
  wants = $state<Place | null>(null);

  readonly sessions = $derived(this.snapshot?.sessions ?? []);
  readonly opened = $derived(this.view.type === "session" ? this.view.session : null);
  readonly session = $derived(this.sessions.find((s) => s.id === this.opened) ?? null);
  readonly needs = $derived(this.sessions.filter((s) => s.group === "needsYou" && !s.archived).length);
  readonly running = $derived(this.sessions.filter((s) => s.group === "running" && !s.archived).length);

  async start(): Promise<void> {
    try {
      await shell.watch((events) => this.receive(events));
      this.lost = false;
    } catch (reason) {
      this.lost = true;
      this.problem = shell.refusal(reason);
    }
  }

  receive(events: WindowEvent[]): void {
    for (const event of events) {
      if (event.type === "snapshot") this.take(event.snapshot);
      else if (event.type === "show") this.show(event.view);
      else if (event.session === this.opened) {
        const applied = this.feed.apply(event.events);
        if (applied.kind === "none") continue;
        this.onFeed?.(applied);
        this.revision++;
      }
    }
  }

  private take(snapshot: Snapshot): void {
    this.snapshot = snapshot;
    this.now = Date.now();
    const pending = new Set(snapshot.approvals.filter((a) => a.state.type === "pending").map((a) => a.id));
    const still = [...this.answering].filter((id) => pending.has(id));
    if (still.length !== this.answering.size) this.answering = new Set(still);
  }

  /** Goes where something outside the window points to. */
  show(view: View): void {
    if (view.type === "session") this.open(view.session);
    else if (view.type === "signIn") {
      this.go({ type: "settings", page: "accounts" });
      this.dialog = { kind: "signIn", provider: view.provider, account: null };
    } else this.go(view);
  }

  go(view: View): void {
    if (this.opened !== null && (view.type !== "session" || view.session !== this.opened)) {
      void this.run(shell.seen(this.opened));
      this.feed = new Feed();
      this.revision++;
      if (view.type !== "session") void this.run(shell.closeSession());
    }
    this.view = view;
    this.problem = null;
  }

  /** From the settings to where one came from. */
  back(): void {
    const session = this.snapshot?.sessions.find((s) => s.id === this.last);
    if (session) this.open(session.id, "composer");
    else {
      this.go({ type: "sessions" });
      this.wants = "list";
    }
  }

  open(session: string, then: Place | null = null): void {
    this.last = session;
    if (this.opened !== session) {
      const unread = this.sessions.find((s) => s.id === session);
      this.go({ type: "session", session });
      this.unreadFrom = unread?.unread ? unread.seenAt : null;
      void this.run(shell.openSession(session));
    }
    this.wants = then;
  }

  /** Loads the page before the loaded part; returns how many entries came. */
  async older(): Promise<number> {
    const { feed, opened } = this;
    if (opened === null || feed.before === null) return 0;
    const page = await this.run(shell.transcriptPage(opened, feed.before, PAGE));
    if (page === undefined || feed !== this.feed) return 0;
    return feed.prepend(page);
  }

  /** Loads what follows a far part; true when the end was reached and is followed again. */
  async newer(): Promise<boolean> {
    const { feed, opened } = this;
    if (opened === null || feed.after === null) return false;
    const page = await this.run(shell.transcriptPage(opened, feed.after + PAGE + 1, PAGE));
    if (page === undefined || feed !== this.feed || feed.append(page)) return false;
    await this.run(shell.openSession(opened));
    return true;
  }

  /** Loads the part around an entry; the transcript begins anew with it. */
  async jump(ordinal: number): Promise<boolean> {
    const { feed, opened } = this;
    if (opened === null) return false;
    const page = await this.run(shell.transcriptPage(opened, ordinal + PAGE / 2, PAGE));
    if (page === undefined || feed !== this.feed) return false;
    const far = feed.jump(page);
    // The end is followed again by opening it: what came meanwhile is not known here.
    if (!far) await this.run(shell.openSession(opened));
    return true;
  }

  /** Back to the end from a far part. */
  async toEnd(): Promise<void> {
    if (this.opened !== null && this.feed.after !== null) await this.run(shell.openSession(this.opened));
  }

  /** Awaits a command; a refusal becomes the pane's banner, and the result undefined. */
  async run<T>(command: Promise<T>): Promise<T | undefined> {
    try {
      return await command;
    } catch (reason) {
      this.problem = shell.refusal(reason);
      return undefined;
    }
  }

  /** Makes a session and opens it, in place of the form that asked for it; what was refused comes back, for that form. */
  async begin(made: Promise<string>, close: () => void): Promise<string | null> {
    try {
      const id = await made;
      close();
      this.open(id, "composer");
      return null;
    } catch (reason) {
      return shell.refusal(reason).message;
    }
  }

  async askLink(url: string): Promise<void> {
    const answer = await this.run(shell.openLink(url, false));
    if (answer && !answer.opened) this.dialog = { kind: "link", url, host: answer.host };
  }

  async answer(approval: Approval, given: Parameters<typeof shell.answer>[1]): Promise<void> {
    const pending = this.snapshot?.approvals.some((a) => a.id === approval.id && a.state.type === "pending");
    if (!pending || this.answering.has(approval.id)) return;
    this.answering = new Set([...this.answering, approval.id]);
    try {
      await shell.answer(approval.id, given);
    } catch (reason) {
      this.problem = shell.refusal(reason);
      this.answering = new Set([...this.answering].filter((id) => id !== approval.id));
    }
  }

  provider(id: string): Provider | null {
    return this.snapshot?.providers.find((p) => p.id === id) ?? null;
  }

  providerName(id: string): string {
    return this.provider(id)?.name ?? id;
  }

  /** Whether a session's agent has accounts to speak of. */
  needsAccount(session: Session): boolean {
    return this.provider(session.provider)?.needsAccount !== false;
  }

  /** Which agent a session is of, and on which account where it needs one. */
  whose(session: Session, old = false): string {
    const name = this.providerName(session.provider);
    return this.needsAccount(session) ? words.list.chip(name, this.account(session.account)?.label ?? words.list.noAccount, old) : name;
  }

  /** Whether a new message of this provider's sessions would wait for a sign-in. */
  signedOut(id: string): boolean {
    const provider = this.provider(id);
    if (provider?.installed.type !== "found") return false;
    const current = this.account(provider.current);
    return current === null || ["signedOut", "itemMissing", "rejected"].includes(current.state.type);
  }

  account(id: string | null): Account | null {
    if (id === null) return null;
    for (const provider of this.snapshot?.providers ?? []) {
      const found = provider.accounts.find((a) => a.id === id);
      if (found) return found;
    }
    return null;
  }

  owner(account: string): Provider | null {
    return this.snapshot?.providers.find((p) => p.accounts.some((a) => a.id === account)) ?? null;
  }

  /** Pending approvals of a session, oldest first. */
  approvals(session: Session): Approval[] {
    return (this.snapshot?.approvals ?? []).filter((a) => a.session === session.id);
  }
}

export const app = new App();
