import { describe, expect, it } from "vitest";
import { app } from "../src/lib/app.svelte";
import { longEntry, session, snapshot } from "../src/lib/demo/data";
import type { Entry } from "../src/lib/wire";
import { settle, stage } from "./stage";

const rows = () => [...document.querySelectorAll<HTMLElement>("[data-entry]")];
const nodes = () => document.querySelectorAll(".log *").length;
const hundred = (n: number) => Array.from({ length: n }, (_, i) => longEntry(i));

/** jsdom has no layout: a viewport and a scroll position are given. */
function layout(log: HTMLElement, viewport: number): void {
  Object.defineProperty(log, "clientHeight", { configurable: true, value: viewport });
  Object.defineProperty(log, "scrollHeight", {
    configurable: true,
    get: () => [...log.querySelectorAll<HTMLElement>("[aria-hidden='true']")].reduce((n, e) => n + (parseFloat(e.style.height) || 0), 0) + rows().length * 40,
  });
}

describe("a transcript", () => {
  it("of 100,000 entries has as few elements as one of 300", async () => {
    const open = async (count: number) => {
      const s = await stage({ ...snapshot(), sessions: [session({ id: "99", title: "Long" })], approvals: [] }, "99");
      const entries = hundred(count);
      const began = performance.now();
      s.shell.transcript("99", { type: "page", page: { session: "99", entries, before: null, total: count, changes: [] } });
      await settle();
      return { took: performance.now() - began, nodes: nodes(), rows: rows().length };
    };
    const small = await open(300);
    const large = await open(100_000);
    expect(large.rows).toBeGreaterThan(5);
    expect(large.rows).toBeLessThan(120);
    expect(large.nodes).toBeLessThanOrEqual(small.nodes * 1.5 + 50);
    expect(app.feed.entries).toHaveLength(100_000);
  });

  it("shows other rows after scrolling, still only a few", async () => {
    const s = await stage({ ...snapshot(), sessions: [session({ id: "99", title: "Long" })], approvals: [] }, "99");
    s.shell.transcript("99", { type: "page", page: { session: "99", entries: hundred(20_000), before: null, total: 20_000, changes: [] } });
    await settle();
    const log = s.get("transcript");
    layout(log, 600);
    log.scrollTop = 300_000;
    log.dispatchEvent(new Event("scroll"));
    await settle();
    const middle = rows().map((r) => Number(r.dataset.index));
    expect(middle[0]).toBeGreaterThan(1000);
    expect(rows().length).toBeLessThan(120);
    log.scrollTop = 0;
    log.dispatchEvent(new Event("scroll"));
    await settle();
    expect(rows()[0]!.dataset.index).toBe("0");
  });

  it("loads the page before when one scrolls near its beginning, and only once at a time", async () => {
    const s = await stage("long", "99");
    expect(app.feed.entries).toHaveLength(200);
    expect(app.feed.before).toBe(99_800);
    const log = s.get("transcript");
    layout(log, 600);
    s.shell.transcript("99", { type: "upsert", entry: longEntry(100_000) });
    await settle();
    s.shell.calls = [];
    log.scrollTop = 10;
    log.dispatchEvent(new Event("scroll"));
    log.dispatchEvent(new Event("scroll"));
    await settle();
    expect(s.calls("transcript_page")).toEqual([{ session: "99", before: 99_800, limit: 200 }]);
    expect(app.feed.entries[0]!.ordinal).toBe(99_600);
    expect(log.scrollTop).toBeGreaterThan(1000);
  });

  it("follows the end until one scrolls up, then counts what is new below, and returns", async () => {
    const s = await stage("long", "99");
    const log = s.get("transcript");
    layout(log, 600);
    const say = (ordinal: number): Entry => longEntry(ordinal);
    s.shell.transcript("99", { type: "upsert", entry: say(100_000) });
    await settle();
    expect(log.dataset.following).toBe("true");
    expect(log.scrollTop).toBeGreaterThan(0);
    log.scrollTop -= 800;
    log.dispatchEvent(new Event("scroll"));
    await settle();
    expect(log.dataset.following).toBe("false");
    const stay = log.scrollTop;
    for (let i = 1; i <= 3; i++) s.shell.transcript("99", { type: "upsert", entry: say(100_000 + i) });
    await settle();
    expect(log.scrollTop).toBe(stay);
    expect(s.get("to-end").textContent).toBe("3 new below");
    s.get("to-end").click();
    await settle();
    expect(log.dataset.following).toBe("true");
    expect(s.find("to-end")).toBeNull();
  });

  it("pins the message of the turn at the top edge once it has scrolled away", async () => {
    const s = await stage("long", "99");
    const log = s.get("transcript");
    layout(log, 600);
    log.scrollTop = 3000;
    log.dispatchEvent(new Event("scroll"));
    await settle();
    expect(s.get("pinned").textContent).toMatch(/Step \d+: go on with the archive/);
  });

  it("streams into the row it belongs to and leaves the others alone", async () => {
    const s = await stage("main", "4");
    const before = rows();
    const say = document.querySelector('[data-entry="say4"] p')!;
    s.shell.transcript("4", { type: "delta", id: "say4", stream: "agentMessage", text: " the tray" });
    await settle();
    expect(document.querySelector('[data-entry="say4"] p')).toBe(say);
    expect(say.textContent).toContain("Writing the section on the tray");
    expect(rows()).toEqual(before);
  });

  it("of another session is not mixed in", async () => {
    const s = await stage("main", "4");
    const n = app.feed.entries.length;
    s.shell.transcript("2", { type: "upsert", entry: longEntry(5) });
    await settle();
    expect(app.feed.entries).toHaveLength(n);
    app.open("2");
    await settle();
    expect(document.querySelector('[data-entry="say4"]')).toBeNull();
    expect(document.querySelector('[data-entry="say2"]')).not.toBeNull();
  });

  it("tells a screen reader finished sentences only, and no output", async () => {
    const s = await stage("main", "4");
    s.shell.transcript("4", { type: "delta", id: "say4", stream: "agentMessage", text: " notifications. And" });
    await settle();
    expect(s.get("announce").textContent).toContain("notifications.");
    expect(s.get("announce").textContent).not.toContain("And");
    expect(s.get("transcript").getAttribute("aria-live")).toBe("off");
  });

  it("is searched among what is loaded", async () => {
    const s = await stage("main", "4");
    window.dispatchEvent(new KeyboardEvent("keydown", { key: "f", code: "KeyF", ctrlKey: true }));
    await settle();
    const find = s.get("find") as HTMLInputElement;
    find.value = "three themes";
    find.dispatchEvent(new Event("input", { bubbles: true }));
    await settle();
    expect(document.querySelectorAll(".hit")).toHaveLength(1);
    expect(document.querySelector(".hit")!.textContent).toContain("three themes");
  });
});
