// Takes pictures of the demo's scenes, light and dark, wide and narrow.
//
//   npm run shots -- <folder> [part of a name]       (needs chromium)
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createServer } from "vite";
import { browser } from "./browser.mjs";

const [folder = "shots", only = ""] = process.argv.slice(2);
const click = (id) => `document.querySelector('[data-testid="${id}"]').click()`;
const WIDE = [1176, 816];
const NARROW = [504, 768];

const SHOTS = [
  ["01-main", "main/2", WIDE],
  ["01b-running", "main/4", WIDE],
  ["01c-finished", "main/6", WIDE],
  ["01d-failed", "main/5", WIDE],
  ["02-narrow", "main", NARROW],
  ["02b-narrow-session", "main/4", NARROW],
  ["02c-narrow-settings", "main/settings", NARROW],
  ["03-accounts", "main/settings", [1176, 1081]],
  ["03a-keychain-locked", "keychain/settings", WIDE],
  ["03a-keychain-absent", "nokeychain/settings", WIDE],
  ["03b-sign-in", "main/settings", WIDE, [click("add-account")]],
  ["03b-device-code", "main/settings", WIDE, [click("add-account"), click("method-deviceCode"), click("sign-in-start")]],
  ["03b-api-key", "main/settings", WIDE, [click("add-account"), click("method-apiKey")]],
  ["03b-browser", "main/settings", WIDE, [click("add-account"), click("sign-in-start")]],
  ["03c-sign-out", "main/settings", WIDE, [click("account-sign-out")]],
  ["03d-notifications", "main/settings/notifications", WIDE],
  ["03e-quitting", "main/settings/quitting", WIDE],
  ["03f-appearance", "main/settings/appearance", WIDE],
  ["03g-diagnostics", "main/settings/diagnostics", WIDE],
  ["04-first-run", "firstrun", WIDE],
  ["04b-nothing", "nothing", WIDE],
  ["05-quitting", "quitting", [700, 600]],
  ["05a-quit-now", "quitting", [700, 600], [click("quit-now")]],
  ["05b-recovery", "recovery", WIDE],
  ["06-empty", "empty", WIDE],
  ["06-calm", "calm", WIDE],
  ["06-fatal", "fatal/2", WIDE],
  ["06-new-session", "main", WIDE, [click("new-session")]],
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((n) => [`06-state-${n}`, `states/s${n}`, WIDE]),
  ["07-long", "long/99", WIDE],
  ["08-menu", "main/2", WIDE, [`document.querySelector('.head .menubox button').click()`]],
  ["08-models", "main/2", WIDE, [`document.querySelector('.foot .menubox button').click()`]],
  ["08-link", "main/4", WIDE, [`document.querySelector('.md .link').click()`]],
  ["09-threads", "main/2", WIDE, [click("new-session"), click("new-how-thread")]],
  ["09-process", "main/2", WIDE, [`document.querySelector('.head .menubox button').click()`, `[...document.querySelectorAll('[role=menuitem]')].find((i) => i.textContent.includes('process')).click()`]],
  ["09-processes", "main/settings", [1176, 1081], [click("processes")]],
  ["09-changes", "main/2", WIDE, [click("changes-toggle")]],
  ["09-split", "main/2", [1520, 816], [click("changes-toggle")]],
  ["08-find", "main/4", WIDE, [`window.dispatchEvent(new KeyboardEvent('keydown', { key: 'f', code: 'KeyF', ctrlKey: true }))`]],
];

mkdirSync(folder, { recursive: true });
const server = await createServer({ logLevel: "error", server: { port: 5174, hmr: false } });
await server.listen();
const b = await browser();
let failed = false;
try {
  for (const [name, hash, [width, height], actions = []] of SHOTS) {
    if (!name.includes(only)) continue;
    for (const scheme of ["light", "dark"]) {
      await b.page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      await b.page("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
      await b.page("Page.navigate", { url: "about:blank" });
      await b.page("Page.navigate", { url: `http://127.0.0.1:5174/#${hash}` });
      await b.until("document.querySelector('#app')?.children.length");
      await b.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 120))))");
      for (const action of actions) {
        await b.evaluate(action);
        await b.evaluate("new Promise((done) => setTimeout(done, 80))");
      }
      const { data } = await b.page("Page.captureScreenshot", { format: "png" });
      writeFileSync(join(folder, `${name}-${scheme}.png`), Buffer.from(data, "base64"));
    }
  }
  for (const e of b.heard.filter((m) => m.method === "Runtime.exceptionThrown" || (m.method === "Log.entryAdded" && m.params.entry.level === "error"))) {
    failed = true;
    console.error(JSON.stringify(e.params.exceptionDetails?.exception?.description ?? e.params.entry).slice(0, 600));
  }
} finally {
  await b.close();
  await server.close();
}
process.exit(failed ? 1 : 0);
