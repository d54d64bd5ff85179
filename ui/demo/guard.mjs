// The built window in a real browser, under its content security policy: it works, nothing is refused by the policy, nothing is
// requested, and hostile text runs nothing. Then the same page without guards must fail, or the check says nothing.
//
//   npm run build && npm run guard                   (needs chromium)
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { browser } from "./browser.mjs";

const dist = fileURLToPath(new URL("../dist", import.meta.url));
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; connect-src ipc: http://ipc.localhost; "
  + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'";
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

const HOSTILE = [
  "<script>window.pwned=1</script>", "<img src=x onerror='window.pwned=1'>", "<svg onload='window.pwned=1'>", "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
  "[x](javascript:window.pwned=1)", "![x](http://127.0.0.1:1/pixel)", "<details open ontoggle='window.pwned=1'>", "<a href='javascript:window.pwned=1'>x</a>",
  "&nbsp;&copy;&amp;lt; &#106;avascript:x", "| a |\n|--|\n| <img src=x onerror='window.pwned=1'> |", "**bold** `code` [ok](https://ok.example)",
];

/** Runs in the page before anything else: a shell of a few lines. */
function stub(hostile) {
  Object.freeze(Object.prototype);
  window.refused = [];
  document.addEventListener("securitypolicyviolation", (e) => window.refused.push(`${e.violatedDirective}: ${e.blockedURI} ${e.sample}`));
  const now = Date.now();
  const usage = { totalTokens: 1, inputTokens: 1, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0, contextTokens: 50, contextWindow: 100 };
  const settings = { model: null, effort: null, approvalMode: null, sandbox: null };
  const turn = { id: "t", startedAt: now, dispatched: true, retrying: null, interrupting: false, text: hostile[0], steers: [] };
  const session = {
    id: "1", provider: "p", title: hostile[1], folder: "/x", group: "needsYou", status: { type: "needsApproval", count: 1 }, account: "1", onOldAccount: false, preview: hostile[2], unread: false,
    archived: false, activeAt: now, turn, lastTurn: null, queue: [{ id: "q", text: hostile[1], at: now, delivery: "queued" }], undecided: [], waitsFor: hostile[1], goal: null, plan: [{ text: hostile[1], status: "running" }], usage, settings, failure: null,
  };
  const account = { id: "1", label: hostile[1], identity: hostile[1], plan: null, kind: "apiKey", current: true, state: { type: "signedIn" }, limits: [{ windowMinutes: 300, usedPercent: 85, resetsAt: now }], verifiedAt: null, finishingTurns: 0, revocationOwed: false };
  const snapshot = {
    seq: 1, now, version: "0", home: "/x", keychain: { type: "unlocked" }, signIns: [], sessions: [session], quit: null, recovery: null, fatal: null,
    providers: [{ id: "p", name: "Agent", installed: { type: "found", path: "/x", version: "1" }, current: "1", accounts: [account], models: [], signIn: ["browser", "apiKey"], install: [], canSteer: true, hasGoals: true, finishingTurns: 0 }],
    approvals: [{ id: "a", session: "1", turn: "t", body: { type: "command", command: hostile[1], display: hostile[1], cwd: "/x", mayRunUnsandboxed: true }, reason: hostile[0], choices: [{ kind: "allow", rule: [] }, { kind: "deny", rule: [] }], item: null, state: { type: "pending" }, askedAt: now }],
    settings: { notifyCompleted: true, notifyApprovals: true, notifyFailures: true, notifySignOuts: true, muted: false, quietHours: null, scheme: "system", textSize: 110, quitDeadline: null, onboarded: true },
  };
  const entries = hostile.flatMap((text, i) => [
    { ordinal: 2 * i, id: `u${i}`, turn: "t", completed: true, at: now, body: { type: "userMessage", text } },
    { ordinal: 2 * i + 1, id: `m${i}`, turn: "t", completed: true, at: now, body: { type: "agentMessage", text, finalAnswer: true } },
  ]);
  let channel;
  window.calls = [];
  window.__TAURI_INTERNALS__ = {
    transformCallback: () => 1,
    async invoke(command, args) {
      window.calls.push(command);
      if (command === "watch") { channel = args.channel; channel.onmessage([{ type: "snapshot", snapshot }]); }
      if (command === "open_session") channel.onmessage([{ type: "transcript", session: "1", events: [{ type: "page", page: { session: "1", entries, before: null, total: entries.length } }] }]);
      if (command === "diagnostics") return { version: "0" };
      if (command === "open_link") return { host: "ok.example", opened: false };
      return null;
    },
  };
}

const requested = [];
const server = createServer((request, response) => {
  requested.push(request.url);
  const path = request.url === "/" ? "/index.html" : request.url;
  try {
    const body = readFileSync(join(dist, path));
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream", ...(request.headers["x-no-policy"] ? {} : { "content-security-policy": POLICY }) });
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const url = `http://127.0.0.1:${server.address().port}/`;

const problems = [];
const say = (ok, what) => { console.log(`${ok ? "ok" : "NOT"}  ${what}`); if (!ok) problems.push(what); };

const js = readdirSync(join(dist, "assets")).filter((f) => f.endsWith(".js")).map((f) => readFileSync(join(dist, "assets", f), "utf8")).join("\n");
say(!/DemoShell|northwind|demo agent/i.test(js), "the demo is not in the bundle");
say(!/data:|<style|style="/.test(readFileSync(join(dist, "index.html"), "utf8")), "the page has nothing inline");

const b = await browser();
try {
  await b.page("Page.addScriptToEvaluateOnNewDocument", { source: `(${stub})(${JSON.stringify(HOSTILE)})` });
  await b.page("Page.navigate", { url });
  await b.until("document.querySelector('[data-row]')");
  await b.evaluate("document.querySelector('[data-row]').click()");
  await b.until("document.querySelectorAll('[data-entry]').length > 5");
  await b.evaluate("document.querySelector('[data-testid=open-settings]').click()");
  await b.until("document.querySelector('[data-testid=settings]')");
  for (const page of ["notifications", "quitting", "appearance", "diagnostics", "accounts"]) {
    await b.evaluate(`document.querySelector('[data-testid=page-${page}]').click()`);
    await b.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  }
  await b.evaluate("document.querySelector('[data-testid=add-account]').click()");
  await b.until("document.querySelector('dialog[open]')");
  await b.evaluate("document.querySelector('dialog').dispatchEvent(new Event('cancel', { cancelable: true }))");
  await b.evaluate("document.querySelector('[data-testid=settings-back]').click()");
  await b.evaluate("document.querySelector('[data-row]').click()");
  await b.until("document.querySelector('.md .link')");
  await b.evaluate("document.querySelector('.md .link').click()");
  await b.until("document.querySelector('[data-testid=link-url]')");
  say((await b.evaluate("document.querySelector('.meter i').style.width")) !== "", "meters have their width");
  say((await b.evaluate("document.documentElement.style.fontSize")) === "17.6px", "the text size setting is applied");
  const refused = await b.evaluate("window.refused");
  say(refused.length === 0, `the policy refused nothing ${refused.join("; ")}`);
  say((await b.evaluate("window.pwned")) === undefined, "no hostile text ran");
  say((await b.evaluate("document.querySelectorAll('.md script, .md img, .md iframe, .md a, img[src*=\"127.0.0.1:1\"]').length")) === 0, "no hostile element exists");
  const own = b.heard.filter((m) => m.method === "Network.requestWillBeSent").map((m) => m.params.request.url).filter((u) => u !== "about:blank");
  say(own.length > 2 && own.every((u) => u.startsWith(url)), `nothing was requested but the page's own files ${own.filter((u) => !u.startsWith(url)).join(" ")}`);
  const thrown = b.heard.filter((m) => m.method === "Runtime.exceptionThrown").map((m) => m.params.exceptionDetails.exception?.description);
  say(thrown.length === 0, `nothing was thrown ${thrown.join("; ")}`);
  const blocked = await b.evaluate(`(() => { try { document.createElement("div").innerHTML = "<b>x</b>"; return false; } catch { return true; } })()`);
  say(blocked, "control: markup from a string is refused");
  // Control: without the policy and put in as markup, the same text does run.
  await b.page("Network.setExtraHTTPHeaders", { headers: { "x-no-policy": "1" } });
  await b.page("Network.setCacheDisabled", { cacheDisabled: true });
  await b.page("Page.navigate", { url: `${url}?open` });
  await b.page("Page.navigate", { url });
  await b.until("document.querySelector('[data-row]')");
  await b.evaluate(`document.body.insertAdjacentHTML("beforeend", ${JSON.stringify(HOSTILE[1])})`);
  await b.until("window.pwned === 1");
  say(true, "control: as markup it would have run");
} catch (error) {
  say(false, error.message);
} finally {
  await b.close();
  server.close();
}
process.exit(problems.length === 0 ? 0 : 1);
