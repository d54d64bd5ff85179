// What one can do with a session, for its header and for its row.
import { app } from "./app.svelte";
import { copyText } from "./copy";
import type { Item } from "./parts/MenuList.svelte";
import * as shell from "./shell";
import type { Session } from "./wire";
import { words } from "./words";

async function fork(session: Session): Promise<void> {
  const made = await app.run(shell.forkSession(session.id, words.session.forkTitle(session.title)));
  if (made !== undefined) app.open(made, "composer");
}

export function sessionActs(session: Session): Item[] {
  const w = words.session;
  return [
    { name: w.rename, act: () => { app.dialog = { kind: "renameSession", session: session.id }; } },
    ...(app.provider(session.provider)?.hasGoals ? [{ name: session.goal ? w.editGoal : w.goal, act: () => { app.dialog = { kind: "goal", session: session.id }; } }] : []),
    { name: words.process.show, act: () => { app.dialog = { kind: "process", session: session.id }; } },
    ...(session.canFork ? [{ name: w.fork, testid: "act-fork", act: () => void fork(session) }] : []),
    { name: w.copyFolder, act: () => void copyText(session.folder) },
    ...(session.unread ? [{ name: w.markRead, act: () => void app.run(shell.markRead(session.id)) }] : []),
    "line",
    { name: session.archived ? w.unarchive : w.archive, act: () => void app.run(shell.archiveSession(session.id, !session.archived)) },
  ];
}
