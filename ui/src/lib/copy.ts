// Puts text on the clipboard; where the page may not, by the selection.

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const before = document.activeElement;
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "sr";
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const done = typeof document.execCommand === "function" && document.execCommand("copy");
    field.remove();
    if (before instanceof HTMLElement) before.focus();
    return done;
  }
}
