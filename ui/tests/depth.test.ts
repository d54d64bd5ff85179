// What a person looks for: what a turn changed, threads from elsewhere, processes, what is new, and words of long ago.
import axe from "axe-core";
import { describe, expect, it, vi } from "vitest";
import { app } from "../src/lib/app.svelte";
import { NOW, session, snapshot } from "../src/lib/demo/data";
import { pairs, parse } from "../src/lib/diff";
import { accountLook } from "../src/lib/look";
import { Feed } from "../src/lib/transcript/feed";
import type { Entry } from "../src/lib/wire";
import { settle, stage, type Stage } from "./stage";
import { scene } from "../src/lib/demo/scenes";

const say = (ordinal: number, part: Partial<Entry> = {}): Entry => ({
  ordinal, id: `e${ordinal}`, turn: "t1", completed: true, at: NOW + ordinal * 1000, body: { type: "agentMessage", text: `said ${ordinal}`, finalAnswer: false }, ...part,
});
const type = (element: HTMLElement, text: string) => {
  (element as HTMLInputElement).value = text;
  element.dispatchEvent(new InputEvent("input", { bubbles: true }));
};

describe("the changes of a turn", () => {
  const open = async () => {
    const s = await stage({ ...snapshot(), sessions: [session({ id: "9", title: "One" })], approvals: [] }, "9");
    const changes = [{ turn: "t1", files: 2, added: 5, removed: 1 }];
    const entries = [say(1), say(2), say(3, { turn: "t2" })];
    s.shell.transcript("9", { type: "page", page: { session: "9", entries, before: null, total: 3, changes } });
    await settle();
    return s;
  };

  it("stand once, below the last entry of the turn, and are asked for when one unfolds them", async () => {
    const s = await open();
    expect(s.all("changes")).toHaveLength(1);
    expect(s.get("changes").closest("[data-entry]")!.getAttribute("data-entry")).toBe("e2");
    expect(s.get("changes").textContent).toContain("2 files");
    expect(s.calls("turn_changes")).toEqual([]);
    s.get("changes-toggle").click();
    await settle();
    expect(s.calls("turn_changes")).toEqual([{ session: "9", turn: "t1" }]);
    expect(s.all("diff")).toHaveLength(2);
    expect(s.find("changes-cut")).toBeNull();
    expect((await axe.run(s.container, { rules: { "color-contrast": { enabled: false } } })).violations).toEqual([]);
  }, 60_000);

  it("grow while the turn runs and stay unfolded, and say what was left off", async () => {
    const s = await open();
    s.get("changes-toggle").click();
    await settle();
    const invoke = s.shell.invoke.bind(s.shell);
    s.shell.invoke = async (command, args) => {
      const given = await invoke(command, args);
      return command === "turn_changes" ? { ...(given as object), dropped: 4096 } : given;
    };
    s.shell.transcript("9", { type: "changes", changes: { turn: "t2", files: 1, added: 1, removed: 0 } });
    s.shell.transcript("9", { type: "changes", changes: { turn: "t1", files: 3, added: 9, removed: 1 } });
    await settle();
    expect(s.all("changes").map((c) => c.dataset.turn)).toEqual(["t1", "t2"]);
    expect(s.get("changes").textContent).toContain("3 files");
    expect(s.get("changes-cut").textContent).toContain("4 KB");
  });

  it("stand side by side where there is room", async () => {
    const s = await open();
    app.wide = true;
    s.get("changes-toggle").click();
    await settle();
    // A new file has nothing to stand beside.
    expect(document.querySelectorAll(".diff.split")).toHaveLength(1);
    const sides = [...document.querySelectorAll(".diff.split .ln")].map((l) => l.textContent);
    expect(sides.filter((l) => l?.includes("round(sum(perLine))"))).toHaveLength(1);
    app.wide = false;
    await settle();
    expect(document.querySelectorAll(".diff.split")).toHaveLength(0);
  });

  it("are paired line by line", () => {
    const { lines } = parse({ path: "a", kind: "updated", movedTo: null, diff: "@@ -1,4 +1,4 @@\n same\n-one\n-two\n+eins\n end\n+new\n" });
    expect(pairs(lines).map(([was, is]) => [was?.text ?? null, is?.text ?? null])).toEqual([
      ["same", "same"], ["one", "eins"], ["two", null], ["end", "end"], [null, "new"],
    ]);
  });
});

describe("a thread from elsewhere", () => {
  /** The dialog, for the agent that tells of its threads. */
  const dialog = async () => {
    const base = snapshot();
    const s = await stage({ ...base, providers: base.providers.filter((p) => p.id === "codex") });
    app.open("2");
    app.dialog = { kind: "newSession" };
    await settle();
    return s;
  };
  const list = async () => {
    const s = await dialog();
    s.get("new-how-thread").click();
    await settle();
    return s;
  };

  it("is listed by pages, found among what is listed, and becomes a session", async () => {
    const s = await list();
    expect(s.all("thread")).toHaveLength(2);
    s.get("more-threads").click();
    await settle();
    expect(s.all("thread").map((t) => t.dataset.thread)).toEqual(["th-1", "th-2", "th-3"]);
    expect(s.find("more-threads")).toBeNull();
    type(s.get("thread-search"), "archive");
    await settle();
    expect(s.all("thread")).toHaveLength(1);
    s.get("thread").click();
    await settle();
    expect(s.calls("create_session")).toMatchObject([{ provider: "codex", folder: "/home/maria/src/archive", title: "Sort the import by date", thread: "th-1" }]);
    expect(app.dialog).toBeNull();
    expect(app.session?.title).toBe("Sort the import by date");
  });

  it("has no time where its agent tells none", async () => {
    const s = await list();
    const times = s.all("thread").map((t) => t.querySelector(".num")?.textContent ?? null);
    expect(times).toEqual([expect.stringMatching(/\d/), null]);
  });

  it("that is a session already leads there", async () => {
    const s = await list();
    s.get("more-threads").click();
    await settle();
    s.all("thread")[2]!.click();
    await settle();
    expect(s.calls("create_session")).toEqual([]);
    expect(app.opened).toBe("2");
  });

  it("is not offered by an agent that does not tell", async () => {
    const s = await stage({ ...snapshot(), providers: snapshot().providers.map((p) => ({ ...p, hasThreads: false })) });
    app.dialog = { kind: "newSession" };
    await settle();
    expect(s.find("new-how-thread")).toBeNull();
  });

  it("says why there is none, and asks again", async () => {
    const s = await dialog();
    s.shell.refuse.provider_threads = "No account is signed in.";
    s.get("new-how-thread").click();
    await settle();
    expect(s.get("threads-wrong").textContent).toBe("No account is signed in.");
    delete s.shell.refuse.provider_threads;
    [...s.get("threads").querySelectorAll("button")].find((b) => b.textContent === "Ask again")!.click();
    await settle();
    expect(s.all("thread")).toHaveLength(2);
  });
});

describe("an agent's process", () => {
  it("is shown for the session that it holds, with the one that failed last", async () => {
    const s = await stage(snapshot(), "2");
    app.dialog = { kind: "process", session: "2" };
    await settle();
    const [now, before] = s.all("runtime");
    expect(now!.dataset).toMatchObject({ state: "ready", pid: "48213" });
    expect(now!.textContent).toContain("sign-in 3, the current one");
    expect(before!.dataset.state).toBe("failed");
    expect(before!.querySelector("[data-testid='last-lines']")!.textContent).toContain("panicked");
  });

  it("is asked about again while one looks, and not afterwards", async () => {
    vi.useFakeTimers();
    try {
      const s = await stage(snapshot(), "2");
      app.dialog = { kind: "process", session: "2" };
      await settle();
      await vi.advanceTimersByTimeAsync(4100);
      const asked = s.calls("runtimes").length;
      expect(asked).toBeGreaterThanOrEqual(3);
      app.dialog = null;
      await settle();
      await vi.advanceTimersByTimeAsync(10_000);
      expect(s.calls("runtimes")).toHaveLength(asked);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("opening a session", () => {
  it("lands at the first entry that nobody has seen, with a line above it", async () => {
    const s = await stage({ ...snapshot(), sessions: [session({ id: "9", title: "One", unread: true, group: "finished", seenAt: NOW + 60_500 })], approvals: [] });
    const entries = Array.from({ length: 150 }, (_, i) => say(i + 1));
    s.shell.refuse.open_session = "late";
    app.open("9");
    await settle();
    app.problem = null;
    s.shell.transcript("9", { type: "page", page: { session: "9", entries, before: null, total: 150, changes: [] } });
    await settle();
    await settle();
    expect(s.get("unread").closest("[data-entry]")!.getAttribute("data-entry")).toBe("e61");
  });

  it("lands at the end when all was seen, and leaving says so", async () => {
    const s = await stage({ ...snapshot(), sessions: [session({ id: "9", title: "One", seenAt: 0 }), session({ id: "8", title: "Two" })], approvals: [] }, "9");
    s.shell.transcript("9", { type: "page", page: { session: "9", entries: [say(1), say(2)], before: null, total: 2, changes: [] } });
    await settle();
    expect(s.find("unread")).toBeNull();
    expect(s.get("transcript").dataset.following).toBe("true");
    app.open("8");
    await settle();
    expect(s.calls("seen")).toEqual([{ session: "9" }]);
  });

  it("says when an added message was read, and how long a thought took", async () => {
    const s = await stage({ ...snapshot(), sessions: [session({ id: "9", title: "One" })], approvals: [] }, "9");
    const asked = (ordinal: number): Entry => say(ordinal, { body: { type: "userMessage", text: "do it" } });
    const entries = [asked(1), say(2, { body: { type: "reasoning", summary: "hm", text: "" } }), asked(14), say(15, { turn: "t2", body: { type: "userMessage", text: "next" } })];
    s.shell.transcript("9", { type: "page", page: { session: "9", entries, before: null, total: 4, changes: [] } });
    await settle();
    expect(s.all("read-at")).toHaveLength(1);
    expect(s.get("read-at").textContent).toMatch(/^Read \d/);
    expect(s.get("entry-reasoning").textContent).toContain("Thought for 12 s");
  });
});

describe("finding in a transcript", () => {
  it("asks for the whole of it, and loads the part around a match far away", async () => {
    const s = await stage("long", "99");
    app.revision++;
    const { container } = s;
    container.querySelector<HTMLElement>("[data-testid='transcript']")!.focus();
    window.dispatchEvent(new KeyboardEvent("keydown", { key: "f", code: "KeyF", ctrlKey: true, bubbles: true, cancelable: true }));
    await settle();
    vi.useFakeTimers();
    try {
      type(s.get("find"), "zzz");
      await vi.advanceTimersByTimeAsync(200);
    } finally {
      vi.useRealTimers();
    }
    await settle();
    expect(s.calls("find_entries")).toEqual([{ session: "99", text: "zzz", before: null }]);
    expect(s.get("found").textContent).toBe("1 of 3");
    expect(app.feed.index(90_000)).not.toBeNull();
    expect(app.feed.after).not.toBeNull();
    expect(app.feed.entries.length).toBeLessThanOrEqual(200);
    s.get("find").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
    await settle();
    expect(s.get("found").textContent).toBe("2 of 3");
    expect(app.feed.index(50_000)).not.toBeNull();
  });

  it("keeps a far part still until the end is followed again", () => {
    const feed = new Feed();
    const page = (first: number, last: number) => ({ session: "1", entries: Array.from({ length: last - first + 1 }, (_, i) => say(first + i)), before: first > 1 ? first : null, total: 500, changes: [] });
    feed.apply([{ type: "page", page: page(301, 500) }]);
    expect(feed.jump(page(1, 200))).toBe(true);
    expect(feed.apply([{ type: "upsert", entry: say(501) }])).toEqual({ kind: "none" });
    expect([feed.entries.length, feed.total]).toEqual([200, 501]);
    expect(feed.append(page(201, 400))).toBe(true);
    expect(feed.append({ ...page(401, 500), total: 501 })).toBe(true);
    expect(feed.append({ ...page(402, 501), total: 501 })).toBe(false);
    expect(feed.entries.at(-1)!.ordinal).toBe(500);
    feed.apply([{ type: "page", page: { ...page(302, 500), total: 501 } }]);
    expect(feed.after).toBeNull();
  });
});

describe("small things", () => {
  it("a quit that waits can be taken back", async () => {
    const s = await stage("quitting");
    s.get("cancel-quit").click();
    await settle();
    expect(s.calls("cancel_quit")).toHaveLength(1);
    expect(s.find("quitting")).toBeNull();
  });

  it("a forced one cannot", async () => {
    const base = await stage("quitting");
    const s = await stage({ ...base.shell.snapshot, quit: { ...base.shell.snapshot.quit!, forced: true } });
    expect(s.find("cancel-quit")).toBeNull();
  });

  it("notifications are muted for an hour, and told again when one wants", async () => {
    const s = await stage(snapshot());
    app.go({ type: "settings", page: "notifications" });
    await settle();
    const before = Date.now();
    s.get("mute-hour").click();
    await settle();
    const until = s.shell.snapshot.settings.mutedUntil!;
    expect(until - before).toBeGreaterThanOrEqual(3_600_000);
    app.now = until - 1;
    await settle();
    expect(s.get("muted-until").textContent).toMatch(/^Muted until \d/);
    app.now = until + 1;
    await settle();
    expect(s.find("muted-until")).toBeNull();
    app.now = until - 1;
    await settle();
    s.get("unmute").click();
    await settle();
    expect(s.shell.snapshot.settings.mutedUntil).toBeNull();
  });

  it("an account that never was signed in is not called signed out, and a restart limit leaves a sign-in what it is", () => {
    const account = snapshot().providers[0]!.accounts[0]!;
    expect(accountLook({ ...account, state: { type: "signedOut" }, finishingTurns: 0, known: false }).word).toBe("Not signed in");
    expect(accountLook({ ...account, state: { type: "signedOut" }, finishingTurns: 0, known: true }).word).toBe("Signed out");
    const stopping = accountLook({ ...account, state: { type: "signedIn" }, givenUp: { code: "startFailed", message: "x", detail: null } });
    expect(stopping).toMatchObject({ word: "Signed in", urgent: false, tone: "c-run", note: "Its agent keeps stopping" });
  });
});

describe("a fork", () => {
  const able = (canFork: boolean) => {
    const { snapshot } = scene("main");
    return { ...snapshot, sessions: snapshot.sessions.map((one) => (one.id === "7" ? { ...one, canFork, title: "Old" } : one)) };
  };
  const menu = (s: Stage) => s.container.querySelector<HTMLElement>("header.head [aria-haspopup=menu]")!.click();

  it("is a session of its own, which opens at once", async () => {
    const s = await stage(able(true), "7");
    menu(s);
    await settle();
    s.get("act-fork").click();
    await settle();
    expect(s.calls("fork_session")).toEqual([{ session: "7", title: "Old (fork)" }]);
    expect(app.opened).not.toBe("7");
    expect(s.get("session-title").textContent).toBe("Old (fork)");
  });

  it("is not offered where it cannot be, and a refusal is told", async () => {
    const s = await stage(able(false), "7");
    menu(s);
    await settle();
    expect(s.find("act-fork")).toBeNull();
    const other = await stage(able(true), "7");
    other.shell.refuse.fork_session = "Not now.";
    menu(other);
    await settle();
    other.get("act-fork").click();
    await settle();
    expect(app.opened).toBe("7");
    expect(app.problem?.message).toBe("Not now.");
  });
});
