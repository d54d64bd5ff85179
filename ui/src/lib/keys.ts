// Keys and their names on this system. Pure but for the system's own name.

export const mac = /mac/i.test(globalThis.navigator?.platform ?? "");

export const ctrl = (key: string): string => (mac ? `⌘${key}` : `Ctrl ${key}`);
export const alt = (key: string): string => (mac ? `⌥${key}` : `Alt ${key}`);

/** The command key alone, as a shortcut uses it. */
export const isCtrl = (e: KeyboardEvent): boolean => (mac ? e.metaKey && !e.ctrlKey : e.ctrlKey && !e.metaKey) && !e.altKey;
/** The option key alone. */
export const isAlt = (e: KeyboardEvent): boolean => e.altKey && !e.ctrlKey && !e.metaKey && !e.shiftKey;
/** The letter, also where Option composes another character. */
export const letter = (e: KeyboardEvent): string => (e.code.startsWith("Key") ? e.code.slice(3).toLowerCase() : e.key.toLowerCase());

/** Whether typing there must not be taken for a command. */
export function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
