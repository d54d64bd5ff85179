import { createServer } from "vite";
import { writeFileSync } from "node:fs";
import { browser } from "./demo/browser.mjs";
const server = await createServer({ logLevel: "error", server: { port: 5175, hmr: false } });
await server.listen();
const b = await browser();
const frame = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";
try {
  await b.page("Emulation.setDeviceMetricsOverride", { width: 1176, height: 816, deviceScaleFactor: 1, mobile: false });
  await b.page("Page.navigate", { url: "http://127.0.0.1:5175/#long" });
  await b.until("document.querySelector('[data-row=\"99\"]')");
  console.log("open long", await b.evaluate(`(async () => { const t = performance.now(); document.querySelector('[data-row="99"]').click(); await ${frame}; return performance.now() - t; })()`));
  console.log(await b.evaluate(`({nodes: document.querySelectorAll('*').length, rows: document.querySelectorAll('[data-entry]').length, gap: (() => { const l = document.querySelector('.log'); return l.scrollHeight - l.scrollTop - l.clientHeight; })(), last: [...document.querySelectorAll('[data-entry]')].at(-1).textContent.slice(0,40)})`));
  // scroll up by wheel
  for (let i = 0; i < 40; i++) {
    await b.page("Input.dispatchMouseEvent", { type: "mouseWheel", x: 700, y: 400, deltaX: 0, deltaY: -600 });
    const before = await b.evaluate(`(() => { const e = document.elementFromPoint(700, 400)?.closest('[data-entry]'); return e ? [e.dataset.entry, Math.round(e.getBoundingClientRect().top)] : null; })()`);
    await b.evaluate(frame); await b.evaluate(frame);
    const after = before && await b.evaluate(`(() => { const e = document.querySelector('[data-entry="${before[0]}"]'); return e ? Math.round(e.getBoundingClientRect().top) : null; })()`);
    const st = await b.evaluate(`(() => { const l = document.querySelector('.log'); return { top: Math.round(l.scrollTop), h: l.scrollHeight, rows: document.querySelectorAll('[data-entry]').length, first: document.querySelector('[data-entry]').dataset.entry }; })()`);
    if (i % 4 === 0 || (after !== null && before && Math.abs(after - before[1]) > 2)) console.log(i, before, after, JSON.stringify(st));
  }
  const { data } = await b.page("Page.captureScreenshot", { format: "png" });
  writeFileSync("/tmp/tk/shots/ui/adhoc-scrolled.png", Buffer.from(data, "base64"));
  // streaming
  await b.page("Page.navigate", { url: "about:blank" });
  await b.page("Page.navigate", { url: "http://127.0.0.1:5175/#main/7" });
  await b.until("document.querySelector('[data-testid=composer-input]')");
  await b.evaluate("document.querySelector('[data-testid=composer-input]').focus()");
  await b.page("Input.insertText", { text: "Look at rounding" });
  await b.page("Input.dispatchKeyEvent", { type: "keyDown", key: "Enter", code: "Enter", text: "\r" });
  await b.until("document.body.innerText.includes('small and safe')");
  await b.evaluate(frame);
  writeFileSync("/tmp/tk/shots/ui/adhoc-streamed.png", Buffer.from((await b.page("Page.captureScreenshot", { format: "png" })).data, "base64"));
  for (const e of b.heard.filter((m) => m.method === "Runtime.exceptionThrown")) console.log("THROWN", e.params.exceptionDetails.exception?.description);
} finally { await b.close(); await server.close(); }
process.exit(0);
