import { describe, expect, it } from "vitest";
import { press, settle, stage, type Stage } from "./stage";
import { app } from "../src/lib/app.svelte";

const type = async (s: Stage, text: string) => {
  const field = s.get("composer-input") as HTMLTextAreaElement;
  field.focus();
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await settle();
};
const value = (s: Stage) => (s.get("composer-input") as HTMLTextAreaElement).value;

describe("the commands of an agent", () => {
  const names = (s: Stage) => s.all("command").map((c) => c.querySelector("b")!.textContent);
  const marked = (s: Stage) => s.all("command").find((c) => c.getAttribute("aria-selected") === "true")?.querySelector("b")?.textContent;

  it("are offered while one types a slash, and fit what is typed", async () => {
    const s = await stage("main", "7");
    await type(s, "/");
    expect(names(s)).toEqual(["/review", "/plan", "/compact"]);
    expect(s.get("command").textContent).toContain("what to look for");
    expect(s.get("command").textContent).toContain("Look at the changes");
    await type(s, "/PL");
    expect(names(s)).toEqual(["/plan"]);
    await type(s, "/a");
    expect(names(s)).toEqual(["/plan", "/compact"]);
    await type(s, "/plan now");
    expect(s.find("commands")).toBeNull();
    await type(s, "see /plan");
    expect(s.find("commands")).toBeNull();
    expect(s.calls("session_commands")).toEqual([{ session: "7" }]);
  });

  it("are chosen by the keyboard, and told to a screen reader", async () => {
    const s = await stage("main", "7");
    await type(s, "/");
    const field = s.get("composer-input");
    expect(s.get("commands").getAttribute("role")).toBe("listbox");
    expect(field.getAttribute("aria-controls")).toBe(s.get("commands").id);
    expect(marked(s)).toBe("/review");
    press("ArrowUp");
    await settle();
    expect(marked(s)).toBe("/compact");
    press("ArrowDown");
    press("ArrowDown");
    await settle();
    expect(marked(s)).toBe("/plan");
    expect(document.getElementById(field.getAttribute("aria-activedescendant")!)?.textContent).toContain("/plan");
    press("Enter");
    await settle();
    expect(value(s)).toBe("/plan ");
    expect(s.find("commands")).toBeNull();
    expect(s.calls("send")).toHaveLength(0);
    press("Enter");
    await settle();
    expect(s.calls("send")[0]).toMatchObject({ text: "/plan" });
  });

  it("are taken with Tab or a click, put away with Escape, and sent when the whole name stands there", async () => {
    const s = await stage("main", "7");
    await type(s, "/com");
    press("Tab");
    await settle();
    expect(value(s)).toBe("/compact ");
    await type(s, "");
    await type(s, "/re");
    s.get("command").click();
    await settle();
    expect(value(s)).toBe("/review ");
    await type(s, "");
    await type(s, "/re");
    press("Escape");
    await settle();
    expect(s.find("commands")).toBeNull();
    expect(value(s)).toBe("/re");
    press("ArrowDown");
    press("Enter");
    await settle();
    expect(s.calls("send")[0]).toMatchObject({ text: "/re" });
    await type(s, "/plan");
    expect(names(s)).toEqual(["/plan"]);
    press("Enter");
    await settle();
    expect(s.calls("steer")[0]).toMatchObject({ text: "/plan" });
  });

  it("are not asked for where an agent has none", async () => {
    const { scene } = await import("../src/lib/demo/scenes");
    const snapshot = scene("main").snapshot;
    const s = await stage({ ...snapshot, providers: snapshot.providers.map((p) => ({ ...p, hasCommands: false })) }, "7");
    await type(s, "/");
    expect(s.find("commands")).toBeNull();
    expect(s.calls("session_commands")).toHaveLength(0);
    expect(s.get("composer-input").hasAttribute("aria-haspopup")).toBe(false);
  });
});

describe("the composer", () => {
  it("sends when idle, and offers no mode", async () => {
    const s = await stage("main", "7");
    expect(s.find("mode-steer")).toBeNull();
    expect(s.get("composer-effect").textContent).toContain("Starts a turn");
    await type(s, "  Go on  ");
    press("Enter");
    await settle();
    const [sent] = s.calls("send");
    expect(sent).toMatchObject({ session: "7", text: "Go on" });
    expect(sent!.message).toMatch(/^[0-9a-f]{32}$/);
    expect(value(s)).toBe("");
  });

  it("steers or queues while a turn runs, remembers which, and says what it does", async () => {
    const s = await stage("main", "4");
    expect(s.get("composer-effect").textContent).toContain("Read during this turn");
    await type(s, "one");
    press("Enter");
    await settle();
    expect(s.calls("steer")).toHaveLength(1);
    s.get("mode-queue").click();
    await settle();
    expect(s.get("composer-effect").textContent).toContain("Sent when this turn ends");
    await type(s, "two");
    s.get("send").click();
    await settle();
    expect(s.calls("send")).toHaveLength(1);
    const again = await stage("main", "4");
    expect(again.get("mode-queue").getAttribute("aria-checked")).toBe("true");
  });

  it("uses the other mode once with Ctrl Enter", async () => {
    const s = await stage("main", "4");
    await type(s, "later");
    press("Enter", { ctrlKey: true });
    await settle();
    expect(s.calls("steer")).toHaveLength(0);
    expect(s.calls("send")).toHaveLength(1);
    expect(s.get("mode-steer").getAttribute("aria-checked")).toBe("true");
  });

  it("starts a new line with Shift Enter, and does nothing while a word is composed", async () => {
    const s = await stage("main", "7");
    await type(s, "x");
    press("Enter", { shiftKey: true });
    press("Enter", { isComposing: true });
    await settle();
    expect(s.calls("send")).toEqual([]);
  });

  it("keeps what was typed when sending is refused, over switches, and over restarts", async () => {
    const s = await stage("main", "7");
    s.shell.refuse = { send: "The disk is full." };
    await type(s, "precious");
    press("Enter");
    await settle();
    expect(value(s)).toBe("precious");
    expect(s.get("composer-effect").textContent).toContain("The disk is full.");
    app.open("8");
    await settle();
    expect(value(s)).toBe("");
    app.open("7");
    await settle();
    expect(value(s)).toBe("precious");
    const again = await stage("main", "7");
    expect(value(again)).toBe("precious");
  });

  it("uses another name for every message", async () => {
    const s = await stage("main", "4");
    for (const text of ["a", "b", "c"]) {
      await type(s, text);
      press("Enter");
      await settle();
    }
    expect(new Set(s.calls("steer").map((c) => c.message)).size).toBe(3);
  });

  it("edits and removes queued messages, and gives back what was typed before", async () => {
    const s = await stage("main", "4");
    await type(s, "half a thought");
    s.get("queued-edit").click();
    await settle();
    expect(value(s)).toBe("Then open a pull request with the notes.");
    await type(s, "Then open a draft.");
    press("Enter");
    await settle();
    expect(s.calls("edit_queued")).toEqual([{ session: "4", message: "m1", text: "Then open a draft." }]);
    expect(value(s)).toBe("half a thought");
    s.get("queued-remove").click();
    await settle();
    expect(s.all("queued")).toEqual([]);
  });

  it("keeps an edit as a new message when the queued one was sent meanwhile", async () => {
    const s = await stage("main", "4");
    s.get("queued-edit").click();
    await settle();
    await type(s, "changed");
    s.shell.change("4", { queue: [] });
    await settle();
    expect(value(s)).toBe("changed");
    press("Enter");
    await settle();
    expect(s.calls("edit_queued")).toEqual([]);
    expect(s.calls("steer")).toHaveLength(1);
  });
});

describe("keys", () => {
  it("Esc twice interrupts; once says so", async () => {
    const s = await stage("main", "4");
    press("Escape");
    await settle();
    expect(s.get("esc-once")).not.toBeNull();
    expect(s.calls("interrupt")).toEqual([]);
    press("Escape");
    await settle();
    expect(s.calls("interrupt")).toEqual([{ session: "4" }]);
  });

  it("Esc does nothing where no turn runs", async () => {
    const s = await stage("main", "7");
    press("Escape");
    press("Escape");
    await settle();
    expect(s.calls("interrupt")).toEqual([]);
  });

  it("go from session to session, to the next that needs you, and around the places", async () => {
    await stage("main", "2");
    press("ArrowDown", { altKey: true });
    expect(app.opened).toBe("3");
    press("ArrowUp", { altKey: true });
    expect(app.opened).toBe("2");
    press("n", { altKey: true });
    expect(app.opened).toBe("1");
    press("n", { altKey: true });
    await settle();
    expect(app.opened).toBe("2");
    const at: string[] = [];
    for (let i = 0; i < 4; i++) {
      press("F6");
      await settle();
      const el = document.activeElement as HTMLElement;
      at.push(el.closest(".side .scroll") ? "list" : el.closest(".who") ? "accounts" : el.closest(".comp") ? "composer" : el.closest(".log") ? "transcript" : "?");
    }
    expect(new Set(at)).toEqual(new Set(["list", "accounts", "composer", "transcript"]));
  });

  it("open search, settings, a new session, hide and quit", async () => {
    const s = await stage("main");
    press("k", { ctrlKey: true });
    await settle();
    expect(document.activeElement).toBe(s.get("search"));
    press("w", { ctrlKey: true });
    expect(s.calls("hide_window")).toHaveLength(1);
    press("q", { ctrlKey: true });
    await settle();
    expect(s.calls("quit")).toEqual([]);
    s.get("quit-wait").click();
    await settle();
    expect(s.calls("quit")).toEqual([{ force: false }]);
    expect(s.find("quitting")).not.toBeNull();
  });

  it("in the list move by arrows, and typing searches", async () => {
    const s = await stage("main");
    const row = document.querySelector<HTMLElement>('[data-row="1"]')!;
    row.focus();
    press("ArrowDown");
    expect((document.activeElement as HTMLElement).dataset.row).toBe("2");
    press("End");
    expect((document.activeElement as HTMLElement).dataset.row).toBe(s.all("session").at(-1)!.dataset.session);
    press("Home");
    expect((document.activeElement as HTMLElement).dataset.row).toBe("1");
    press("x");
    expect(document.activeElement).toBe(s.get("search"));
    expect(document.querySelectorAll('[data-row][tabindex="0"]')).toHaveLength(1);
  });
});
