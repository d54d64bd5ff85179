// What must not stand in the sources, for the window's content security policy to hold and for nothing to be markup.
import { describe, expect, it } from "vitest";

const files = import.meta.glob<string>("../src/**/*.{svelte,ts,css,html}", { query: "?raw", import: "default", eager: true });
const index = import.meta.glob<string>("../index.html", { query: "?raw", import: "default", eager: true });

const RULES: [name: string, pattern: RegExp, planted: string][] = [
  ["no markup from strings", /\{@html|\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment/, "{@html text}"],
  ["no code from strings", /\beval\(|new Function\(|setTimeout\(\s*["'`]/, "eval(x)"],
  ["no style attribute, which the policy blocks", /\sstyle=/, '<p style="color: red">'],
  ["no address that the page could follow by itself", /\shref=|window\.open\(|location\.(href|assign|replace)\b|<form[^>]*\saction=/, '<a href={url}>'],
  ["nothing that loads what an agent names", /<(img|iframe|object|embed|video|audio|source|picture)\b(?![^>]*src=\{logo\})/, "<img src={url} />"],
  ["no request", /\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon/, "fetch(url)"],
  ["no colour outside the tokens", /(?<![\w&-])#[0-9a-fA-F]{6}\b(?!.*light-dark)/, "color: #ff0000;"],
  ["no inline script or handler in HTML", /<script(?![^>]*\ssrc=)[^>]*>(?![\s\S]*import)|\son\w+="/, '<body onload="x()">'],
];

const scope = (rule: string, path: string) => !path.includes("/demo/") && (rule.startsWith("no inline") ? path.endsWith(".html") : rule.startsWith("no colour") ? (path.endsWith(".css") && !path.endsWith("/tokens.css")) || path.endsWith(".svelte") : true);

describe("the sources have", () => {
  it("been read", () => {
    expect(Object.keys(files).length).toBeGreaterThan(50);
    for (const [path, text] of Object.entries({ ...files, ...index })) expect(text.length, path).toBeGreaterThan(50);
  });

  it.each(RULES)("%s", (name, pattern, planted) => {
    const found = Object.entries({ ...files, ...index }).filter(([path, text]) => scope(name, path) && !path.endsWith("wire.ts") && pattern.test(text.replace(/\/\/.*|<!--[\s\S]*?-->/g, ""))).map(([path]) => path);
    // The page's own icon is the one address in the document's head.
    expect(found.filter((path) => !(path.endsWith("index.html") && name.startsWith("no address")))).toEqual([]);
    expect(pattern.test(planted)).toBe(true); // the check can fail
  });

  it("one module that talks to the shell", () => {
    const users = Object.entries(files).filter(([, text]) => /@tauri-apps|__TAURI/.test(text)).map(([path]) => path);
    expect(users.sort()).toEqual(["../src/lib/shell.ts", "../src/main.ts"]);
  });
});
