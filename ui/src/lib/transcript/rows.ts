// What is known of a row before it is drawn. Pure.
import type { Entry } from "../wire";

const LINE = 21;
/** Characters in a line of reading, roughly. */
const WIDE = 90;

const lines = (text: string, most: number) => {
  let n = 1;
  for (let at = text.indexOf("\n"); at >= 0 && n < most; at = text.indexOf("\n", at + 1)) n++;
  return Math.min(most, Math.max(n, Math.ceil(text.length / WIDE)));
};

/** A guess of the row's height in pixels; it only has to be near, the drawn row is measured. */
export function estimate(entry: Entry): number {
  const body = entry.body;
  switch (body.type) {
    case "userMessage": return 16 + LINE * lines(body.text, 60);
    case "agentMessage":
    case "plan": return 12 + LINE * lines(body.text, 200);
    case "command": return 46 + (body.output === "" ? 0 : 18 * lines(body.output, 9));
    case "fileChange": return body.changes.reduce((sum, c) => sum + 46 + 17 * lines(c.diff, 60), 0);
    case "error": return 60;
    case "tool":
    case "other": return 40;
    default: return 30;
  }
}

/** The message that the entry at `index` belongs to: the first of its turn, else the nearest above. */
export function messageAbove(entries: readonly Entry[], index: number): number | null {
  let found: number | null = null;
  const turn = entries[index]?.turn;
  for (let i = index; i >= 0 && i > index - 5000; i--) {
    const entry = entries[i]!;
    if (entry.body.type === "userMessage") {
      found = i;
      if (entry.turn !== turn) break;
    } else if (found !== null && entry.turn !== turn) break;
  }
  return found;
}

/** Whether an entry holds the words, for the search in what is loaded. */
export function holds(entry: Entry, query: string): boolean {
  const body = entry.body;
  const texts: string[] = [];
  switch (body.type) {
    case "userMessage": case "agentMessage": case "plan": case "notice": texts.push(body.text); break;
    case "reasoning": texts.push(body.summary, body.text); break;
    case "command": texts.push(body.command, body.output); break;
    case "fileChange": for (const c of body.changes) texts.push(c.path, c.diff); break;
    case "tool": texts.push(body.server, body.name, body.arguments, body.result); break;
    case "webSearch": texts.push(body.query); break;
    case "error": texts.push(body.failure.message, body.failure.detail ?? ""); break;
    case "other": texts.push(body.kind, body.text); break;
    case "compaction": break;
  }
  return texts.some((text) => text.toLocaleLowerCase().includes(query));
}
