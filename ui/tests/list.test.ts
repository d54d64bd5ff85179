import { describe, expect, it } from "vitest";
import { NOW, command, session, snapshot } from "../src/lib/demo/data";
import { arrange, matches, placed, tilde } from "../src/lib/list";
import { settle, stage } from "./stage";

const ids = (sections: ReturnType<typeof arrange>) => Object.fromEntries(sections.map((s) => [s.group, s.ids]));
const turn = (startedAt: number) => ({ id: "t", startedAt, dispatched: true, retrying: null, interrupting: false, text: "", steers: [], quiet: null });
const ended = (outcome: "completed" | "failed", endedAt: number) => ({ id: "t", outcome, failure: null, startedAt: 0, endedAt });

describe("groups", () => {
  it("put needs you and running oldest first, finished failures first then newest, idle last used first", () => {
    const sessions = [
      session({ id: "1", title: "", group: "needsYou" }), session({ id: "2", title: "", group: "needsYou" }),
      session({ id: "3", title: "", group: "running", turn: turn(20) }), session({ id: "4", title: "", group: "running", turn: turn(10) }),
      session({ id: "5", title: "", group: "finished", lastTurn: ended("completed", 30) }), session({ id: "6", title: "", group: "finished", lastTurn: ended("failed", 10) }),
      session({ id: "7", title: "", group: "finished", lastTurn: ended("completed", 40) }),
      session({ id: "8", title: "", activeAt: 1 }), session({ id: "9", title: "", activeAt: 2 }),
    ];
    const approvals = [command("a", "1", 200, "x", "/"), command("b", "2", 100, "x", "/")];
    expect(ids(arrange(sessions, approvals, null, false))).toEqual({ needsYou: ["2", "1"], running: ["4", "3"], finished: ["6", "7", "5"], idle: ["9", "8"] });
  });

  it("order equal times by id as numbers", () => {
    const sessions = ["10", "9", "100"].map((id) => session({ id, title: "", group: "running", turn: turn(5) }));
    expect(arrange(sessions, [], null, false)[1]!.ids).toEqual(["9", "10", "100"]);
  });

  it("hold every row in its place while held, and let new rows join at an end", () => {
    const before = arrange(snapshot().sessions, [], null, false);
    const later = [
      ...snapshot().sessions.map((s) => (s.id === "3" ? { ...s, group: "finished" as const, turn: null } : s.id === "8" ? { ...s, activeAt: NOW } : s)),
      session({ id: "50", title: "new", group: "needsYou", status: { type: "outcomeUnknown" }, activeAt: 0 }),
    ];
    const held = arrange(later, [], before, true);
    for (const section of before) expect(held.find((s) => s.group === section.group)!.ids.slice(0, section.ids.length)).toEqual(section.ids);
    expect(held[0]!.ids.at(-1)).toBe("50");
    const free = ids(arrange(later, [], held, false));
    expect(free.finished).toContain("3");
    expect(free.idle![0]).toBe("8");
    expect(free.needsYou![0]).toBe("50");
  });

  it("drop sessions that are gone, also while held", () => {
    const before = arrange(snapshot().sessions, [], null, false);
    const held = arrange(snapshot().sessions.filter((s) => s.id !== "2"), [], before, true);
    expect(held.flatMap((s) => s.ids)).not.toContain("2");
  });
});

describe("the list on the screen", () => {
  const order = (all: HTMLElement[]) => all.map((row) => row.dataset.session);

  it("does not move rows under the pointer, and does when it leaves", async () => {
    const s = await stage("main");
    const list = s.get("session-list");
    const before = order(s.all("session"));
    list.dispatchEvent(new PointerEvent("pointerenter"));
    await settle();
    s.shell.change("3", { group: "finished", status: { type: "idle" }, turn: null, unread: true });
    await settle();
    expect(order(s.all("session"))).toEqual(before);
    list.dispatchEvent(new PointerEvent("pointerleave"));
    await settle();
    expect(order(s.all("session"))).not.toEqual(before);
    expect(s.get("group-finished").querySelector('[data-session="3"]')).not.toBeNull();
  });

  it("names the account of a session, but none of an agent that needs none", async () => {
    const chip = async (needsAccount: boolean) => {
      const whole = snapshot();
      const s = await stage({ ...whole, providers: whole.providers.map((p) => ({ ...p, needsAccount })) });
      return s.all("session").find((row) => row.dataset.session === "8")!.querySelector(".chip")!.textContent;
    };
    const [named, bare] = [await chip(true), await chip(false)];
    expect(named).toContain(" · ");
    expect(bare).toBe(named!.split(" · ")[0]);
  });

  it("does not move rows under the focus, and keeps the focus on the same row", async () => {
    const s = await stage("main");
    const row = document.querySelector<HTMLElement>('[data-row="4"]')!;
    row.focus();
    await settle();
    const before = order(s.all("session"));
    s.shell.change("3", { group: "idle", status: { type: "idle" }, turn: null });
    await settle();
    expect(order(s.all("session"))).toEqual(before);
    expect(document.activeElement).toBe(row);
    row.blur();
    await settle();
    expect(order(s.all("session"))).not.toEqual(before);
  });

  it("moves rows at once when nothing holds it: the hold is what keeps them", async () => {
    const s = await stage("main");
    const before = order(s.all("session"));
    s.shell.change("3", { group: "idle", status: { type: "idle" }, turn: null });
    await settle();
    expect(order(s.all("session"))).not.toEqual(before);
  });

  it("offers what can be done with a row by its menu, and gives the focus back", async () => {
    const s = await stage("main");
    const row = document.querySelector<HTMLElement>('[data-row="7"]')!;
    row.focus();
    row.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true }));
    await settle();
    const menu = document.querySelector<HTMLElement>("[role=menu]")!;
    expect(menu.getAttribute("aria-label")).toBe("Spike: read receipts");
    expect(menu.contains(document.activeElement)).toBe(true);
    document.activeElement!.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }));
    await settle();
    expect(document.activeElement).toBe(row);
    row.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true }));
    await settle();
    [...document.querySelectorAll<HTMLElement>("[role=menuitem]")].at(-1)!.click();
    await settle();
    expect(s.calls("archive_session")).toEqual([{ session: "7", archived: true }]);
  });

  it("says so when nothing needs you and nothing runs", async () => {
    const s = await stage("calm");
    expect(s.get("session-list").textContent).toContain("Nothing needs you.");
    expect(s.get("session-list").textContent).toContain("Nothing is running.");
  });

  it("finds by title, folder and account", async () => {
    const s = await stage("main");
    const search = s.get("search") as HTMLInputElement;
    search.value = "lexi parser";
    search.dispatchEvent(new Event("input", { bubbles: true }));
    await settle();
    expect(order(s.all("session"))).toEqual(["3"]);
    search.value = "nothing of the kind";
    search.dispatchEvent(new Event("input", { bubbles: true }));
    await settle();
    expect(s.all("session")).toEqual([]);
    expect(s.get("session-list").textContent).toContain("No session matches");
  });
});

it("writes the home folder as a tilde, and no other", () => {
  expect(tilde("/home/maria/src", "/home/maria")).toBe("~/src");
  expect(tilde("/home/mariana/src", "/home/maria")).toBe("/home/mariana/src");
  expect(tilde("/root", "/")).toBe("/root");
  expect(matches("Tax ROUND", ["Round per tax line", null])).toBe(true);
  expect(matches("tax codes", ["Round per tax line"])).toBe(false);
});

it("a file is named from where the session works, and whole where it lies elsewhere", () => {
  const place = (path: string) => placed(path, "/home/maria/src", "/home/maria");
  expect(place("/home/maria/src/a/b.md")).toBe("a/b.md");
  expect(place("/home/maria/src-2/b.md")).toBe("~/src-2/b.md");
  expect(place("/etc/passwd")).toBe("/etc/passwd");
  expect(place("/home/maria/src/../.ssh/config")).toBe("~/src/../.ssh/config");
  expect(place("/home/maria/src//etc/passwd")).toBe("~/src//etc/passwd");
  expect(place("b.md")).toBe("b.md");
  expect(placed("/etc/passwd", "/", "/home/maria")).toBe("/etc/passwd");
});
