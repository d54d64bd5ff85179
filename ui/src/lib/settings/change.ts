// Changes some settings; the rest stay as the snapshot has them.
import { app } from "../app.svelte";
import * as shell from "../shell";
import type { Settings } from "../wire";

export function change(part: Partial<Settings>): void {
  const settings = app.snapshot?.settings;
  if (settings) void app.run(shell.changeSettings({ ...settings, ...part }));
}
