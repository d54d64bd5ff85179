// Made-up sessions and accounts for the demo and the tests.
import type {
  Account, Approval, Entry, EntryBody, OfferedCommand, Provider, Runtime, Session, SessionSettings, Settings, Snapshot, Thread, TurnDiff, Usage,
} from "../wire";

/** Half past nine on a working day, in the local time zone. */
export const NOW = new Date(2026, 10, 18, 9, 37, 8).getTime();
const S = 1000;
const MIN = 60 * S;
const DAY = 24 * 60 * MIN;
export const HOME = "/home/maria";

export const settings: Settings = {
  notifyCompleted: true, notifyApprovals: true, notifyFailures: true, notifySignOuts: true, muted: false, mutedUntil: null, quietHours: null,
  scheme: "system", textSize: 100, quitDeadline: null, quietAfter: 10, idleAfter: 15, onboarded: true,
};

const usage: Usage = {
  totalTokens: 214_000, inputTokens: 180_000, cachedInputTokens: 120_000, outputTokens: 34_000, reasoningTokens: 12_000,
  contextTokens: 97_280, contextWindow: 256_000,
};

export const sessionSettings: SessionSettings = { model: "gpt-5-codex", effort: "high", approvalMode: "onRequest", sandbox: "writeFolder" };

export const account = (part: Partial<Account> & { id: string; label: string }): Account => ({
  identity: null, plan: null, kind: "privateHome", server: null, current: false, state: { type: "signedIn" }, limits: [], verifiedAt: NOW - MIN, known: true, givenUp: null,
  finishingTurns: 0, revocationOwed: false, ...part,
});

export const provider = (part: Partial<Provider> & { id: string; name: string }): Provider => ({
  installed: { type: "found", path: `${HOME}/.local/bin/${part.id}`, version: "0.58.0" }, current: null, accounts: [], models: [],
  signIn: ["browser", "deviceCode", "apiKey"], install: [], builtIn: false, needsAccount: true, serve: null, offers: [], canSteer: true, hasGoals: true, hasThreads: false, hasCommands: true, finishingTurns: 0, ...part,
});

export const models = [
  { id: "gpt-5-codex", name: "gpt-5-codex", description: "For coding in a folder", efforts: ["low", "medium", "high"], defaultEffort: "medium", isDefault: true },
  { id: "gpt-5", name: "gpt-5", description: "For everything else", efforts: ["minimal", "low", "medium", "high"], defaultEffort: "medium", isDefault: false },
];

export const providers = (): Provider[] => [
  provider({
    id: "codex", name: "Codex", current: "1", models, finishingTurns: 1, hasThreads: true,
    accounts: [
      account({
        id: "1", label: "work", identity: "maria@northwind.dev", plan: "Team", current: true,
        limits: [
          { windowMinutes: 300, usedPercent: 62, resetsAt: NOW + 183 * MIN },
          { windowMinutes: 10080, usedPercent: 86, resetsAt: NOW + DAY - 37 * MIN },
        ],
      }),
      account({ id: "2", label: "private", identity: "m.keller@posteo.example", plan: "Plus", finishingTurns: 1 }),
      account({ id: "3", label: "ci key", identity: "API key ending 7Q2F", kind: "apiKey", state: { type: "signedOut" } }),
    ],
  }),
  provider({
    id: "claude", name: "Claude Code", current: "4", signIn: ["browser"], installed: { type: "found", path: `${HOME}/.local/bin/claude`, version: "2.1.9" },
    accounts: [account({
      id: "4", label: "maria", identity: "maria@northwind.dev", plan: "Max", current: true, kind: "system",
      limits: [{ windowMinutes: 300, usedPercent: 18, resetsAt: NOW + 218 * MIN }, { windowMinutes: 10080, usedPercent: 41, resetsAt: NOW + 5 * DAY }],
    })],
  }),
  provider({
    id: "opencode", name: "OpenCode", current: "5", signIn: ["apiKey"], installed: { type: "found", path: `${HOME}/.local/bin/opencode`, version: "1.0.98" },
    accounts: [
      account({ id: "5", label: "Anthropic", identity: "API key ending M41K", kind: "apiKey", current: true, state: { type: "keychainLocked" } }),
      account({ id: "6", label: "OpenRouter", identity: "API key ending 09XD", kind: "apiKey", state: { type: "rejected", failure: { code: "other", message: "The provider answered 401 at 09:20", detail: null } } }),
      account({ id: "7", label: "spare", identity: "API key ending 11AA", kind: "apiKey", state: { type: "itemMissing" } }),
    ],
  }),
];

export const commands: OfferedCommand[] = [
  { name: "review", description: "Look at the changes in this folder", hint: "what to look for" },
  { name: "plan", description: "Make a plan before anything is changed", hint: "" },
  { name: "compact", description: "Shorten what was said so far", hint: "" },
];

export const session = (part: Partial<Session> & { id: string; title: string }): Session => ({
  provider: "codex", folder: `${HOME}/src/billing`, group: "idle", status: { type: "idle" }, account: "1", onOldAccount: false, preview: "",
  unread: false, seenAt: 0, readingHistory: false, archived: false, canFork: false, activeAt: NOW - DAY, turn: null, lastTurn: null, queue: [], waitsFor: null, undecided: [], goal: null, plan: [], usage,
  settings: sessionSettings, failure: null, ...part,
});

const turn = (id: string, startedAt: number, text: string) => ({ id, startedAt, dispatched: true, retrying: null, interrupting: false, text, steers: [], quiet: null });

export const command = (id: string, session: string, askedAt: number, text: string, cwd: string): Approval => ({
  id, session, turn: `t${session}`, body: { type: "command", command: text, display: text, cwd, mayRunUnsandboxed: true }, reason: null,
  choices: [{ kind: "allow", rule: [] }, { kind: "allowForSession", rule: [] }, { kind: "deny", rule: [] }], item: null, state: { type: "pending" }, askedAt,
});

export const COMMAND = "pnpm test:db --reset --url postgres://localhost:5433/billing_test";

export function snapshot(): Snapshot {
  return {
    seq: 1, now: NOW, version: "0.1.0", home: HOME, providers: providers(), keychain: { type: "unlocked" }, signIns: [], settings, quit: null,
    recovery: null, fatal: null,
    approvals: [
      {
        ...command("a1", "1", NOW - 6 * MIN, "", ""),
        body: { type: "questions", questions: [{ id: "q", header: "Bucket", text: "Keep the old bucket until Friday?", options: [{ label: "Yes, keep it", description: "" }, { label: "No, delete it now", description: "" }], freeText: false, secret: false }] },
        choices: [],
      },
      command("a2", "2", NOW - 41 * S, COMMAND, `${HOME}/src/billing`),
    ],
    sessions: [
      session({ id: "1", title: "Migrate the CI cache", provider: "claude", account: "4", folder: `${HOME}/src/infra`, group: "needsYou", status: { type: "needsApproval", count: 1 }, activeAt: NOW - 6 * MIN, turn: turn("t1", NOW - 20 * MIN, "Move the cache") }),
      session({
        id: "2", title: "Round invoice totals per tax line", group: "needsYou", status: { type: "needsApproval", count: 1 }, activeAt: NOW - 41 * S,
        turn: turn("t2", NOW - 68 * S, "Totals are off by a cent on mixed-rate invoices. Round per tax line and prove it."),
        plan: [
          { text: "Find every place that rounds", status: "done" }, { text: "Round per tax line in total.ts", status: "done" },
          { text: "Run the database tests", status: "running" }, { text: "Add the mixed-rate case", status: "pending" },
        ],
      }),
      session({ id: "3", title: "Port the parser to nom 8", provider: "opencode", account: "5", folder: `${HOME}/src/lexi`, group: "running", status: { type: "running" }, preview: "cargo test -p lexi-core: 212 of 540", activeAt: NOW, turn: turn("t3", NOW - 12 * MIN, "Port it") }),
      session({
        id: "4", title: "Write the 2.4 release notes", account: "2", onOldAccount: true, folder: `${HOME}/src/turnkeep`, group: "running", status: { type: "running" }, preview: "Reading 48 merged pull requests", activeAt: NOW,
        turn: turn("t4", NOW - 188 * S, "Draft the notes for 2.4 from what was merged since 2.3. Plain words, no marketing."),
        queue: [{ id: "m1", text: "Then open a pull request with the notes.", at: NOW - MIN, delivery: "queued" }],
        waitsFor: "the running turn", settings: { ...sessionSettings, effort: "medium" }, usage: { ...usage, contextTokens: 181_760 },
      }),
      session({
        id: "5", title: "Find the flaky login test", folder: `${HOME}/src/portal`, group: "finished", unread: true, activeAt: NOW - 25 * MIN,
        lastTurn: { id: "t5", outcome: "failed", startedAt: NOW - 31 * MIN, endedAt: NOW - 25 * MIN, failure: { code: "transportClosed", message: "Codex stopped before the turn was complete: it exited with code 101.", detail: "pid 48213\nstdout closed\nthread 'main' panicked at core/src/session.rs:812" } },
      }),
      session({ id: "6", title: "Add dark map tiles", provider: "claude", account: "4", folder: `${HOME}/src/atlas`, group: "finished", unread: true, preview: "All 14 checks pass. Two files changed.", activeAt: NOW - 40 * MIN, lastTurn: { id: "t6", outcome: "completed", startedAt: NOW - 58 * MIN, endedAt: NOW - 40 * MIN, failure: null } }),
      session({ id: "7", title: "Spike: read receipts", provider: "opencode", account: "5", folder: `${HOME}/src/portal`, activeAt: NOW - DAY }),
      ...["Examples for the API pages", "Tidy the import order", "Explain the retry rules", "Rename Basket to Cart", "Move fonts to the CDN", "Check the licence headers", "Upgrade to Node 22", "Cache the price list", "Faster thumbnails", "Remove the old banner"].map((title, i) =>
        session({ id: String(8 + i), title, folder: `${HOME}/src/docs`, activeAt: NOW - (5 + i) * DAY, lastTurn: i % 3 === 0 ? { id: `t${8 + i}`, outcome: "completed", startedAt: NOW - (5 + i) * DAY - 9 * MIN, endedAt: NOW - (5 + i) * DAY, failure: null } : null })),
    ],
  };
}

let ordinal = 0;
export const entry = (turn: string, at: number, body: EntryBody, completed = true, id?: string): Entry => {
  ordinal++;
  return { ordinal, id: id ?? `e${ordinal}`, turn, completed, at, body };
};

const DIFF = `@@ -41,2 +41,3 @@
 export function total(lines: TaxLine[]): Cents {
-  return round(sum(lines.map(l => l.net * (1 + l.rate))))
+  const perLine = lines.map(l => round(l.net * (1 + l.rate)))
+  return sum(perLine)
`;

export function transcriptOf(id: string): Entry[] {
  ordinal = 0;
  const t = `t${id}`;
  if (id === "2") return [
    entry(t, NOW - 68 * S, { type: "userMessage", text: "Totals are off by a cent on mixed-rate invoices. Round per tax line and prove it." }),
    entry(t, NOW - 60 * S, { type: "reasoning", summary: "Where rounding happens today, and who calls it", text: "total.ts rounds once at the end. Three callers: invoice, credit note, preview. Per-line rounding changes only mixed rates." }),
    entry(t, NOW - 55 * S, { type: "fileChange", status: "completed", changes: [{ path: "src/invoice/total.ts", kind: "updated", movedTo: null, diff: DIFF }] }),
    entry(t, NOW - 50 * S, { type: "command", command: "pnpm vitest run src/invoice", cwd: `${HOME}/src/billing`, output: "\u001b[1mTest Files\u001b[22m  \u001b[32m4 passed\u001b[39m (4)     \u001b[1mTests\u001b[22m  \u001b[32m61 passed\u001b[39m (61)\n", exitCode: 0, durationMs: 3100, status: "completed" }),
    entry(t, NOW - 42 * S, { type: "agentMessage", text: "The unit tests pass. The database tests still hold the old totals, so I will run them against a fresh copy of the test data", finalAnswer: false }, false, "say2"),
  ];
  if (id === "4") return [
    entry(t, NOW - 188 * S, { type: "userMessage", text: "Draft the notes for 2.4 from what was merged since 2.3. Plain words, no marketing." }),
    entry(t, NOW - 180 * S, { type: "reasoning", summary: "", text: "List merged pull requests first." }),
    entry(t, NOW - 170 * S, { type: "command", command: "gh pr list --state merged --search \"merged:>2026-10-28\" --limit 60", cwd: `${HOME}/src/turnkeep`, output: ["#812  Keep the queue while signed out", "#809  Restore goals after a restart", "#806  Diff view: fold long unchanged runs", ...Array.from({ length: 50 }, (_, i) => `#${805 - i}  Smaller change number ${i + 1}`)].join("\n"), exitCode: 0, durationMs: 1800, status: "completed" }),
    entry(t, NOW - 120 * S, { type: "agentMessage", text: "48 pull requests, in three themes:\n\n1. **staying signed in**\n2. coming back after a restart\n3. reading long changes, see the [tracker](https://tracker.northwind.example/2.4)\n\nI am checking each description against its code (`git log --stat`) before I write about it.", finalAnswer: false }),
    entry(t, NOW - 6 * S, { type: "command", command: "git log v2.3..HEAD --stat -- crates/keeper", cwd: `${HOME}/src/turnkeep`, output: " crates/keeper/src/epoch.rs      | 118 \u001b[32m+++++++++++++\u001b[31m-------\u001b[m\n crates/keeper/src/retire.rs     |  64 \u001b[32m++++++\u001b[m\n", exitCode: null, durationMs: null, status: "running" }, false),
    entry(t, NOW - 60 * S, { type: "userMessage", text: "Leave out internal refactors." }),
    entry(t, NOW - 3 * S, { type: "agentMessage", text: "Understood: only what a user can notice. That leaves 19 of the 48. Writing the section on", finalAnswer: false }, false, "say4"),
  ];
  if (id === "5") return [
    entry(t, NOW - 31 * MIN, { type: "userMessage", text: "The login test fails about once in ten runs. Find out why." }),
    entry(t, NOW - 30 * MIN, { type: "command", command: "for i in $(seq 50); do pnpm test login || break; done", cwd: `${HOME}/src/portal`, output: "run 1 ok\nrun 2 ok\nrun 3 \u001b[31mFAILED\u001b[0m: expected 200, got 401\n", exitCode: 1, durationMs: 251_000, status: "failed" }),
    entry(t, NOW - 25 * MIN, { type: "error", failure: { code: "transportClosed", message: "Codex stopped before the turn was complete: it exited with code 101.", detail: "pid 48213\nstdout closed\nthread 'main' panicked at core/src/session.rs:812" } }),
  ];
  return [
    entry(t, NOW - 58 * MIN, { type: "userMessage", text: "Add a dark variant of the map tiles and use it when the system is dark." }),
    entry(t, NOW - 50 * MIN, { type: "webSearch", query: "raster tile dark style contrast" }),
    entry(t, NOW - 45 * MIN, { type: "tool", server: "figma", name: "get_colours", arguments: "{\"file\":\"atlas\"}", result: "{\"water\":\"#1d2b3a\"}", status: "completed" }),
    entry(t, NOW - 41 * MIN, { type: "agentMessage", text: "Done.\n\n| file | change |\n|:--|--:|\n| `style.json` | +40 |\n| `tiles.ts` | +12 −3 |\n\n```ts\nexport const dark = tiles({ theme: \"dark\" });\n```\n\n- [x] contrast checked\n- [ ] ask design about water\n\n> Two files changed.", finalAnswer: true }),
  ];
}

/** A very long session, page by page, without holding it. */
export function longEntry(ordinalWanted: number): Entry {
  const turnNumber = Math.floor(ordinalWanted / 40);
  const at = NOW - (100_000 - ordinalWanted) * 4 * S;
  const body: EntryBody = ordinalWanted % 40 === 0
    ? { type: "userMessage", text: `Step ${turnNumber}: go on with the archive.` }
    : ordinalWanted % 5 === 0
      ? { type: "command", command: `indexer --part ${ordinalWanted}`, cwd: `${HOME}/src/archive`, output: `indexed ${ordinalWanted}\nok\n`, exitCode: 0, durationMs: 400, status: "completed" }
      : { type: "agentMessage", text: `Part ${ordinalWanted} is indexed. ${"It held nothing unusual. ".repeat(ordinalWanted % 7)}`, finalAnswer: false };
  return { ordinal: ordinalWanted, id: `long${ordinalWanted}`, turn: `lt${turnNumber}`, completed: true, at, body };
}

export const runtimes: Runtime[] = [
  {
    id: "31", provider: "codex", account: "1", accountLabel: "work", sessions: ["2", "3"], state: "ready", pid: 48213, version: "0.50.0",
    startedAt: NOW - 42 * MIN, endedAt: null, epoch: 3, old: false, failure: null,
    lastLines: ["WARN codex_core::exec: command ran outside the sandbox", "WARN codex_core::client: stream disconnected, retrying 1/5"],
  },
  {
    id: "30", provider: "codex", account: "1", accountLabel: "work", sessions: [], state: "failed", pid: 47102, version: "0.50.0",
    startedAt: NOW - 51 * MIN, endedAt: NOW - 44 * MIN, epoch: 3, old: false,
    failure: { code: "transportClosed", message: "The agent's process ended by itself.", detail: null },
    lastLines: ["thread 'main' panicked at core/src/session.rs:412", "note: run with RUST_BACKTRACE=1"],
  },
];

export const threads: Thread[] = [
  { thread: "th-1", title: "Sort the import by date", preview: "", folder: `${HOME}/src/archive`, updatedAt: NOW - 3 * 60 * MIN, session: null },
  { thread: "th-2", title: "Release notes", preview: "Write the notes for 2.4 from the merged pull requests", folder: `${HOME}/src/billing`, updatedAt: 0, session: null },
  { thread: "th-3", title: "Round invoice totals per tax line", preview: "", folder: `${HOME}/src/billing`, updatedAt: NOW - DAY, session: "2" },
];

/** A diff of one changed and one new file, as the shell gives it. */
export const turnDiff: TurnDiff = {
  dropped: 0,
  files: [
    { path: "src/invoice/total.ts", kind: "updated", movedTo: null, diff: "--- a/src/invoice/total.ts\n+++ b/src/invoice/total.ts\n@@ -10,5 +10,6 @@ export function total(lines: Line[]) {\n   const perLine = lines.map(net);\n-  return round(sum(perLine));\n+  const rounded = perLine.map(round);\n+  return sum(rounded);\n }\n \n export const tax = 0.19;\n" },
    { path: "test/total.test.ts", kind: "added", movedTo: null, diff: "--- /dev/null\n+++ b/test/total.test.ts\n@@ -0,0 +1,3 @@\n+it(\"rounds per line\", () => {\n+  expect(total(mixed)).toBe(1999);\n+});\n" },
  ],
};
