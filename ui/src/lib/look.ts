// Which icon and which colour say a state. Pure; shape and word come first, colour repeats.
import type { IconName } from "./icons";
import { failed } from "./list";
import type { Account, AccountState, Session } from "./wire";
import { words } from "./words";

export interface Look { icon: IconName; tone: string; word: string }

export function sessionLook(session: Session): Look {
  switch (session.status.type) {
    case "needsApproval": return { icon: "needs", tone: "c-needs", word: words.status.needsApproval };
    case "outcomeUnknown": return { icon: "unknown", tone: "c-needs", word: words.status.outcomeUnknown };
    case "running": return { icon: "run", tone: "c-run", word: words.status.running };
    case "starting": return { icon: "wait", tone: "c-idle", word: words.status.starting };
    case "failed": return { icon: "err", tone: "c-err", word: words.status.failed };
    case "signedOut": return { icon: "out", tone: "c-needs", word: words.status.signedOut };
    case "keychainLocked": return { icon: "lock", tone: "c-needs", word: words.status.keychainLocked };
    case "idle":
      if (session.unread && failed(session)) return { icon: "err", tone: "c-err", word: words.status.failed };
      if (session.unread || session.group === "finished") return { icon: "done", tone: "c-new", word: words.list.groups.finished };
      if (session.lastTurn?.outcome === "completed") return { icon: "seen", tone: "c-idle", word: words.outcomes.completed };
      return { icon: "idle", tone: "c-idle", word: words.status.idle };
  }
}

export interface AccountLook extends Look {
  /** A second line. */
  note: string | null;
  /** Asks for something. */
  urgent: boolean;
}

export function accountLook(account: Account): AccountLook {
  const state: AccountState = account.state;
  const w = words.account;
  switch (state.type) {
    case "signedIn":
      return account.finishingTurns > 0 && !account.current
        ? { icon: "clock", tone: "c-idle", word: w.finishing(account.finishingTurns), note: null, urgent: false }
        : { icon: "person", tone: "c-run", word: w.signedIn, note: account.givenUp ? w.givenUp : null, urgent: false };
    case "signedOut":
      return account.finishingTurns > 0
        ? { icon: "clock", tone: "c-idle", word: w.signedOut, note: w.finishing(account.finishingTurns), urgent: false }
        : { icon: "out", tone: "c-idle", word: account.known ? w.signedOut : w.notSignedIn, note: null, urgent: false };
    case "signingIn": return { icon: "wait", tone: "c-idle", word: w.signingIn, note: null, urgent: false };
    case "rejected":
      return { icon: "err", tone: "c-err", word: account.kind === "apiKey" ? w.keyRejected : w.rejected, note: state.failure.message, urgent: true };
    case "itemMissing": return { icon: "key", tone: "c-needs", word: w.itemMissing, note: w.itemMissingWhat, urgent: true };
    case "keychainLocked": return { icon: "lock", tone: "c-needs", word: w.keychainLocked, note: w.keychainLockedWhat, urgent: true };
    case "keychainAbsent": return { icon: "lock", tone: "c-err", word: w.keychainAbsent, note: w.keychainAbsentWhat, urgent: true };
    case "troubled": return { icon: "err", tone: "c-err", word: w.troubled, note: state.failure.message, urgent: true };
  }
}
