import { createServer } from "vite";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
const server = await createServer({ logLevel: "error", server: { port: 5176, hmr: false } });
await server.listen();
const xvfb = spawn("Xvfb", [":87", "-screen", "0", "1400x1000x24"], { stdio: "ignore" });
await new Promise((r) => setTimeout(r, 1500));
const driver = spawn("WebKitWebDriver", ["--port=4487"], { env: { ...process.env, DISPLAY: ":87", LANG: "en_GB.UTF-8", GDK_BACKEND: "x11", WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1", LIBGL_ALWAYS_SOFTWARE: "1" }, stdio: "ignore" });
await new Promise((r) => setTimeout(r, 1500));
const wd = async (method, path, body) => { const r = await fetch(`http://127.0.0.1:4487${path}`, { method, body: body ? JSON.stringify(body) : undefined }); const j = await r.json(); if (!r.ok) throw new Error(JSON.stringify(j.value).slice(0, 400)); return j.value; };
let id;
try {
  const s = await wd("POST", "/session", { capabilities: { alwaysMatch: { "webkitgtk:browserOptions": { binary: "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser", args: ["--automation"] } } } });
  id = s.sessionId;
  const js = (script, ...args) => wd("POST", `/session/${id}/execute/sync`, { script, args });
  await wd("POST", `/session/${id}/window/rect`, { width: 1176, height: 860 });
  for (const [name, hash, acts] of [["main", "main/2", []], ["running", "main/4", []], ["finished", "main/6", []], ["accounts", "main/settings", []], ["signin", "main/settings", [`document.querySelector('[data-testid=add-account]').click()`]], ["quit", "main/settings/quitting", []], ["states", "states/s6", []], ["long", "long/99", []], ["newsession", "main", [`document.querySelector('[data-testid=new-session]').click()`]]]) {
    await wd("POST", `/session/${id}/url`, { url: "about:blank" });
    await wd("POST", `/session/${id}/url`, { url: `http://127.0.0.1:5176/#${hash}` });
    for (let i = 0; i < 100 && !(await js("return document.querySelector('#app')?.children.length > 0")); i++) await new Promise((r) => setTimeout(r, 100));
    for (const a of acts) await js(a);
    await new Promise((r) => setTimeout(r, 600));
    console.log(name, await js("return [innerWidth, innerHeight, navigator.language, document.querySelector('.log') ? document.querySelector('.log').scrollHeight - document.querySelector('.log').scrollTop - document.querySelector('.log').clientHeight : null]"));
    writeFileSync(`/tmp/tk/shots/ui/webkit-${name}.png`, Buffer.from(await wd("GET", `/session/${id}/screenshot`), "base64"));
  }
} catch (e) { console.log("ERR", e.message); } finally {
  if (id) await wd("DELETE", `/session/${id}`).catch(() => {});
  driver.kill(); xvfb.kill(); await server.close();
}
process.exit(0);
