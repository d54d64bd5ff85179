import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { COMMAND, snapshot, command, HOME } from "../src/lib/demo/data";
import { press, settle, stage } from "./stage";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

const arm = async () => {
  vi.advanceTimersByTime(500);
  await settle();
};

describe("an approval", () => {
  it("shows the exact command, its folder, and that it leaves the sandbox", async () => {
    const s = await stage("main", "2");
    expect(s.get("approval").querySelector("pre")!.textContent).toBe(COMMAND);
    expect(s.get("approval").textContent).toContain("~/src/billing");
    expect(s.get("approval").textContent).toContain("outside the sandbox");
  });

  it("ignores keys and clicks for 500 ms after it appears, then answers to them", async () => {
    const s = await stage("main", "2");
    press("a", { altKey: true });
    s.get("approval-allow").click();
    vi.advanceTimersByTime(499);
    await settle();
    press("a", { altKey: true });
    s.get("approval-deny").click();
    await settle();
    expect(s.calls("answer")).toEqual([]);
    vi.advanceTimersByTime(1);
    await settle();
    expect(s.get("approval").dataset.armed).toBe("true");
    press("a", { altKey: true });
    await settle();
    expect(s.calls("answer")).toEqual([{ approval: "a2", answer: { type: "choice", kind: "allow" } }]);
  });

  it.each([["s", "allowForSession"], ["d", "deny"]])("Alt %s answers %s", async (key, kind) => {
    const s = await stage("main", "2");
    await arm();
    press(key, { altKey: true });
    await settle();
    expect(s.calls("answer")).toEqual([{ approval: "a2", answer: { type: "choice", kind } }]);
  });

  it("does not answer to other keys, to a held key, or behind a dialog", async () => {
    const s = await stage("main", "2");
    await arm();
    press("a");
    press("a", { altKey: true, ctrlKey: true });
    press("a", { altKey: true, repeat: true });
    press("n", { ctrlKey: true });
    await settle();
    expect(document.querySelector("dialog[open]")).not.toBeNull();
    press("a", { altKey: true });
    await settle();
    expect(s.calls("answer")).toEqual([]);
  });

  it("is answered once, however often one clicks", async () => {
    const s = await stage("main", "2");
    await arm();
    s.shell.refuse = {};
    const allow = s.get("approval-allow");
    allow.click();
    allow.click();
    press("a", { altKey: true });
    await settle();
    expect(s.calls("answer")).toHaveLength(1);
  });

  it("can be answered again when the answer was refused, and says so", async () => {
    const s = await stage("main", "2");
    await arm();
    s.shell.refuse = { answer: "The agent has stopped." };
    s.get("approval-allow").click();
    await settle();
    expect(s.get("problem").textContent).toContain("The agent has stopped.");
    s.shell.refuse = {};
    s.get("approval-deny").click();
    await settle();
    expect(s.calls("answer")).toHaveLength(2);
  });

  it("takes no focus when it appears", async () => {
    const s = await stage("main", "3");
    s.get("composer-input").focus();
    s.shell.snapshot = { ...s.shell.snapshot, approvals: [...s.shell.snapshot.approvals, command("a9", "3", 1, "ls", "/")] };
    s.shell.change("3", { group: "needsYou", status: { type: "needsApproval", count: 1 } });
    await settle();
    expect(s.find("approval")).not.toBeNull();
    expect(document.activeElement).toBe(s.get("composer-input"));
    expect(s.get("announce-urgent").textContent).toContain("ls");
  });

  it("waits again when the next one takes its place", async () => {
    const base = snapshot();
    const s = await stage({ ...base, approvals: [...base.approvals, command("a3", "2", base.now, "rm -rf build", `${HOME}/src/billing`)] }, "2");
    expect(s.get("approval").textContent).toContain("1 of 2");
    await arm();
    press("a", { altKey: true });
    await settle();
    s.shell.change("2", { status: { type: "needsApproval", count: 1 }, group: "needsYou" });
    await settle();
    expect(s.get("approval").dataset.approval).toBe("a3");
    press("a", { altKey: true });
    await settle();
    expect(s.calls("answer")).toHaveLength(1);
  });

  it("makes hidden characters visible, and says that it did", async () => {
    const base = snapshot();
    const hidden = { ...command("a3", "2", 0, "rm \u202etxt", "/"), body: { type: "command" as const, command: "rm \u202etxt", display: "rm ⟨U+202E⟩txt", cwd: "/", mayRunUnsandboxed: false } };
    const s = await stage({ ...base, approvals: [hidden] }, "2");
    expect(s.get("approval").textContent).not.toContain("\u202e");
    expect(s.get("approval").textContent).toContain("⟨U+202E⟩");
    expect(s.get("approval").textContent).toContain("Hidden characters");
  });

  it("that was answered elsewhere goes, and says where for a moment", async () => {
    const base = snapshot();
    const s = await stage("main", "2");
    const at = Date.now();
    s.shell.snapshot = { ...base, approvals: base.approvals.map((a) => (a.id === "a2" ? { ...a, state: { type: "answered", choice: "allow", by: "cli", at } } : a)) };
    s.shell.change("2", { group: "running", status: { type: "running" } });
    await settle();
    expect(s.find("approval")).toBeNull();
    expect(s.get("answered-elsewhere").textContent).toContain("Allowed in the CLI");
    press("a", { altKey: true });
    await settle();
    expect(s.calls("answer")).toEqual([]);
  });

  it("with one question is answered by its options", async () => {
    const s = await stage("main", "1");
    await arm();
    s.all("approval-option")[1]!.click();
    await settle();
    expect(s.calls("answer")).toEqual([{ approval: "a1", answer: { type: "answers", answers: { q: ["No, delete it now"] } } }]);
  });

  it("with several questions waits for all of them", async () => {
    const s = await stage("states", "s6");
    await arm();
    const send = s.get("approval-send") as HTMLButtonElement;
    expect(send.disabled).toBe(true);
    s.get("approval").querySelectorAll<HTMLInputElement>('input[type="radio"]')[1]!.click();
    const secret = s.get("approval").querySelector<HTMLInputElement>('input[type="password"]')!;
    secret.value = "hunter2";
    secret.dispatchEvent(new Event("input", { bubbles: true }));
    await settle();
    expect(send.disabled).toBe(false);
    send.click();
    await settle();
    expect(s.calls("answer")).toEqual([{ approval: "p3", answer: { type: "answers", answers: { a: ["SQLite"], b: ["hunter2"] } } }]);
    expect(JSON.stringify(localStorage)).not.toContain("hunter2");
  });

  it("with a form sends its JSON", async () => {
    const s = await stage("states", "s9");
    await arm();
    const project = s.get("approval").querySelector<HTMLInputElement>(".field input")!;
    project.value = "OPS";
    project.dispatchEvent(new Event("input", { bubbles: true }));
    await settle();
    s.get("approval-send").click();
    await settle();
    expect(s.calls("answer")).toEqual([{ approval: "p4", answer: { type: "form", json: '{"project":"OPS","urgent":false}' } }]);
  });

  it("in a narrow window is answered in its row", async () => {
    const s = await stage("main", undefined, 500);
    await arm();
    const row = document.querySelector('[data-session="2"]')!;
    expect(row.querySelector("pre")!.textContent).toBe(COMMAND);
    row.querySelector<HTMLElement>('[data-testid="approval-deny"]')!.click();
    await settle();
    expect(s.calls("answer")).toEqual([{ approval: "a2", answer: { type: "choice", kind: "deny" } }]);
  });

  it("that is long can be denied at once, but not allowed before its end was shown", async () => {
    const height = vi.spyOn(HTMLElement.prototype, "scrollHeight", "get").mockReturnValue(900);
    const client = vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(250);
    const s = await stage("states", "s5");
    await arm();
    const allow = s.get("approval-allow") as HTMLButtonElement;
    expect(allow.disabled).toBe(true);
    press("a", { altKey: true });
    await settle();
    expect(s.calls("answer")).toEqual([]);
    const pre = s.get("approval").querySelector("pre")!;
    pre.scrollTop = 650;
    pre.dispatchEvent(new Event("scroll"));
    await settle();
    expect(allow.disabled).toBe(false);
    height.mockRestore();
    client.mockRestore();
  });
});
