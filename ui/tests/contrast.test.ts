// Every text colour on every ground it stands on, light and dark, from the tokens themselves.
import { expect, it } from "vitest";
import css from "../src/tokens.css?raw";

// The first of each name: stronger contrast, asked for by the system, overrides some further down.
const tokens = new Map([...css.matchAll(/--([\w-]+):\s*light-dark\((#[0-9a-f]{6}),\s*(#[0-9a-f]{6})\)/g)].reverse().map((m) => [m[1]!, [m[2]!, m[3]!] as const]));

const channel = (c: number) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const luminance = (hex: string) => [1, 3, 5].map((i) => channel(parseInt(hex.slice(i, i + 2), 16) / 255)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i]!, 0);
function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p) as [number, number];
  return (x + 0.05) / (y + 0.05);
}

const GROUNDS = ["bg-window", "bg-content", "bg-raised", "bg-sunken", "bg-hover", "bg-selected"];
const TEXT: [string[], string[], number][] = [
  [["fg", "fg-2", "fg-3", "accent", "needs", "run", "err"], GROUNDS, 4.5],
  [["line-ctl", "focus"], GROUNDS.slice(0, 4), 3],
  [["fg", "fg-2", "needs"], ["needs-bg"], 4.5], [["fg", "fg-2", "err"], ["err-bg"], 4.5],
  [["add-fg"], ["add-bg"], 4.5], [["del-fg"], ["del-bg"], 4.5], [["accent-fg"], ["accent"], 4.5], [["needs-fg"], ["needs"], 4.5],
  [["a-yellow", "a-magenta", "a-cyan", "add-fg", "del-fg"], ["bg-sunken", "bg-content"], 4.5],
];

it.each(TEXT)("%j on %j", (texts, grounds, least) => {
  for (const text of texts) {
    for (const ground of grounds) {
      for (const scheme of [0, 1] as const) {
        const [a, b] = [tokens.get(text)?.[scheme], tokens.get(ground)?.[scheme]];
        if (!a || !b) throw new Error(`no token ${text} or ${ground}`);
        expect(contrast(a, b), `${text} on ${ground}, ${scheme === 0 ? "light" : "dark"}`).toBeGreaterThanOrEqual(least);
      }
    }
  }
});

it("would find grey on grey", () => expect(contrast("#888888", "#999999")).toBeLessThan(3));
