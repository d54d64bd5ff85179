// Puts the whole window on a scripted shell.
import { cleanup, render } from "@testing-library/svelte";
import { tick } from "svelte";
import App from "../src/App.svelte";
import { app } from "../src/lib/app.svelte";
import { DemoShell } from "../src/lib/demo";
import { scene } from "../src/lib/demo/scenes";
import { use } from "../src/lib/shell";
import { Feed } from "../src/lib/transcript/feed";
import type { Snapshot } from "../src/lib/wire";

export interface Stage {
  shell: DemoShell;
  container: HTMLElement;
  get(testid: string): HTMLElement;
  find(testid: string): HTMLElement | null;
  all(testid: string): HTMLElement[];
  calls(command: string): Record<string, unknown>[];
}

export function reset(): void {
  app.snapshot = null;
  app.view = { type: "sessions" };
  app.dialog = null;
  app.problem = null;
  app.lost = false;
  app.recoverySeen = false;
  app.answering = new Set();
  app.feed = new Feed();
  app.wants = null;
}

export async function stage(name: string | Snapshot, open?: string, width = 1176): Promise<Stage> {
  cleanup();
  reset();
  window.innerWidth = width;
  const { snapshot, long } = typeof name === "string" ? scene(name) : { snapshot: name, long: null };
  const shell = new DemoShell(snapshot, long);
  use(shell);
  const { container } = render(App);
  await app.start();
  await tick();
  if (open) app.open(open);
  await settle();
  const select = (testid: string) => document.querySelectorAll<HTMLElement>(`[data-testid="${testid}"]`);
  return {
    shell, container,
    get: (testid) => {
      const found = select(testid)[0];
      if (!found) throw new Error(`nothing with data-testid="${testid}"`);
      return found;
    },
    find: (testid) => select(testid)[0] ?? null,
    all: (testid) => [...select(testid)],
    calls: (command) => shell.calls.filter(([c]) => c === command).map(([, args]) => args),
  };
}

/** Lets promises and effects run. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) {
    await Promise.resolve();
    await tick();
  }
}

export function press(key: string, how: KeyboardEventInit = {}, target: EventTarget = document.activeElement ?? window): void {
  target.dispatchEvent(new KeyboardEvent("keydown", { key, code: key.length === 1 ? `Key${key.toUpperCase()}` : key, bubbles: true, cancelable: true, ...how }));
}
