// The states of the window that are worth looking at, by name.
import type { Snapshot } from "../wire";
import { HOME, NOW, command, models, provider, providers, session, settings, snapshot, account } from "./data";

const MIN = 60_000;

const SCENES: Record<string, () => Snapshot> = {
  main: snapshot,
  calm: () => {
    const s = snapshot();
    return { ...s, approvals: [], sessions: s.sessions.filter((x) => x.group === "idle"), providers: providers().slice(0, 2).map((p) => ({ ...p, finishingTurns: 0 })) };
  },
  empty: () => ({ ...snapshot(), sessions: [], approvals: [] }),
  firstrun: () => ({
    ...snapshot(), sessions: [], approvals: [], settings: { ...settings, onboarded: false },
    providers: [
      { ...providers()[0]!, accounts: providers()[0]!.accounts.slice(0, 1), finishingTurns: 0 },
      provider({ id: "claude", name: "Claude Code", installed: { type: "found", path: `${HOME}/.local/bin/claude`, version: "2.1.9" } }),
      provider({ id: "opencode", name: "OpenCode", installed: { type: "missing", searched: [`${HOME}/.local/bin`, `${HOME}/.nvm/versions/node/v22/bin`, "/usr/local/bin", "/usr/bin"] }, install: ["npm install -g opencode-ai"] }),
    ],
  }),
  nothing: () => ({
    ...snapshot(), sessions: [], approvals: [], settings: { ...settings, onboarded: false },
    providers: [provider({ id: "codex", name: "Codex", models: [], installed: { type: "missing", searched: [`${HOME}/.local/bin`, `${HOME}/.nvm/versions/node/v22/bin`, "/usr/local/bin", "/usr/bin"] }, install: ["npm install -g @openai/codex", "brew install --cask codex"] }),
      provider({ id: "demo", name: "Demo", builtIn: true, needsAccount: false, installed: { type: "found", path: "/usr/bin/turnkeep", version: null } })],
  }),
  quitting: () => ({ ...snapshot(), quit: { since: NOW - MIN, forced: false, waitingFor: ["Port the parser to nom 8: its turn still runs", "Round invoice totals per tax line: its turn still runs"], deadline: null }, sessions: snapshot().sessions.filter((s) => s.id !== "1" && s.id !== "4") }),
  recovery: () => {
    const s = snapshot();
    return {
      ...s, approvals: [], recovery: { at: NOW - 35 * MIN, lines: ["16 sessions are back.", "5 agent processes were stopped and checked; none was left behind.", "2 goals go on by themselves."] },
      sessions: [
        session({ id: "1", title: "Index the archive", provider: "opencode", account: "5", folder: `${HOME}/src/archive`, group: "needsYou", status: { type: "outcomeUnknown" }, undecided: [{ id: "u1", text: "Continue with the 2019 folder.", at: NOW - 39 * MIN, delivery: "unknown" }], activeAt: NOW - 39 * MIN, lastTurn: { id: "t1", outcome: "unknown", startedAt: NOW - 39 * MIN, endedAt: NOW - 35 * MIN, failure: { code: "other", message: "OpenCode could not be asked, because the keychain is locked.", detail: null } } }),
        session({ id: "5", title: "Find the flaky login test", folder: `${HOME}/src/portal`, group: "needsYou", status: { type: "outcomeUnknown" }, undecided: [{ id: "u5", text: "Run the login suite 50 times and keep the traces of failures.", at: NOW - 36 * MIN, delivery: "unknown" }], activeAt: NOW - 36 * MIN, lastTurn: { id: "t5", outcome: "unknown", startedAt: NOW - 36 * MIN, endedAt: NOW - 35 * MIN, failure: { code: "other", message: "Codex’s history of this session breaks off at 09:00, so it cannot tell whether this message arrived.", detail: null } } }),
        ...s.sessions.filter((x) => !["1", "2", "5"].includes(x.id)),
      ],
    };
  },
  long: () => {
    const s = snapshot();
    return { ...s, sessions: [session({ id: "99", title: "Index the archive", folder: `${HOME}/src/archive`, activeAt: NOW }), ...s.sessions] };
  },
  keychain: () => ({ ...snapshot(), keychain: { type: "locked" } }),
  nokeychain: () => ({ ...snapshot(), keychain: { type: "absent", why: "no program answers as org.freedesktop.secrets" }, providers: [provider({ id: "codex", name: "Codex", models, current: "9", accounts: [account({ id: "9", label: "ci key", identity: "API key ending 7Q2F", kind: "apiKey", current: true, state: { type: "keychainAbsent" } })] })] }),
  fatal: () => ({ ...snapshot(), fatal: "Turnkeep cannot save to ~/.local/share/turnkeep: the disk is full. Running turns go on and stay visible here. New messages wait until there is space (about 20 MB)." }),
  states: () => {
    const s = snapshot();
    const base = { folder: `${HOME}/src/billing`, activeAt: NOW - MIN };
    const text = "Add the mixed-rate case";
    const turn = { id: "tx", startedAt: NOW - 40_000, dispatched: true, retrying: null, interrupting: false, text, steers: [], quiet: null };
    return {
      ...s,
      approvals: [
        { ...command("p1", "s4", NOW - 20_000, "", ""), body: { type: "fileChange", changes: [{ path: "src/invoice/total.ts", kind: "updated", movedTo: null, diff: "@@ -1,1 +1,1 @@\n-old\n+new\n" }], grantRoot: `${HOME}/src/billing` } },
        { ...command("p2", "s5", NOW - 15_000, Array.from({ length: 24 }, (_, i) => `echo "step ${i + 1} of the long script"`).join("\n"), `${HOME}/src/billing`), reason: "The script needs the network to fetch the fixtures." , choices: [{ kind: "allow", rule: [] }, { kind: "allowAlways", rule: ["echo"] }, { kind: "deny", rule: [] }, { kind: "denyAndStop", rule: [] }] },
        { ...command("p3", "s6", NOW - 14_000, "", ""), choices: [{ kind: "deny", rule: [] }], body: { type: "questions", questions: [
          { id: "a", header: "", text: "Which database?", options: [{ label: "Postgres", description: "As in production" }, { label: "SQLite", description: "Faster to start" }], freeText: true, secret: false },
          { id: "b", header: "", text: "Password of the test user?", options: [], freeText: true, secret: true }] } },
        { ...command("p4", "s9", NOW - 13_000, "", ""), choices: [{ kind: "allow", rule: [] }, { kind: "deny", rule: [] }], body: { type: "form", server: "jira", message: "Where should the ticket go?", schema: JSON.stringify({ type: "object", required: ["project"], properties: { project: { type: "string", title: "Project" }, urgent: { type: "boolean", title: "Urgent" }, kind: { type: "string", title: "Kind", enum: ["Bug", "Task"] } } }) } },
        { ...command("p5", "s10", NOW - 12_000, "", ""), body: { type: "permissions", network: true, read: ["/etc/hosts"], write: [`${HOME}/.cache/pnpm`] } },
      ],
      sessions: [
        session({ ...base, id: "s1", title: "Runtime starts", group: "running", status: { type: "starting" }, turn: { ...turn, startedAt: NOW - 3000, dispatched: false }, queue: [{ id: "q1", text, at: NOW, delivery: "queued" }], waitsFor: "Codex is starting" }),
        session({ ...base, id: "s2", title: "Retrying", group: "running", status: { type: "running" }, turn: { ...turn, retrying: "the connection was lost. Attempt 3 of 5" } }),
        session({ ...base, id: "s3", title: "Restarts used up", group: "finished", unread: true, status: { type: "failed" }, failure: { code: "other", message: "Started 3 times in 60 s, then given up. Last line: “config.toml: unknown key ‘sandbx’”.", detail: "exit code 1" } }),
        session({ ...base, id: "s4", title: "Asks to change files", group: "needsYou", status: { type: "needsApproval", count: 1 }, turn }),
        session({ ...base, id: "s5", title: "Asks to run a long command", group: "needsYou", status: { type: "needsApproval", count: 1 }, turn }),
        session({ ...base, id: "s6", title: "Asks two questions", group: "needsYou", status: { type: "needsApproval", count: 1 }, turn }),
        session({ ...base, id: "s7", title: "Signed out", status: { type: "signedOut" }, account: "3", queue: [{ id: "q2", text: "Round the shipping costs as well", at: NOW, delivery: "queued" }], waitsFor: "you to sign in" }),
        session({ ...base, id: "s8", title: "Outcome unknown", group: "needsYou", status: { type: "outcomeUnknown" }, undecided: [{ id: "u8", text, at: NOW - MIN, delivery: "unknown" }] }),
        session({ ...base, id: "s9", title: "Asks to fill in a form", group: "needsYou", status: { type: "needsApproval", count: 1 }, turn }),
        session({ ...base, id: "s10", title: "Asks for permissions", group: "needsYou", status: { type: "needsApproval", count: 1 }, turn }),
        session({ ...base, id: "s11", title: "With a goal", group: "running", status: { type: "running" }, turn: { ...turn, steers: [{ id: "st", text: "Use the other fixture", at: NOW, delivery: "notAdmitted" }] }, goal: { objective: "Keep the changelog current", status: "active", tokenBudget: 500_000 } }),
      ],
    };
  },
};

export const SCENE_NAMES = Object.keys(SCENES);

export function scene(name: string): { snapshot: Snapshot; long: string | null } {
  return { snapshot: (SCENES[name] ?? snapshot)(), long: name === "long" ? "99" : null };
}
