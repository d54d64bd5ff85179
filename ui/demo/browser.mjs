// A headless Chromium driven over its debugging pipe, without any package.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export async function browser() {
  const profile = mkdtempSync(join(tmpdir(), "turnkeep-shots-"));
  const child = spawn(process.env.CHROMIUM ?? "chromium", [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--lang=en-GB", "--force-color-profile=srgb", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank",
  ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], env: { ...process.env, LANG: "en_GB.UTF-8", LANGUAGE: "en_GB" } });
  const [, , , to, from] = child.stdio;
  let next = 1;
  const waiting = new Map();
  const heard = [];
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (chunk) => {
    rest += chunk;
    for (let end = rest.indexOf("\0"); end >= 0; end = rest.indexOf("\0")) {
      const message = JSON.parse(rest.slice(0, end));
      rest = rest.slice(end + 1);
      if (message.id) {
        const { done, fail } = waiting.get(message.id);
        waiting.delete(message.id);
        if (message.error) fail(new Error(JSON.stringify(message.error)));
        else done(message.result);
      } else heard.push(message);
    }
  });
  const call = (method, params = {}, sessionId) => new Promise((done, fail) => {
    const id = next++;
    waiting.set(id, { done, fail });
    to.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
  });
  const { targetId } = await call("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
  const page = (method, params) => call(method, params, sessionId);
  for (const domain of ["Page", "Runtime", "Network", "Log"]) await page(`${domain}.enable`);
  const { userAgent } = await call("Browser.getVersion");
  await page("Emulation.setLocaleOverride", { locale: "en-GB" });
  await page("Emulation.setUserAgentOverride", { userAgent, acceptLanguage: "en-GB" });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await page("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  return {
    page, heard, evaluate,
    /** Waits until the expression is true. */
    async until(expression, ms = 10_000) {
      const end = Date.now() + ms;
      while (!(await evaluate(`!!(${expression})`))) {
        if (Date.now() > end) throw new Error(`never true: ${expression}`);
        await new Promise((r) => setTimeout(r, 30));
      }
    },
    async close() {
      await call("Browser.close").catch(() => {});
      await new Promise((done) => (child.exitCode === null ? child.once("exit", done) : done()));
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
