// Makes characters that hide or reorder text visible. Pure.
//
// What it returns has no control, bidirectional or zero-width character but tab and line feed.

const HIDING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|\udb40[\udc00-\uddef]/g;

const OVERRIDING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u202a-\u202e\u2066-\u206f]|\udb40[\udc00-\udc7f]/g;

const mark = (c: string) => `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** The text with every hiding character as ⟨U+XXXX⟩. */
export function visible(text: string): string {
  return text.replace(HIDING, (c) => mark(c));
}

/** Prose and output keep joiners, marks and emoji selectors, which languages need, but nothing that controls or overrides. */
export function prose(text: string): string {
  return text.replace(OVERRIDING, (c) => mark(c));
}
