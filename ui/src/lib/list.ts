// Which session stands in which group, and where. Pure.
//
// It never moves a row while the list is held, that is while the pointer or the focus is in it.
import type { Approval, Group, Session } from "./wire";

export interface Section {
  group: Group;
  ids: string[];
}

export const GROUPS: readonly Group[] = ["needsYou", "running", "finished", "idle"];
/** Idle sessions shown before "Show all". */
export const IDLE_SHOWN = 20;

/** Since when a session has what puts it into its group, in Unix milliseconds. */
export function since(session: Session, approvals: readonly Approval[]): number {
  if (session.group === "needsYou") {
    const asked = approvals.filter((a) => a.session === session.id && a.state.type === "pending").map((a) => a.askedAt);
    return asked.length > 0 ? Math.min(...asked) : (session.lastTurn?.endedAt ?? session.activeAt);
  }
  if (session.group === "running") return session.turn?.startedAt ?? session.activeAt;
  if (session.group === "finished") return session.lastTurn?.endedAt ?? session.activeAt;
  return session.activeAt;
}

export function failed(session: Session): boolean {
  return session.status.type === "failed" || session.failure !== null
    || (session.lastTurn !== null && (session.lastTurn.outcome === "failed" || session.lastTurn.outcome === "lost"));
}

const byId = (a: string, b: string) => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);

function order(group: Group, sessions: Session[], approvals: readonly Approval[]): string[] {
  const at = new Map(sessions.map((s) => [s.id, since(s, approvals)]));
  const oldest = (a: Session, b: Session) => at.get(a.id)! - at.get(b.id)! || byId(a.id, b.id);
  const compare = group === "needsYou" || group === "running"
    ? oldest
    : group === "finished"
      ? (a: Session, b: Session) => Number(failed(b)) - Number(failed(a)) || -oldest(a, b)
      : (a: Session, b: Session) => -oldest(a, b);
  return [...sessions].sort(compare).map((s) => s.id);
}

/** The sections in their order; all four always, also when empty. */
export function arrange(
  sessions: readonly Session[],
  approvals: readonly Approval[],
  before: readonly Section[] | null,
  held: boolean,
): Section[] {
  if (!held || before === null) {
    return GROUPS.map((group) => ({ group, ids: order(group, sessions.filter((s) => s.group === group), approvals) }));
  }
  const present = new Map(sessions.map((s) => [s.id, s]));
  const placed = new Set(before.flatMap((s) => s.ids));
  return GROUPS.map((group) => {
    const kept = before.find((s) => s.group === group)?.ids.filter((id) => present.has(id)) ?? [];
    const fresh = sessions.filter((s) => s.group === group && !placed.has(s.id));
    return { group, ids: [...kept, ...order(group, fresh, approvals)] };
  });
}

/** Whether every word typed occurs in one of the texts. */
export function matches(query: string, texts: readonly (string | null)[]): boolean {
  const hay = texts.join("\n").toLocaleLowerCase();
  return query.toLocaleLowerCase().split(/\s+/).every((word) => hay.includes(word));
}

/** A file as one names it from where a session works; one that lies elsewhere, or pretends not to, is named whole. */
export function placed(path: string, folder: string, home: string): string {
  const below = folder.length > 1 && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : "";
  return below !== "" && below.split("/").every((part) => part !== "" && part !== "..") ? below : tilde(path, home);
}

/** The tilde form of a folder, as people write it. */
export function tilde(path: string, home: string): string {
  if (home.length > 1 && (path === home || path.startsWith(`${home}/`))) return `~${path.slice(home.length)}`;
  return path;
}
