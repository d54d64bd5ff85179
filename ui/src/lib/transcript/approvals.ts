// The keys of the shown approval: Alt A, Alt S, Alt D. One listener at a time: the last one mounted.
import { isAlt, letter } from "../keys";
import type { ChoiceKind } from "../wire";

/** Milliseconds after an approval appears in which neither keys nor clicks answer it. */
export const ARMED_AFTER = 500;

const KINDS: Record<string, ChoiceKind> = { a: "allow", s: "allowForSession", d: "deny" };

export function approvalKeys(act: (kind: ChoiceKind) => void): () => void {
  const listen = (event: KeyboardEvent) => {
    const kind = KINDS[letter(event)];
    if (!kind || !isAlt(event) || event.repeat || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    act(kind);
  };
  window.addEventListener("keydown", listen);
  return () => window.removeEventListener("keydown", listen);
}
