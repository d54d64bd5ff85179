// Terminal output as runs of plain text with a few classes. Pure.
//
// Only colours and weights are understood (CSI … m). Every other sequence, links and titles among them, is dropped;
// what remains of control characters is made visible. Nothing in the output can become markup, an address or a title.
import { prose } from "./visible";

export interface Run {
  text: string;
  /** Class names from a closed set, "" for none. */
  style: string;
}

interface Pen { fg: string; bg: string; bold: boolean; dim: boolean; italic: boolean; under: boolean }

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const plain = (): Pen => ({ fg: "", bg: "", bold: false, dim: false, italic: false, under: false });

function style(pen: Pen): string {
  return [pen.fg && `a-${pen.fg}`, pen.bg && `ab-${pen.bg}`, pen.bold && "a-bold", pen.dim && "a-dim", pen.italic && "a-italic", pen.under && "a-under"]
    .filter(Boolean).join(" ");
}

function paint(pen: Pen, codes: number[]): void {
  for (let i = 0; i < codes.length; i++) {
    const c = codes[i]!;
    if (c === 0) Object.assign(pen, plain());
    else if (c === 1) pen.bold = true;
    else if (c === 2) pen.dim = true;
    else if (c === 3) pen.italic = true;
    else if (c === 4) pen.under = true;
    else if (c === 22) pen.bold = pen.dim = false;
    else if (c === 23) pen.italic = false;
    else if (c === 24) pen.under = false;
    else if (c >= 30 && c <= 37) pen.fg = NAMES[c - 30]!;
    else if (c >= 90 && c <= 97) pen.fg = NAMES[c - 90]!;
    else if (c === 39) pen.fg = "";
    else if (c >= 40 && c <= 47) pen.bg = NAMES[c - 40]!;
    else if (c >= 100 && c <= 107) pen.bg = NAMES[c - 100]!;
    else if (c === 49) pen.bg = "";
    else if (c === 38 || c === 48) {
      // An indexed colour keeps its name below 16; any other exact colour would ignore the theme and is left out.
      const indexed = codes[i + 1] === 5;
      const n = codes[i + 2];
      const name = indexed && n !== undefined && n < 16 ? NAMES[n % 8]! : "";
      if (c === 38) pen.fg = name;
      else pen.bg = name;
      i += indexed ? 2 : 4;
    }
  }
}

// CSI; OSC, DCS, SOS, PM and APC up to their terminator or the end; other escapes.
const SEQUENCE = /(?:\u001b\[|\u009b)([0-?]*)[ -/]*([@-~])?|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]?/g;

/** A carriage return goes back to the line's start: what was overwritten is gone. */
function overwrite(text: string): string {
  if (!text.includes("\r")) return text;
  return text.replace(/\r+\n/g, "\n").split("\n").map((line) => line.slice(line.lastIndexOf("\r", line.length - 2) + 1).replace(/\r$/, "")).join("\n");
}

export function runs(output: string): Run[] {
  const out: Run[] = [];
  const pen = plain();
  const push = (raw: string) => {
    if (raw === "") return;
    const text = prose(raw);
    const s = style(pen);
    const last = out.at(-1);
    if (last && last.style === s) last.text += text;
    else out.push({ text, style: s });
  };
  const source = overwrite(output);
  let at = 0;
  for (const m of source.matchAll(SEQUENCE)) {
    push(source.slice(at, m.index));
    at = m.index + m[0].length;
    if (m[2] === "m" && /^[\d;:]*$/.test(m[1]!)) paint(pen, m[1]!.split(/[;:]/).map(Number));
  }
  push(source.slice(at));
  return out;
}

/** The output without any sequence, for counting and copying. */
export const bare = (output: string): string => runs(output).map((r) => r.text).join("");
