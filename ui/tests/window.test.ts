import axe from "axe-core";
import { describe, expect, it, vi } from "vitest";
import { app } from "../src/lib/app.svelte";
import { snapshot } from "../src/lib/demo/data";
import { words } from "../src/lib/words";
import { settle, stage } from "./stage";

/** Contrast and layout need a real browser; the tokens' contrast has its own check. */
const check = async (root: Element) => (await axe.run(root, { rules: { "color-contrast": { enabled: false }, region: { enabled: false } }, resultTypes: ["violations"] }))
  .violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 160)).join(" | ")}`);

const PLACES: [string, (() => void) | null][] = [
  ["calm", null], ["firstrun", null], ["quitting", null], ["recovery", null],
  ["main", () => app.open("2")], ["main", () => app.open("4")], ["states", () => app.open("s6")], ["states", () => app.open("s9")],
  ...(["accounts", "notifications", "quitting", "appearance", "diagnostics"] as const).map((page): [string, () => void] => ["main", () => app.go({ type: "settings", page })]),
  ["main", () => { app.dialog = { kind: "newSession" }; }], ["main", () => { app.dialog = { kind: "signIn", provider: "codex", account: null }; }],
  ["main", () => { app.dialog = { kind: "signOut", account: "1" }; }], ["main", () => { app.dialog = { kind: "goal", session: "4" }; }],
  ["main", () => { app.dialog = { kind: "link", url: "https://x.example", host: "x.example" }; }], ["main", () => { app.dialog = { kind: "quitNow" }; }],
];

describe("axe finds nothing", () => {
  it.each(PLACES.map(([scene, go], i) => [`${scene} (${i + 1})`, scene, go] as const))("in %s", async (_, scene, go) => {
    const s = await stage(scene);
    go?.();
    await settle();
    expect(await check(s.container)).toEqual([]);
  }, 30_000);

  it("would find a button without a name: the check can fail", async () => {
    const s = await stage("calm");
    s.container.querySelector("main")!.append(document.createElement("button"));
    expect((await check(s.container)).join()).toContain("button-name");
  });
});

describe("the window", () => {
  it("is titled by what needs you and what runs", async () => {
    await stage("main");
    expect(document.title).toBe("Turnkeep: 2 need you, 2 running");
  });

  it("shows the list or the session below 720 px, not both", async () => {
    const s = await stage("main", undefined, 500);
    expect(s.find("session-list")).not.toBeNull();
    expect(s.find("composer")).toBeNull();
    app.open("4");
    await settle();
    expect(s.find("session-list")).toBeNull();
    expect(s.find("composer")).not.toBeNull();
    s.get("back").click();
    await settle();
    expect(s.find("session-list")).not.toBeNull();
  });

  it("goes where the tray or a notification points", async () => {
    const s = await stage("main");
    s.shell.emit({ type: "show", view: { type: "session", session: "5" } });
    await settle();
    expect(s.get("session-title").textContent).toBe("Find the flaky login test");
    s.shell.emit({ type: "show", view: { type: "settings", page: "notifications" } });
    await settle();
    expect(s.get("page-notifications").getAttribute("aria-current")).toBe("page");
    s.shell.emit({ type: "show", view: { type: "signIn", provider: "codex" } });
    await settle();
    expect(app.dialog).toMatchObject({ kind: "signIn", provider: "codex" });
  });

  it("marks a finished session read after a second in a focused window, not before, not when unfocused", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const focus = vi.spyOn(document, "hasFocus").mockReturnValue(false);
    const s = await stage("main", "6");
    vi.advanceTimersByTime(5000);
    await settle();
    expect(s.calls("mark_read")).toEqual([]);
    focus.mockReturnValue(true);
    window.dispatchEvent(new Event("focus"));
    vi.advanceTimersByTime(999);
    await settle();
    expect(s.calls("mark_read")).toEqual([]);
    vi.advanceTimersByTime(1);
    await settle();
    expect(s.calls("mark_read")).toEqual([{ session: "6" }]);
    vi.useRealTimers();
  });

  it("on the first run says what was found, where it looked, and how to get the rest", async () => {
    const s = await stage("nothing");
    expect(s.get("first-run").textContent).toContain("4 places were searched");
    expect(s.get("first-run").textContent).toContain("/usr/local/bin");
    expect(s.get("first-run").textContent).toContain("npm install -g @openai/codex");
    s.get("look-again").click();
    s.get("skip-first-run").click();
    await settle();
    expect(s.calls("rescan_providers")).toHaveLength(1);
    expect(s.calls("change_settings")[0]).toMatchObject({ settings: { onboarded: true } });
    expect(s.find("first-run")).toBeNull();
  });

  it("offers the built-in agent on the first run, and begins with it at one click", async () => {
    const s = await stage("nothing");
    expect(s.get("first-run").textContent).toContain("No agent is installed yet");
    s.get("try-demo").click();
    await settle();
    expect(s.calls("try_demo")).toHaveLength(1);
    expect(s.calls("change_settings")[0]).toMatchObject({ settings: { onboarded: true } });
    expect(s.find("first-run")).toBeNull();
    expect((s.get("composer-input") as HTMLTextAreaElement).value).toBe(words.firstRun.demoMessage);
  });

  it("starts a session in a checked folder, and says what is wrong with one", async () => {
    const s = await stage("main");
    s.get("new-session").click();
    await settle();
    const folder = s.get("new-folder") as HTMLInputElement;
    const write = async (text: string) => {
      folder.value = text;
      folder.dispatchEvent(new Event("input", { bubbles: true }));
      s.get("new-create").click();
      await settle();
    };
    await write("nowhere");
    expect(document.querySelector("dialog [role=alert]")!.textContent).toContain("whole path");
    expect(s.calls("create_session")).toEqual([]);
    await write("~/src/atlas");
    expect(s.calls("create_session")[0]).toMatchObject({ folder: "/home/maria/src/atlas", provider: expect.any(String) as string });
    expect(app.dialog).toBeNull();
    expect(document.activeElement).toBe(s.get("composer-input"));
  });

  it("after an unexpected stop asks what to do with undecided messages", async () => {
    const s = await stage("recovery");
    expect(s.get("recovery").textContent).toContain("Continue with the 2019 folder.");
    s.get("recovery").querySelectorAll<HTMLElement>(".act button")[1]!.click();
    await settle();
    expect(s.calls("resolve_unknown")).toEqual([{ session: "1", resend: true }]);
    s.get("recovery-later").click();
    await settle();
    expect(s.find("recovery")).toBeNull();
  });

  it("quits at once only after saying what that interrupts", async () => {
    const s = await stage("quitting");
    expect(s.get("quitting").textContent).toContain("Waiting for 2 running turns");
    s.get("quit-now").click();
    await settle();
    expect(s.calls("quit")).toEqual([]);
    expect(document.querySelector("dialog")!.textContent).toContain("stops with its question unanswered");
    s.get("quit-force").click();
    await settle();
    expect(s.calls("quit")).toEqual([{ force: true }]);
  });

  it("says what else it waits for while quitting, also twice the same", async () => {
    const line = "Agent: its process is being stopped";
    const s = await stage({ ...snapshot(), sessions: [], approvals: [], quit: { since: 0, forced: false, waitingFor: [line, line], deadline: null } });
    expect(s.get("quitting").textContent).toContain(line);
  });

  it("follows the colour and text size settings", async () => {
    const s = await stage("main");
    expect(document.documentElement.dataset.theme).toBeUndefined();
    app.go({ type: "settings", page: "appearance" });
    await settle();
    s.get("scheme-dark").click();
    s.get("text-125").click();
    await settle();
    expect(document.documentElement.style.fontSize).toBe("20px");
    expect(s.calls("change_settings")).toHaveLength(2);
  });

  it("shows a refused command where one is, and lets it be dismissed", async () => {
    const s = await stage("main", "4");
    s.shell.refuse = { interrupt: "The turn has just ended." };
    s.get("interrupt").click();
    await settle();
    expect(s.get("problem").textContent).toContain("The turn has just ended.");
    s.get("problem").querySelector("button")!.click();
    await settle();
    expect(s.find("problem")).toBeNull();
  });

  it("says when the shell cannot be reached, and tries again", async () => {
    const s = await stage("main");
    const watch = vi.spyOn(s.shell, "watch").mockRejectedValueOnce("gone");
    await app.start();
    await settle();
    expect(document.body.textContent).toContain("does not answer");
    document.querySelector<HTMLElement>(".full button")!.click();
    await settle();
    expect(watch).toHaveBeenCalledTimes(2);
    expect(document.body.textContent).not.toContain("does not answer");
  });
});
