// What was typed and not sent, kept over switches and restarts of the window. Never a secret, never an answer.

const DRAFT = "draft:";
const MODE = "composer-mode";

export type Mode = "steer" | "queue";

function storage(): Storage | null {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null;
  }
}

const memory = new Map<string, string>();

export function draft(session: string): string {
  return memory.get(session) ?? storage()?.getItem(DRAFT + session) ?? "";
}

export function keepDraft(session: string, text: string): void {
  memory.set(session, text);
  try {
    if (text === "") storage()?.removeItem(DRAFT + session);
    else storage()?.setItem(DRAFT + session, text);
  } catch {
    // Without room the draft lives as long as the window.
  }
}

export function mode(): Mode {
  return storage()?.getItem(MODE) === "queue" ? "queue" : "steer";
}

export function keepMode(chosen: Mode): void {
  try {
    storage()?.setItem(MODE, chosen);
  } catch {
    // Then it is remembered by the window alone.
  }
}
