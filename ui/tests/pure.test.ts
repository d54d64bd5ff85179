import { describe, expect, it } from "vitest";
import { bare, runs } from "../src/lib/ansi";
import { parse, parts } from "../src/lib/diff";
import { excerpt } from "../src/lib/output";
import { elapsed, elapsedExact, when } from "../src/lib/time";
import { assemble, fields } from "../src/lib/transcript/schema";
import { prose, visible } from "../src/lib/visible";
import { plural, words } from "../src/lib/words";

const ESC = "\u001b";

describe("terminal output", () => {
  it("keeps text and colours", () => {
    expect(runs(`a${ESC}[31mred${ESC}[1mbold${ESC}[0mplain`)).toEqual([
      { text: "a", style: "" }, { text: "red", style: "a-red" }, { text: "bold", style: "a-red a-bold" }, { text: "plain", style: "" },
    ]);
    expect(runs(`${ESC}[38;5;2mg${ESC}[38;2;1;2;3mx`).map((r) => r.style)).toEqual(["a-green", ""]);
  });

  it.each([
    ["a link (OSC 8)", `${ESC}]8;;https://evil.example${ESC}\\click${ESC}]8;;${ESC}\\`, "click"],
    ["a title", `${ESC}]0;title\u0007x`, "x"],
    ["an unfinished title swallows no more than itself", `${ESC}]0;title`, ""],
    ["the clipboard (OSC 52)", `${ESC}]52;c;ZXZpbA==\u0007x`, "x"],
    ["cursor moves", `${ESC}[2J${ESC}[1;1Hx${ESC}[K`, "x"],
    ["private modes", `${ESC}[?1049hx${ESC}[?25l`, "x"],
    ["device control", `${ESC}Pq#0;2;0;0;0${ESC}\\x`, "x"],
    ["8-bit CSI", "\u009b31mx\u009b2J", "x"],
    ["8-bit OSC", "\u009d0;title\u009cx", "x"],
    ["a bare escape", `x${ESC}`, "x"],
    ["a character set", `${ESC}(0x`, "x"],
    ["overwritten progress", "10%\r50%\r100%\nok\r\n", "100%\nok\n"],
  ])("drops %s", (_, raw, text) => {
    expect(bare(raw)).toBe(text);
  });

  it("leaves no control or overriding character, whatever comes", () => {
    const all = Array.from({ length: 0xa0 }, (_, i) => String.fromCharCode(i)).join("") + "\u202e\u2066x\u{e0041}";
    for (const ch of bare(all)) expect(ch === "\n" || ch === "\t" || (ch >= " " && !/[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(ch))).toBe(true);
  });

  it("uses class names of a closed set only", () => {
    const styles = new Set(Array.from({ length: 300 }, (_, i) => runs(`${ESC}[${i}mx`)[0]!.style));
    for (const style of styles) expect(style).toMatch(/^(a-(red|green|yellow|blue|magenta|cyan|white|black|bold|dim|italic|under)|ab-\w+)?$/);
  });
});

describe("hiding characters", () => {
  it("become visible in commands", () => {
    expect(visible("rm \u202e\u200bfdp\u0007")).toBe("rm ⟨U+202E⟩⟨U+200B⟩fdp⟨U+0007⟩");
    expect(visible("ok\ttab\nline é 漢 🙂")).toBe("ok\ttab\nline é 漢 🙂");
    expect(visible("tag\u{e0041}")).toBe("tag⟨U+E0041⟩");
  });

  it("that override become visible in prose, joiners of emoji stay", () => {
    expect(prose("a\u202eb")).toBe("a⟨U+202E⟩b");
    expect(prose("👩‍💻 ⚠️")).toBe("👩‍💻 ⚠️");
  });
});

describe("diffs", () => {
  const updated = (diff: string) => parse({ path: "a", kind: "updated", movedTo: null, diff });

  it("number both sides", () => {
    const d = updated("--- a/x\n+++ b/x\n@@ -41,2 +41,3 @@ fn\n same\n-old\n+new\n+more\n\\ No newline at end of file\n");
    expect([d.added, d.removed]).toEqual([2, 1]);
    expect(d.lines.map((l) => [l.kind, l.old, l.new])).toEqual([["hunk", null, null], ["same", 41, 41], ["del", 42, null], ["add", null, 42], ["add", null, 43], ["note", null, null]]);
  });

  it("take a whole file, with or without signs", () => {
    expect(parse({ path: "a", kind: "added", movedTo: null, diff: "one\ntwo\n" }).added).toBe(2);
    expect(parse({ path: "a", kind: "added", movedTo: null, diff: "+one\n+two\n" }).lines.map((l) => l.text)).toEqual(["one", "two"]);
    expect(parse({ path: "a", kind: "deleted", movedTo: null, diff: "one\n" }).removed).toBe(1);
    expect(parse({ path: "a", kind: "added", movedTo: null, diff: "" }).lines).toEqual([]);
  });

  it("count a removed line that looks like a header", () => {
    expect(updated("@@ -1,2 +1,1 @@\n--- not a header\n same\n").removed).toBe(1);
  });

  it("fold runs of more than six unchanged lines, and lose none", () => {
    const body = (n: number) => Array.from({ length: n }, (_, i) => ` l${i}`).join("\n");
    const short = updated(`@@ -1,9 +1,9 @@\n-a\n+b\n${body(6)}\n-c\n+d\n`);
    expect(parts(short.lines).some((p) => "folded" in p)).toBe(false);
    const long = updated(`@@ -1,30 +1,30 @@\n-a\n+b\n${body(20)}\n-c\n+d\n`);
    const split = parts(long.lines);
    expect(split.map((p) => ("folded" in p ? -p.folded.length : p.lines.length))).toEqual([5, -14, 5]);
    expect(split.flatMap((p) => ("folded" in p ? p.folded : p.lines))).toEqual(long.lines);
  });

  it("never fail", () => {
    for (const junk of ["@@", "@@ -x +y @@\n+", "\n\n", "+", "\u0000", "diff --git"]) expect(() => parts(updated(junk).lines)).not.toThrow();
  });
});

describe("output", () => {
  const lines = (n: number) => Array.from({ length: n }, (_, i) => `l${i + 1}`).join("\n") + "\n";

  it("shows the last eight lines while running", () => {
    const e = excerpt(lines(20), true, false);
    expect(e.tail.split("\n")).toHaveLength(8);
    expect(e.hidden).toBe(12);
    expect(excerpt(lines(8), true, false)).toEqual({ head: "", hidden: 0, tail: lines(8).trimEnd() });
  });

  it("then the first three and the last five", () => {
    const e = excerpt(lines(53), false, false);
    expect(e).toEqual({ head: "l1\nl2\nl3", hidden: 45, tail: "l49\nl50\nl51\nl52\nl53" });
    expect(excerpt(lines(9), false, false).hidden).toBe(0);
  });

  it("never shows more than a bound", () => {
    const e = excerpt(lines(50_000), false, true);
    expect(e.head.split("\n").length + e.tail.split("\n").length).toBe(2000);
    expect(e.hidden).toBe(48_000);
  });
});

describe("words", () => {
  it("have plural forms", () => {
    expect(plural(1, { one: "# turn", other: "# turns" })).toBe("1 turn");
    expect(plural(0, { one: "# turn", other: "# turns" })).toBe("0 turns");
    expect(words.title(1, 0)).toBe("Turnkeep: 1 needs you");
    expect(words.title(2, 2)).toBe("Turnkeep: 2 need you, 2 running");
    expect(words.title(0, 0)).toBe("Turnkeep");
    expect(words.quit.confirmTitle(1)).toBe("Quit now and interrupt 1 turn?");
    expect(words.usage.window(300)).toBe("5 hours");
    expect(words.usage.window(10080)).toBe("Week");
  });

  it("keep to the tone: no exclamation mark, no oops, no please, nobody says we", () => {
    const texts: string[] = [];
    const walk = (value: unknown): void => {
      if (typeof value === "string") texts.push(value);
      else if (typeof value === "function") {
        for (const n of [1, 2]) {
          try {
            texts.push(String((value as (...a: unknown[]) => unknown)(n, n, n)));
          } catch {
            // Takes other things than counts.
          }
        }
      } else if (value && typeof value === "object") Object.values(value).forEach(walk);
    };
    walk(words);
    expect(texts.length).toBeGreaterThan(250);
    for (const text of texts) {
      expect(text).not.toMatch(/!|\boops\b|\bplease\b|\bsuccessfully\b|\bwe\b|\bepoch\b|\bstale\b|\bretire/i);
    }
  });
});

it("times are s, then min, then h; after today the day", () => {
  expect(elapsed(41_000)).toBe("41 s");
  expect(elapsed(12 * 60_000)).toBe("12 min");
  expect(elapsed(3 * 3600_000 + 5)).toBe("3 h");
  expect(elapsed(-5)).toBe("0 s");
  expect(elapsedExact(188_000)).toBe("3 min 08 s");
  const now = new Date(2026, 10, 18, 9, 37).getTime();
  expect(when(now - 86_400_000, now)).toBe("Yesterday");
  expect(when(new Date(2026, 10, 18, 0, 1).getTime(), now)).toMatch(/01/);
  expect(when(now - 3 * 86_400_000, now)).toMatch(/Sunday/);
});

it("a form's schema becomes fields, or a JSON field when it is anything else", () => {
  const schema = JSON.stringify({ properties: { a: { type: "string" }, n: { type: "integer" }, b: { type: "boolean" }, e: { enum: ["x", "y"] } }, required: ["a"] });
  const list = fields(schema)!;
  expect(list.map((f) => f.kind)).toEqual(["text", "integer", "boolean", "choice"]);
  expect(assemble(list, {})).toBeNull();
  expect(assemble(list, { a: "hi", n: "1.5" })).toBeNull();
  expect(JSON.parse(assemble(list, { a: "hi", n: "2", b: true, e: "x" })!)).toEqual({ a: "hi", n: 2, b: true, e: "x" });
  expect(fields("not json")).toBeNull();
  expect(fields(JSON.stringify({ properties: { o: { type: "object" } } }))).toBeNull();
});
