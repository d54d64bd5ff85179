import { describe, expect, it } from "vitest";
import { app } from "../src/lib/app.svelte";
import { settle, stage, type Stage } from "./stage";

const KEY = "sk-very-secret-0123456789";

const put = async (field: HTMLElement, value: string) => {
  (field as HTMLInputElement).value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await settle();
};

async function keyForm(): Promise<Stage> {
  const s = await stage("main");
  app.show({ type: "signIn", provider: "codex" });
  await settle();
  s.get("method-apiKey").click();
  await settle();
  return s;
}

/** Everything of the window and its state that could still hold the key, but not what the shell was given. */
function everywhere(): string {
  const fields = [...document.querySelectorAll("input, textarea")].map((f) => (f as HTMLInputElement).value);
  const own: unknown[] = [app.snapshot, app.view, app.dialog, app.problem, [...app.answering]];
  return [document.documentElement.outerHTML, ...fields, JSON.stringify(own), JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage }), location.href, document.title].join("\n");
}

describe("signing in with a key", () => {
  it("hands the key over once and keeps it nowhere", async () => {
    const s = await keyForm();
    await put(s.get("sign-in-label"), "ci");
    const field = s.get("sign-in-key") as HTMLInputElement;
    expect(field.type).toBe("password");
    await put(field, KEY);
    expect(everywhere()).toContain(KEY); // negative control: while it is typed, the check sees it
    s.get("sign-in-start").click();
    expect(field.value).toBe("");
    await settle();
    expect(s.calls("sign_in")).toEqual([{ provider: "codex", account: null, label: "ci", method: "apiKey", key: KEY }]);
    expect(everywhere()).not.toContain(KEY);
  });

  it("forgets it also when the sign-in is refused, and asks for it again", async () => {
    const s = await keyForm();
    s.shell.refuse = { sign_in: "The keychain is locked." };
    await put(s.get("sign-in-key"), KEY);
    s.get("sign-in-start").click();
    await settle();
    expect(s.get("sign-in-failure").textContent).toContain("The keychain is locked.");
    expect(everywhere()).not.toContain(KEY);
    expect((s.get("sign-in-start") as HTMLButtonElement).disabled).toBe(true);
  });

  it("forgets it when the dialog is cancelled or another method is chosen", async () => {
    const s = await keyForm();
    await put(s.get("sign-in-key"), KEY);
    s.get("method-browser").click();
    await settle();
    expect(everywhere()).not.toContain(KEY);
    const t = await keyForm();
    await put(t.get("sign-in-key"), KEY);
    document.querySelector("dialog")!.dispatchEvent(new Event("cancel", { cancelable: true }));
    await settle();
    expect(document.querySelector("dialog")).toBeNull();
    expect(everywhere()).not.toContain(KEY);
  });
});

describe("signing in elsewhere", () => {
  it("opens the page by the shell, and closes when the attempt is gone", async () => {
    const s = await stage("main");
    app.show({ type: "signIn", provider: "codex" });
    await settle();
    s.get("sign-in-start").click();
    await settle();
    expect(s.calls("open_link")).toEqual([{ url: "https://auth.example.com/authorize?client=turnkeep", confirmed: true }]);
    s.shell.snapshot = { ...s.shell.snapshot, signIns: [] };
    s.shell.emit();
    await settle();
    expect(app.dialog).toBeNull();
  });

  it("shows a device code large, with the host, and cancels", async () => {
    const s = await stage("main");
    app.show({ type: "signIn", provider: "codex" });
    await settle();
    s.get("method-deviceCode").click();
    await settle();
    s.get("sign-in-start").click();
    await settle();
    expect(s.get("device-code").textContent).toBe("KQ4T-9WDN");
    expect(s.get("device-code").getAttribute("aria-label")).toContain("K Q 4 T dash");
    expect(s.calls("open_link").every((c) => c.confirmed === false)).toBe(true);
    s.get("sign-in-cancel").click();
    await settle();
    expect(s.calls("cancel_sign_in")).toHaveLength(1);
    expect(app.dialog).toBeNull();
  });

  it("says why an attempt failed and lets one start over", async () => {
    const s = await stage("main");
    app.show({ type: "signIn", provider: "codex" });
    await settle();
    s.get("sign-in-start").click();
    await settle();
    s.shell.snapshot = { ...s.shell.snapshot, signIns: s.shell.snapshot.signIns.map((a) => ({ ...a, failure: { code: "other", message: "The page was closed.", detail: null } })) };
    s.shell.emit();
    await settle();
    expect(s.get("sign-in-failure").textContent).toContain("The page was closed.");
    s.get("sign-in-start").click();
    await settle();
    expect(s.calls("cancel_sign_in")).toHaveLength(1); // the failed attempt is put away first
    expect(s.calls("sign_in")).toHaveLength(2);
  });
});

describe("signing out", () => {
  it("is after the running turns unless one says now", async () => {
    const s = await stage("main");
    app.go({ type: "settings", page: "accounts" });
    await settle();
    s.get("account-sign-out").click();
    await settle();
    expect(s.get("sign-out-do").textContent).toContain("Sign out after turns");
    s.get("sign-out-do").click();
    await settle();
    expect(s.calls("sign_out")).toEqual([{ account: "1", now: false }]);
    s.get("account-sign-out").click();
    await settle();
    s.get("sign-out-now").click();
    await settle();
    expect(s.get("sign-out-do").textContent).toContain("Interrupt 1 turn");
    s.get("sign-out-do").click();
    await settle();
    expect(s.calls("sign_out")[1]).toEqual({ account: "1", now: true });
  });

  it("says keychain locked, absent and item missing in words, each with what to do", async () => {
    const locked = await stage("keychain");
    app.go({ type: "settings", page: "accounts" });
    await settle();
    expect(locked.get("keychain-locked").textContent).toContain("never kept in a file");
    locked.get("unlock-keychain").click();
    await settle();
    expect(locked.calls("unlock_keychain")).toHaveLength(1);
    expect(document.querySelector('[data-state="itemMissing"]')!.textContent).toContain("deleted from the keychain");
    expect(document.querySelector('[data-state="rejected"]')!.textContent).toContain("401");
    const absent = await stage("nokeychain");
    app.go({ type: "settings", page: "accounts" });
    await settle();
    expect(absent.get("keychain-absent").textContent).toContain("org.freedesktop.secrets");
  });
});
