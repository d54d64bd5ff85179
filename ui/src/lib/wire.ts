// Generated from crates/view/src/dto.rs by its tests (UPDATE_WIRE=1 cargo test -p turnkeep-view). Do not edit.

export type Snapshot = { seq: number, now: number, version: string, home: string, providers: Array<Provider>, keychain: Keychain, signIns: Array<SignIn>, sessions: Array<Session>, 
/**
 * Those of turns that have not ended, oldest first. Answered ones stay until then, so that everyone learns the answer.
 */
approvals: Array<Approval>, settings: Settings, quit: Quit | null, 
/**
 * What the last start found, to be told once.
 */
recovery: Recovery | null, 
/**
 * The supervisor cannot go on (disk full, database broken): what happened and what to do.
 */
fatal: string | null, };

export type Quit = { since: number, forced: boolean, waitingFor: Array<string>, 
/**
 * Unix milliseconds after which running turns are interrupted.
 */
deadline: number | null, };

export type Recovery = { at: number, lines: Array<string>, };

export type Provider = { id: string, name: string, installed: Installed, current: string | null, accounts: Array<Account>, models: Array<Model>, signIn: Array<SignInMethod>, 
/**
 * Ways to sign in that its agent told of.
 */
offers: Array<SignInOffer>, 
/**
 * Commands that install it, to be copied.
 */
install: Array<string>, 
/**
 * It is part of the application: there is nothing to install, and nobody to sign in.
 */
builtIn: boolean, 
/**
 * There is an account to speak of: not of what is built in, until it asks for a sign-in.
 */
needsAccount: boolean, 
/**
 * A command that starts a server which can be used as an account, to be copied; none where there is no such thing.
 */
serve: string | null, canSteer: boolean, hasGoals: boolean, 
/**
 * Its own threads can be listed and gone on with.
 */
hasThreads: boolean, 
/**
 * Its sessions tell of commands that a message may begin with (session_commands).
 */
hasCommands: boolean, 
/**
 * Turns that finish on an account that is no longer the current one.
 */
finishingTurns: number, };

export type Installed = { "type": "unknown" } | { "type": "found", path: string, version: string | null, } | { "type": "missing", searched: Array<string>, };

export type Account = { id: string, label: string, 
/**
 * E-mail address, or "API key ending 7Q2F".
 */
identity: string | null, plan: string | null, kind: AccountKind, 
/**
 * For a server that somebody else started.
 */
server: Server | null, current: boolean, state: AccountState, limits: Array<RateLimit>, verifiedAt: number | null, 
/**
 * It was signed in at some time.
 */
known: boolean, 
/**
 * Why no further process is started for it until somebody asks for one; the account itself may be well.
 */
givenUp: Failure | null, 
/**
 * Turns that still run on it though it is not the current one, or is signed out.
 */
finishingTurns: number, 
/**
 * Its last credential is still to be revoked.
 */
revocationOwed: boolean, };

export type AccountKind = "apiKey" | "privateHome" | "system" | "server";

export type Server = { address: string, connected: boolean, 
/**
 * As the server said while it was connected.
 */
version: string | null, };

export type AccountState = { "type": "signedIn" } | { "type": "signedOut" } | { "type": "signingIn" } | { "type": "rejected", failure: Failure, } | { "type": "itemMissing" } | { "type": "keychainLocked" } | { "type": "keychainAbsent" } | { "type": "troubled", failure: Failure, };

export type Keychain = { "type": "unknown" } | { "type": "unlocked" } | { "type": "locked" } | { "type": "absent", why: string, };

export type SignInMethod = "browser" | "deviceCode" | "apiKey" | "advertised" | "elsewhere";

export type SignInOffer = { id: string, name: string, description: string, 
/**
 * A key must be typed.
 */
needsKey: boolean, 
/**
 * To be run by the person in a terminal, where the agent cannot do it itself.
 */
command: string | null, };

export type SignIn = { id: string, provider: string, account: string, method: SignInMethod, url: string | null, code: string | null, failure: Failure | null, };

export type Model = { id: string, name: string, description: string, efforts: Array<string>, defaultEffort: string | null, isDefault: boolean, };

export type RateLimit = { windowMinutes: number | null, usedPercent: number, 
/**
 * Unix milliseconds.
 */
resetsAt: number | null, };

export type Failure = { 
/**
 * A code only where a screen acts on it: "signedOut", "usageLimit", "transportClosed", … else "other".
 */
code: string, message: string, detail: string | null, };

export type OfferedCommand = { name: string, description: string, 
/**
 * What may follow the name.
 */
hint: string, };

export type Group = "needsYou" | "running" | "finished" | "idle";

export type Session = { id: string, provider: string, title: string, folder: string, group: Group, status: SessionStatus, 
/**
 * The account of the running turn, else the one that the next turn goes to.
 */
account: string | null, 
/**
 * The running turn is on an account that is no longer the current one.
 */
onOldAccount: boolean, preview: string, unread: boolean, 
/**
 * What came before was seen.
 */
seenAt: number, 
/**
 * What its thread held before is being read.
 */
readingHistory: boolean, archived: boolean, 
/**
 * A session can be made that goes on from where this one is.
 */
canFork: boolean, activeAt: number, turn: Turn | null, lastTurn: EndedTurn | null, queue: Array<QueuedMessage>, 
/**
 * Messages of which nobody can say whether they arrived: a person must decide (resolve_unknown).
 */
undecided: Array<QueuedMessage>, 
/**
 * Why queued messages wait, in words; `None` when nothing waits.
 */
waitsFor: string | null, goal: Goal | null, plan: Array<PlanStep>, usage: Usage, settings: SessionSettings, failure: Failure | null, };

export type SessionStatus = { "type": "idle" } | { "type": "starting" } | { "type": "running" } | { "type": "needsApproval", count: number, } | { "type": "outcomeUnknown" } | { "type": "failed" } | { "type": "signedOut" } | { "type": "keychainLocked" };

export type Turn = { id: string, startedAt: number, dispatched: boolean, retrying: string | null, interrupting: boolean, text: string, steers: Array<QueuedMessage>, quiet: Quiet | null, };

export type Quiet = { 
/**
 * Unix milliseconds of the last word.
 */
since: number, 
/**
 * The command that runs meanwhile.
 */
command: string | null, };

export type EndedTurn = { id: string, outcome: Outcome, failure: Failure | null, startedAt: number, endedAt: number, };

export type Outcome = "completed" | "interrupted" | "failed" | "lost" | "unknown";

export type QueuedMessage = { id: string, text: string, at: number, delivery: Delivery, };

export type Delivery = "queued" | "sending" | "admitted" | "notAdmitted" | "unknown";

export type Goal = { objective: string, status: GoalStatus, tokenBudget: number | null, };

export type GoalStatus = "active" | "paused" | "blocked" | "limited" | "done";

export type PlanStep = { text: string, status: PlanStepStatus, };

export type PlanStepStatus = "pending" | "running" | "done";

export type Usage = { totalTokens: number, inputTokens: number, cachedInputTokens: number, outputTokens: number, reasoningTokens: number, contextTokens: number, contextWindow: number | null, };

export type SessionSettings = { model: string | null, effort: string | null, approvalMode: ApprovalMode | null, sandbox: Sandbox | null, };

export type ApprovalMode = "always" | "onRequest" | "never";

export type Sandbox = "readOnly" | "writeFolder" | "full";

export type Approval = { id: string, session: string, turn: string, body: Ask, reason: string | null, choices: Array<Choice>, item: string | null, state: ApprovalState, askedAt: number, };

export type ApprovalState = { "type": "pending" } | { "type": "answered", choice: ChoiceKind | null, by: Asker, at: number, } | { "type": "moot" };

export type Asker = "window" | "tray" | "notification" | "cli" | "api";

export type Ask = { "type": "command", command: string, display: string, cwd: string, mayRunUnsandboxed: boolean, } | { "type": "fileChange", changes: Array<FileChange>, grantRoot: string | null, } | { "type": "permissions", network: boolean, read: Array<string>, write: Array<string>, } | { "type": "questions", questions: Array<Question>, } | { "type": "form", server: string, message: string, schema: string | null, };

export type Question = { id: string, header: string, text: string, options: Array<QuestionOption>, freeText: boolean, secret: boolean, };

export type QuestionOption = { label: string, description: string, };

export type ChoiceKind = "allow" | "allowForSession" | "allowAlways" | "deny" | "denyAndStop";

export type Choice = { kind: ChoiceKind, 
/**
 * For `allowAlways`: the words that a later command must begin with.
 */
rule: Array<string>, };

export type Answer = { "type": "choice", kind: ChoiceKind, } | { "type": "answers", answers: { [key in string]: Array<string> }, } | { "type": "form", json: string, };

export type TranscriptPage = { session: string, entries: Array<Entry>, 
/**
 * Ask for entries before this ordinal; `None` at the beginning.
 */
before: number | null, 
/**
 * How many entries there are in all.
 */
total: number, 
/**
 * What the turns of these entries changed, if anything.
 */
changes: Array<TurnChanges>, };

export type TurnChanges = { turn: string, files: number, added: number, removed: number, };

export type TurnDiff = { files: Array<FileChange>, 
/**
 * Bytes that were left off at the end.
 */
dropped: number, };

export type Matches = { ordinals: Array<number>, 
/**
 * Ask for those before this one; `None` when that was all.
 */
before: number | null, total: number, };

export type RuntimeState = "starting" | "ready" | "retiring" | "stopped" | "failed";

export type Runtime = { id: string, provider: string, account: string, 
/**
 * The account's name; of one that was removed, nothing.
 */
accountLabel: string, 
/**
 * The sessions that it holds, or the one that it served alone.
 */
sessions: Array<string>, state: RuntimeState, pid: number | null, version: string | null, startedAt: number, endedAt: number | null, 
/**
 * Number of the sign-in under which it was started.
 */
epoch: number, 
/**
 * That sign-in is not the current one any more.
 */
old: boolean, failure: Failure | null, 
/**
 * The last lines of its standard error, oldest first.
 */
lastLines: Array<string>, };

export type ThreadPage = { threads: Array<Thread>, nextCursor: string | null, };

export type Thread = { thread: string, 
/**
 * Its name, else how it began.
 */
title: string, preview: string, folder: string, updatedAt: number, 
/**
 * The session that it is here already.
 */
session: string | null, };

export type Entry = { 
/**
 * Position in the session, growing.
 */
ordinal: number, id: string, turn: string, completed: boolean, at: number, body: EntryBody, };

export type EntryBody = { "type": "userMessage", text: string, } | { "type": "agentMessage", text: string, finalAnswer: boolean, } | { "type": "reasoning", summary: string, text: string, } | { "type": "command", command: string, cwd: string, output: string, exitCode: number | null, durationMs: number | null, status: ItemStatus, } | { "type": "fileChange", changes: Array<FileChange>, status: ItemStatus, } | { "type": "tool", server: string, name: string, arguments: string, result: string, status: ItemStatus, } | { "type": "webSearch", query: string, } | { "type": "plan", text: string, } | { "type": "compaction" } | { "type": "notice", text: string, } | { "type": "error", failure: Failure, } | { "type": "other", kind: string, text: string, };

export type ItemStatus = "running" | "completed" | "failed" | "declined" | "abandoned";

export type FileChange = { path: string, kind: FileChangeKind, movedTo: string | null, diff: string, };

export type FileChangeKind = "added" | "deleted" | "updated";

export type DeltaStream = "agentMessage" | "reasoningSummary" | "reasoning" | "commandOutput" | "plan";

export type TranscriptEvent = { "type": "page", page: TranscriptPage, } | { "type": "upsert", entry: Entry, } | { "type": "changes", changes: TurnChanges, } | { "type": "delta", id: string, stream: DeltaStream, text: string, };

export type WindowEvent = { "type": "snapshot", snapshot: Snapshot, } | { "type": "transcript", session: string, events: Array<TranscriptEvent>, } | { "type": "show", view: View, };

export type View = { "type": "sessions" } | { "type": "session", session: string, } | { "type": "settings", page: string, } | { "type": "signIn", provider: string, };

export type Settings = { notifyCompleted: boolean, notifyApprovals: boolean, notifyFailures: boolean, notifySignOuts: boolean, muted: boolean, mutedUntil: number | null, 
/**
 * Minutes after midnight: from, to.
 */
quietHours: [number, number] | null, scheme: Scheme, textSize: number, 
/**
 * Seconds.
 */
quitDeadline: number | null, 
/**
 * Minutes without a word after which a running turn counts as quiet; 0: never.
 */
quietAfter: number, 
/**
 * Minutes without work after which a process is stopped; 0: never.
 */
idleAfter: number, onboarded: boolean, };

export type Scheme = "system" | "light" | "dark";

export type CommandError = { code: string, message: string, };
