//! Two clocks of this run: how long nothing was heard of a turn, and how long a process has had nothing to do.
//!
//! Kept in memory only: after a restart both begin anew. They end no turn, and nothing here looks at a clock by itself:
//! their deadlines are among those of the machine.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    change::Change,
    derive::{held_by, is_busy, needs_runtime, open_turns_of},
    ids::{ItemId, RuntimeId, SessionId, TurnId},
    port::{AgentEvent, ItemBody, ItemStatus, TurnOutcome},
    rules::Rules,
    state::{ApprovalState, Attachment, Now, Phase, Quiet, Turn, TurnState},
    supervisor::Supervisor,
};

/// Milliseconds in a minute.
const MINUTE: u64 = 60_000;
/// Running commands of one session that are followed, and characters that are kept of each.
const COMMANDS: usize = 32;
const COMMAND: usize = 200;

/// When something was heard last, and since when nothing is to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks {
    turns: BTreeMap<TurnId, Heard>,
    idle: BTreeMap<RuntimeId, u64>,
    /// Commands that run, as far as the agent told; those of an ended turn run on in the background.
    commands: BTreeMap<(RuntimeId, SessionId), BTreeMap<ItemId, String>>,
}

/// The last word of a turn.
#[derive(Clone, Copy, Debug)]
struct Heard {
    at: Now,
    /// For a person, or for the provider's own next try: that is no silence.
    waits: bool,
}

impl<R: Rules> Supervisor<R> {
    /// Something came about this session; `by` is `None` where only its text came.
    pub(crate) fn heard(&mut self, by: Option<RuntimeId>, session: SessionId, at: Now) {
        let of = |t: &Turn| by.is_none_or(|runtime| t.runtime == runtime);
        let turns: Vec<_> =
            open_turns_of(&self.state, session).filter(|(_, t)| of(t)).map(|(id, t)| (id, t.quiet.is_some())).collect();
        for (turn, quiet) in turns {
            if let Some(heard) = self.clocks.turns.get_mut(&turn).filter(|heard| heard.at.boot < at.boot) {
                heard.at = at;
            }
            if quiet {
                self.commit(Change::TurnHeard { turn });
            }
        }
    }

    /// Which commands run: what is quiet may be one of them, and what outlives its turn is work all the same.
    pub(crate) fn follow_commands(&mut self, runtime: RuntimeId, event: &AgentEvent) {
        if let AgentEvent::ItemStarted { session, item, .. } | AgentEvent::ItemCompleted { session, item, .. } = event
            && let ItemBody::Command { command, status, .. } = &item.body
        {
            let running = self.clocks.commands.entry((runtime, *session)).or_default();
            match status {
                // Abandoned: its turn goes on or has ended without it, and it runs until a later word says otherwise.
                ItemStatus::Running | ItemStatus::Abandoned if running.len() < COMMANDS => {
                    running.insert(item.id.clone(), command.chars().take(COMMAND).collect());
                }
                ItemStatus::Running | ItemStatus::Abandoned => {}
                ItemStatus::Completed | ItemStatus::Failed | ItemStatus::Declined => {
                    running.remove(&item.id);
                }
            }
            if running.is_empty() {
                self.clocks.commands.remove(&(runtime, *session));
            }
        } else if let AgentEvent::SessionReleased { session } = event {
            self.clocks.commands.remove(&(runtime, *session));
        } else if let AgentEvent::TurnEnded { session, outcome, .. } = event
            && *outcome != TurnOutcome::Completed
        {
            // What was cut off is cleaned up with its turn.
            self.clocks.commands.remove(&(runtime, *session));
        }
    }

    /// A running turn of which nothing was heard for long says so, once for each silence.
    pub(crate) fn silence_is_noted(&mut self) {
        let now = self.now;
        let state = &self.state;
        self.clocks.turns.retain(|id, _| state.turns.contains_key(id));
        let mut quieted = Vec::new();
        for (id, turn) in &state.turns {
            let waits =
                turn.retrying.is_some() || state.approvals.values().any(|a| a.turn == *id && a.state == ApprovalState::Pending);
            let heard = self.clocks.turns.entry(*id).or_insert(Heard { at: now, waits });
            if waits || heard.waits {
                heard.at = now;
            }
            heard.waits = waits;
            if silence_ends(state.settings.quiet_after, &state.runtimes, turn, *heard).is_some_and(|at| at <= now.boot) {
                let commands = self.clocks.commands.get(&(turn.runtime, turn.session));
                let command = commands.and_then(|c| c.values().next_back().cloned());
                let quiet = Quiet { since: now.wall - silent_for(now, *heard), command };
                quieted.push((*id, quiet));
            }
        }
        for (turn, quiet) in quieted {
            self.commit(Change::TurnQuieted { turn, quiet });
        }
    }

    /// When each turn begins to count as quiet, in boot milliseconds, if nothing is heard of it.
    #[must_use]
    pub fn silences(&self) -> Vec<(TurnId, u64)> {
        let after = self.state.settings.quiet_after;
        let turns = self.state.turns.iter().filter_map(|(id, turn)| {
            let heard = self.clocks.turns.get(id)?;
            Some((*id, silence_ends(after, &self.state.runtimes, turn, *heard)?))
        });
        turns.collect()
    }

    /// Since when each process has nothing to do: no turn, and no session that wants one.
    pub(crate) fn idleness_is_noted(&mut self) {
        let state = &self.state;
        let sessions = self.live.iter().filter_map(|id| state.sessions.get(id));
        let used: BTreeSet<RuntimeId> = sessions
            .filter(|s| match s.attachment {
                Attachment::Opening { .. } | Attachment::Releasing { .. } => true,
                Attachment::Open { .. } => needs_runtime(state, s),
                Attachment::Detached => false,
            })
            .filter_map(held_by)
            .collect();
        self.clocks.commands.retain(|(runtime, _), _| state.runtimes.contains_key(runtime));
        let works = |id: RuntimeId| {
            used.contains(&id)
                || is_busy(state, id)
                || self.clocks.commands.range((id, SessionId(0))..).next().is_some_and(|((r, _), _)| *r == id)
        };
        let idle: Vec<_> =
            state.runtimes.iter().filter(|(id, r)| r.phase == Phase::Ready && !works(**id)).map(|(id, _)| *id).collect();
        self.clocks.idle.retain(|id, _| idle.contains(id));
        for id in idle {
            self.clocks.idle.entry(id).or_insert(self.now.boot);
        }
    }

    /// When each process that has nothing to do is stopped, in boot milliseconds.
    #[must_use]
    pub fn idle_ends(&self) -> Vec<(RuntimeId, u64)> {
        let after = self.state.settings.idle_after;
        let ends =
            |(id, since): (&RuntimeId, &u64)| (after > 0).then(|| (*id, since.saturating_add(after.saturating_mul(MINUTE))));
        self.clocks.idle.iter().filter_map(ends).collect()
    }

    /// Nothing was to do for so long that the process is not worth its memory. Its sessions are found again by their
    /// threads, when there is something to do.
    pub(crate) fn is_idle_for_long(&self, id: RuntimeId) -> bool {
        self.idle_ends().iter().any(|(of, at)| *of == id && *at <= self.now.boot)
    }
}

fn silence_ends(after: u64, runtimes: &BTreeMap<RuntimeId, crate::state::Runtime>, turn: &Turn, heard: Heard) -> Option<u64> {
    let runs = turn.state != TurnState::Probing && runtimes.get(&turn.runtime).is_some_and(|r| r.phase == Phase::Ready);
    let listens = after > 0 && runs && !heard.waits && turn.quiet.is_none();
    listens.then(|| heard.at.boot.saturating_add(after.saturating_mul(MINUTE)))
}

/// Milliseconds.
fn silent_for(now: Now, heard: Heard) -> i64 {
    i64::try_from(now.boot.saturating_sub(heard.at.boot)).unwrap_or(i64::MAX)
}
