// Which lines of a command's output are shown. Pure; looks only at the ends of long output.

export const TAIL_WHILE_RUNNING = 8;
export const HEAD = 3;
export const TAIL = 5;
/** Beyond this many lines the whole is not put on the screen. */
export const MOST = 2000;

export interface Excerpt { head: string; hidden: number; tail: string }

function lastLines(text: string, n: number): number {
  let at = text.length;
  for (let i = 0; i < n; i++) {
    at = text.lastIndexOf("\n", at - 1);
    if (at <= 0) return 0;
  }
  return at + 1;
}

function firstLines(text: string, n: number): number {
  let at = 0;
  for (let i = 0; i < n; i++) {
    const next = text.indexOf("\n", at);
    if (next < 0) return text.length;
    at = next + 1;
  }
  return at;
}

function countLines(text: string): number {
  if (text === "") return 0;
  let n = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) n++;
  return n;
}

/** While running the end; afterwards the first and the last lines; everything when `all`, up to a bound. */
export function excerpt(output: string, running: boolean, all: boolean): Excerpt {
  const text = output.replace(/\n+$/, "");
  if (running && !all) {
    const cut = lastLines(text, TAIL_WHILE_RUNNING);
    return { head: "", hidden: cut > 0 ? countLines(text.slice(0, cut - 1)) : 0, tail: text.slice(cut) };
  }
  const total = countLines(text);
  const [head, tail] = all ? [MOST / 2, MOST / 2] : [HEAD, TAIL];
  // One hidden line would take as much room as its button.
  if (total <= head + tail + 1) return { head: text, hidden: 0, tail: "" };
  return { head: text.slice(0, firstLines(text, head) - 1), hidden: total - head - tail, tail: text.slice(lastLines(text, tail)) };
}
