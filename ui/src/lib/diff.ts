// Unified diffs as lines and folds. Pure; never fails: what is no diff is shown as the lines it has.
import type { FileChange } from "./wire";

export interface Line {
  kind: "same" | "add" | "del" | "hunk" | "note";
  old: number | null;
  new: number | null;
  text: string;
}

export type Part = { lines: Line[] } | { folded: Line[] };

export interface Diff { lines: Line[]; added: number; removed: number }

/** Unchanged lines left on either side of a fold, and the longest unchanged run that is not folded. */
const CONTEXT = 3;
const LONGEST = 6;
/** Files above this many lines start folded as a whole. */
export const LARGE = 400;

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/;

export function parse(change: FileChange): Diff {
  const rows = change.diff.replace(/\r\n/g, "\n").replace(/\n$/, "").split("\n");
  const lines: Line[] = [];
  if (change.diff === "") return { lines, added: 0, removed: 0 };
  // A whole file may come as its bare content.
  if (!rows.some((row) => HUNK.test(row)) && change.kind !== "updated") {
    const sign = change.kind === "added" ? "+" : "-";
    const signed = rows.every((row) => row === "" || row.startsWith(sign));
    rows.forEach((row, i) => {
      const text = signed ? row.slice(1) : row;
      lines.push(change.kind === "added"
        ? { kind: "add", old: null, new: i + 1, text }
        : { kind: "del", old: i + 1, new: null, text });
    });
    return tally(lines);
  }
  let was = 1;
  let is = 1;
  let inHunk = false;
  for (const row of rows) {
    const hunk = HUNK.exec(row);
    if (hunk) {
      was = Number(hunk[1]);
      is = Number(hunk[2]);
      inHunk = true;
      if (lines.length > 0 || hunk[3]) lines.push({ kind: "hunk", old: null, new: null, text: hunk[3] ?? "" });
    } else if (!inHunk && /^(diff |index |--- |\+\+\+ |new file|deleted file|old mode|new mode|similarity|rename )/.test(row)) {
      continue;
    } else if (row.startsWith("diff --git ")) {
      inHunk = false;
    } else if (row.startsWith("+")) lines.push({ kind: "add", old: null, new: is++, text: row.slice(1) });
    else if (row.startsWith("-")) lines.push({ kind: "del", old: was++, new: null, text: row.slice(1) });
    else if (row.startsWith("\\")) lines.push({ kind: "note", old: null, new: null, text: row.slice(1).trim() });
    else lines.push({ kind: "same", old: was++, new: is++, text: row.slice(1) });
  }
  return tally(lines);
}

function tally(lines: Line[]): Diff {
  let added = 0;
  let removed = 0;
  for (const line of lines) {
    if (line.kind === "add") added++;
    else if (line.kind === "del") removed++;
  }
  return { lines, added, removed };
}

/** Lines side by side: what went on the left, what came on the right; what has no counterpart stands alone. */
export function pairs(lines: readonly Line[]): [Line | null, Line | null][] {
  const out: [Line | null, Line | null][] = [];
  let went: Line[] = [];
  let came: Line[] = [];
  const flush = () => {
    for (let i = 0; i < Math.max(went.length, came.length); i++) out.push([went[i] ?? null, came[i] ?? null]);
    went = [];
    came = [];
  };
  for (const line of lines) {
    if (line.kind === "del") {
      if (came.length > 0) flush();
      went.push(line);
    } else if (line.kind === "add") came.push(line);
    else if (line.kind === "note") (came.length > 0 ? came : went).push(line);
    else {
      flush();
      out.push([line, line]);
    }
  }
  flush();
  return out;
}

/** The lines in parts, long unchanged runs folded. */
export function parts(lines: readonly Line[]): Part[] {
  const out: Part[] = [];
  let open: Line[] = [];
  let at = 0;
  while (at < lines.length) {
    let end = at;
    while (end < lines.length && lines[end]!.kind === "same") end++;
    const run = end - at;
    if (run > LONGEST) {
      const lead = at === 0 ? 0 : CONTEXT;
      const trail = end === lines.length ? 0 : CONTEXT;
      open.push(...lines.slice(at, at + lead));
      if (open.length > 0) out.push({ lines: open });
      out.push({ folded: lines.slice(at + lead, end - trail) });
      open = lines.slice(end - trail, end);
      at = end;
    } else {
      open.push(...lines.slice(at, Math.max(end, at + 1)));
      at = Math.max(end, at + 1);
    }
  }
  if (open.length > 0) out.push({ lines: open });
  return out;
}
