//! What every agent's end, nonsense and slowness lead to.
#![expect(non_upper_case_globals, reason = "each is the name of a test")]

use std::path::Path;

use anyhow::{Context, Result, ensure};
use harness::process;
use harness::relay::{Act, From, Relay, Rule};
use rustix::process::Signal;
use turnkeep_model::port::{FailureClass, TransportRecord, TurnOutcome};
use turnkeep_model::state::{ApprovalState, EndedTurn, Phase, ProcessIdentity};
use turnkeep_model::{RuntimeId, SessionId};

use super::Case;
use super::rig::{Rig, no};

fn rules(rules: Vec<Rule>) -> Option<Relay> {
    Some(Relay { rules, ..Relay::default() })
}

/// How the transport closed under a turn.
fn closed(ended: &EndedTurn) -> Result<TransportRecord> {
    let TurnOutcome::Failed(failure) = &ended.outcome else { return no("not failed", &ended.outcome) };
    let FailureClass::TransportClosed(record) = &failure.class else { return no("failed otherwise", &failure.class) };
    Ok((**record).clone())
}

fn kill(rig: &Rig, runtime: RuntimeId) -> Result<ProcessIdentity> {
    let state = rig.state()?;
    let process = state.runtimes[&runtime].process.clone().context("a runtime without a process")?;
    let killed = process::signal_own(i32::try_from(process.pid)?, process.start_ticks, Signal::KILL)?;
    ensure!(killed, "it had gone already");
    Ok(process)
}

/// The session works again, on another runtime.
fn works_again(rig: &mut Rig, session: SessionId, before: RuntimeId) -> Result<()> {
    rig.release()?;
    rig.complete(session, rig.candidate.say)?;
    ensure!(rig.ready_runtime()? != before, "the same runtime");
    Ok(())
}

pub(super) const killed_in_a_turn: Case = Case {
    name: "killed in a turn",
    relay: |_, _| None,
    check: |rig| {
        let session = rig.session()?;
        let message = rig.send(session, rig.candidate.hold)?;
        let (turn, begun) = rig.started(session)?;
        rig.first_words(session)?;
        let process = kill(rig, begun.runtime)?;
        let ended = rig.ended(session, &message)?;
        ensure!(ended.turn == turn);
        let record = closed(&ended)?;
        let expected = (Some(process.pid), Some(9), "signalled", "started", Some(session), Some(turn));
        let found = (record.pid, record.signal, &*record.status, &*record.turn_state, record.session, record.turn);
        ensure!(found == expected, "{record:?}");
        ensure!(record.thread == rig.seen(session)?.thread && record.exit_code.is_none(), "{record:?}");
        rig.wait("proof of its end", |state| (!state.runtimes.contains_key(&begun.runtime)).then_some(()))?;
        works_again(rig, session, begun.runtime)
    },
};

pub(super) const killed_while_idle: Case = Case {
    name: "killed while idle",
    relay: |_, _| None,
    check: |rig| {
        let session = rig.session()?;
        rig.release()?;
        let first = rig.complete(session, rig.candidate.say)?;
        let runtime = rig.ready_runtime()?;
        kill(rig, runtime)?;
        rig.wait("proof of its end", |state| (!state.runtimes.contains_key(&runtime)).then_some(()))?;
        ensure!(rig.seen(session)?.last_turn.as_ref() == Some(&first), "the turn that had ended ended again");
        works_again(rig, session, runtime)
    },
};

pub(super) const nonsense_does_no_harm: Case = Case {
    name: "nonsense does no harm",
    relay: |wire, _| {
        let nonsense = Act::Say(
            [
                &b"no json at all\n"[..],
                b"{\"half\": \n",
                b"\xff\xfe\x00\n",
                b"[]\n7\nnull\n\"text\"\n{}\n\n",
                b"{\"jsonrpc\":\"2.0\",\"method\":\"no/such/method\",\"params\":{\"x\":[1]}}\n",
                b"{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{}}\n",
                b"{\"jsonrpc\":\"2.0\",\"method\":7}\n",
            ]
            .concat(),
        );
        let long = Act::Say([&vec![b'x'; 3 << 20][..], b"\n"].concat());
        rules(vec![
            Rule::new(From::Agent, &["\"result\""], vec![nonsense.clone()]).once(),
            Rule::new(From::Agent, &[wire.delta], vec![nonsense, long]).once(),
        ])
    },
    check: |rig| {
        let session = rig.session()?;
        rig.release()?;
        let ended = rig.complete(session, rig.candidate.say)?;
        let said = rig.said(session, ended.turn)?;
        ensure!(said.contains(rig.candidate.said), "it said {said:?}");
        ensure!(rig.path("bin/agent.relay.rule-1").exists(), "no nonsense was said in the turn");
        Ok(())
    },
};

fn gate(folder: &Path) -> std::path::PathBuf {
    folder.join("gate")
}

pub(super) const a_slow_start_is_waited_for: Case = Case {
    name: "a slow start is waited for",
    relay: |_, folder| Some(Relay { start: vec![Act::WaitFor(gate(folder))], ..Relay::default() }),
    check: |rig| {
        let session = rig.session()?;
        rig.release()?;
        let message = rig.send(session, rig.candidate.say)?;
        rig.wait("start", |state| {
            let starting = |phase: &Phase| *phase == Phase::Starting;
            state.runtimes.values().any(|it| starting(&it.phase) && it.process.is_some()).then_some(())
        })?;
        ensure!(rig.state()?.turns.is_empty(), "a turn on an agent that is not ready");
        std::fs::write(rig.path("gate"), "")?;
        let ended = rig.ended(session, &message)?;
        ensure!(ended.outcome == TurnOutcome::Completed, "{:?}", ended.outcome);
        Ok(())
    },
};

pub(super) const the_output_ends_while_starting: Case = Case {
    name: "the output ends while starting",
    relay: |_, _| Some(Relay { start: vec![Act::ExitOnce(3)], ..Relay::default() }),
    check: |rig| {
        let session = rig.session()?;
        rig.release()?;
        let ended = rig.complete(session, rig.candidate.say)?;
        ensure!(rig.path("bin/agent.relay.start").exists(), "it was never started and ended");
        ensure!(ended.outcome == TurnOutcome::Completed, "{:?}", ended.outcome);
        Ok(())
    },
};

pub(super) const the_output_ends_while_opening: Case = Case {
    name: "the output ends while opening",
    relay: |wire, _| rules(vec![Rule::new(From::Client, &[wire.open], vec![Act::Exit(0)]).once()]),
    check: |rig| {
        let session = rig.session()?;
        rig.release()?;
        rig.complete(session, rig.candidate.say)?;
        ensure!(rig.path("bin/agent.relay.rule-0").exists(), "it did not end while it opened the session");
        Ok(())
    },
};

fn ends_in_a_turn(at: &'static str) -> Option<Relay> {
    rules(vec![Rule::new(From::Agent, &[at], vec![Act::Pass, Act::Exit(0)]).once()])
}

pub(super) const the_output_ends_in_a_turn: Case = Case {
    name: "the output ends in a turn",
    relay: |wire, _| ends_in_a_turn(wire.delta),
    check: |rig| {
        let session = rig.session()?;
        let message = rig.send(session, rig.candidate.hold)?;
        let ended = rig.ended(session, &message)?;
        let record = closed(&ended)?;
        let found = (record.exit_code, record.signal, &*record.status, &*record.stream, &*record.how);
        ensure!(found == (Some(0), None, "exited", "stdout", "eof"), "{record:?}");
        rig.release()?;
        rig.complete(session, rig.candidate.say)?;
        Ok(())
    },
};

pub(super) const the_output_ends_while_asking: Case = Case {
    name: "the output ends while asking",
    relay: |wire, _| ends_in_a_turn(wire.ask),
    check: |rig| {
        let session = rig.session()?;
        let message = rig.send(session, rig.candidate.ask)?;
        let ended = rig.ended(session, &message)?;
        closed(&ended)?;
        let state = rig.state()?;
        ensure!(state.approvals.values().all(|it| it.state != ApprovalState::Pending), "{:?}", state.approvals);
        ensure!(!(rig.candidate.done)(rig), "nobody allowed it");
        rig.release()?;
        rig.complete(session, rig.candidate.say)?;
        Ok(())
    },
};

pub(super) const a_last_message_without_a_newline_counts: Case = Case {
    name: "a last message without a newline counts",
    relay: |wire, _| rules(vec![Rule::new(From::Agent, &[wire.end], vec![Act::PassUnfinished, Act::Exit(0)]).once()]),
    check: |rig| {
        let session = rig.session()?;
        rig.release()?;
        rig.complete(session, rig.candidate.say)?;
        ensure!(rig.path("bin/agent.relay.rule-0").exists(), "its end had a newline");
        Ok(())
    },
};
