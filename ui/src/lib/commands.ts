// Which of an agent's commands fit what has been typed so far.
import type { OfferedCommand } from "./wire";

/** What was typed of a command's name: "/pl" gives "pl"; null where the message does not begin with one, or goes on after it. */
export function begun(text: string): string | null {
  return /^\/(\S*)$/u.exec(text)?.[1] ?? null;
}

/** Those whose name begins with it, then those whose name holds it. */
export function fitting(commands: OfferedCommand[], typed: string): OfferedCommand[] {
  const wanted = typed.toLocaleLowerCase();
  const name = (command: OfferedCommand) => command.name.toLocaleLowerCase();
  const first = commands.filter((c) => name(c).startsWith(wanted));
  return [...first, ...commands.filter((c) => !first.includes(c) && name(c).includes(wanted))];
}
