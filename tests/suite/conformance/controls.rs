//! Each kind of check finds the defect that it is for: a relay plants it, and the check must fail.

use std::path::Path;
use std::time::Duration;

use harness::relay::{Act, From, Relay, Rule};

use super::agents::{self, Wire};
use super::rig::Rig;
use super::{Case, before, cases, ends};

/// A check that waits for what never comes gives up so soon here.
const IMPATIENCE: Duration = Duration::from_secs(5);

/// The check must fail, with these words in what it says.
fn fails(case: &Case, relay: fn(&Wire, &Path) -> Option<Relay>, because: &str) {
    fails_for(&agents::fake, case, relay, because);
}

fn fails_for(agent: &agents::Candidate, case: &Case, relay: fn(&Wire, &Path) -> Option<Relay>, because: &str) {
    let mut rig = Rig::start(agent, relay, IMPATIENCE).unwrap();
    match (case.check)(&mut rig) {
        Ok(()) => panic!("{}: the planted defect was not found", case.name),
        Err(error) => {
            let text = format!("{error:#}");
            assert!(text.contains(because), "{}: it failed because of {text}", case.name);
        }
    }
}

fn one(rule: Rule) -> Option<Relay> {
    Some(Relay { rules: vec![rule], ..Relay::default() })
}

#[test]
fn a_turn_without_an_end() {
    let defect = |wire: &Wire, _: &Path| one(Rule::new(From::Agent, &[wire.end], vec![Act::Drop]));
    fails(&cases::a_turn_completes, defect, "no end of the turn");
}

#[test]
fn words_that_come_all_at_once() {
    let defect = |wire: &Wire, _: &Path| one(Rule::new(From::Agent, &[wire.delta], vec![Act::Drop]));
    fails(&cases::its_text_is_streamed, defect, "no streamed words");
}

#[test]
fn a_question_that_is_never_put() {
    let defect = |wire: &Wire, _: &Path| one(Rule::new(From::Agent, &[wire.ask], vec![Act::Drop]));
    fails(&cases::what_is_allowed_is_done, defect, "no question or end");
    fails(&cases::a_question_ends_with_its_turn, defect, "no question or end");
}

#[test]
fn a_refusal_that_arrives_as_leave() {
    let defect = |wire: &Wire, _: &Path| {
        let (this, by) = (wire.deny.0.to_owned(), wire.deny.1.to_owned());
        one(Rule::new(From::Client, &[wire.deny.0], vec![Act::Replace { this, by }]))
    };
    fails(&cases::what_is_denied_is_not_done, defect, "denied and done");
}

#[test]
fn leave_that_never_arrives() {
    let defect = |wire: &Wire, _: &Path| {
        let (this, by) = (wire.deny.1.to_owned(), wire.deny.0.to_owned());
        one(Rule::new(From::Client, &[wire.deny.1], vec![Act::Replace { this, by }]))
    };
    fails(&cases::what_is_allowed_is_done, defect, "allowed and not done");
}

#[test]
fn an_interruption_that_is_lost() {
    let defect = |wire: &Wire, _: &Path| one(Rule::new(From::Client, &[wire.interrupt], vec![Act::Drop]));
    fails(&cases::a_turn_is_interrupted, defect, "no end of the turn");
}

#[test]
fn steering_that_is_lost() {
    let defect = |wire: &Wire, _: &Path| one(Rule::new(From::Client, &[wire.steer], vec![Act::Drop]));
    fails(&cases::a_running_turn_is_steered_or_the_message_waits, defect, "no admitted message");
}

#[test]
fn a_thread_that_changes_its_name() {
    let defect = |_: &Wire, _: &Path| {
        let act = Act::Replace { this: "thread-".to_owned(), by: "gone-".to_owned() };
        one(Rule::new(From::Client, &["\"thread/resume\""], vec![act]))
    };
    fails(&cases::a_session_goes_on_after_a_restart, defect, "another thread");
}

/// What was killed is never opened again.
fn lost_resumption(_: &Wire, _: &Path) -> Option<Relay> {
    one(Rule::new(From::Client, &["\"thread/resume\""], vec![Act::Drop]))
}

#[test]
fn a_session_that_does_not_come_back_after_a_kill() {
    fails(&ends::killed_in_a_turn, lost_resumption, "no end of the turn");
    fails(&ends::killed_while_idle, lost_resumption, "no end of the turn");
}

#[test]
fn a_sign_out_that_cuts_the_running_turn_off() {
    let defect = |wire: &Wire, _: &Path| one(Rule::new(From::Agent, &[wire.end], vec![Act::Drop]));
    fails(&cases::a_sign_out_lets_the_running_turn_finish, defect, "no end of the turn");
}

#[test]
fn a_sign_out_that_is_never_carried_out() {
    let defect = |_: &Wire, _: &Path| one(Rule::new(From::Client, &["\"account/logout\""], vec![Act::Drop]));
    fails(&cases::a_sign_out_lets_the_running_turn_finish, defect, "no revocation");
}

#[test]
fn a_thread_that_is_left_out_of_the_list() {
    let defect = |_: &Wire, _: &Path| {
        let act = Act::Replace { this: "thread-".to_owned(), by: "other-".to_owned() };
        one(Rule::new(From::Agent, &["as it began"], vec![act]))
    };
    fails(&before::what_it_knows_is_listed_and_gone_on_with, defect, "is not among");
}

#[test]
fn a_fork_that_is_the_session_itself() {
    let defect = |_: &Wire, _: &Path| {
        let act = Act::Replace { this: "thread/fork".to_owned(), by: "thread/resume".to_owned() };
        one(Rule::new(From::Client, &["\"thread/fork\""], vec![act]))
    };
    fails(&before::a_fork_goes_on_by_itself, defect, "no end of the turn");
}

#[test]
fn commands_that_are_never_told() {
    let defect = |_: &Wire, _: &Path| one(Rule::new(From::Agent, &["available_commands_update"], vec![Act::Drop]));
    fails_for(&agents::demo, &before::its_commands_are_told, defect, "no command");
}

/// The turn completes before its agent ends.
fn completes_first(wire: &Wire, folder: &Path) -> Option<Relay> {
    let go_on = Rule::new(From::Agent, &[wire.delta], vec![Act::Touch(folder.join("middle"))]);
    let end = Rule::new(From::Agent, &[wire.end], vec![Act::Pass, Act::Exit(0)]);
    Some(Relay { rules: vec![go_on, end], ..Relay::default() })
}

#[test]
fn a_turn_that_had_ended_before_its_agent() {
    fails(&ends::the_output_ends_in_a_turn, completes_first, "not failed");
}

#[test]
fn a_last_message_that_is_cut_short() {
    let defect = |wire: &Wire, _: &Path| {
        let act = Act::Replace { this: "\"completed\"".to_owned(), by: "\"comple".to_owned() };
        one(Rule::new(From::Agent, &[wire.end], vec![act, Act::PassUnfinished, Act::Exit(0)]))
    };
    fails(&ends::a_last_message_without_a_newline_counts, defect, "did not complete");
}

#[test]
fn a_process_that_outlives_its_session() {
    let mut rig = Rig::start(&agents::fake, |_, _| None, IMPATIENCE).unwrap();
    rig.release().unwrap();
    let session = rig.session().unwrap();
    rig.complete(session, "Please say it").unwrap();
    assert!(!rig.processes().is_empty(), "the agent runs, and is seen");
    rig.leaves_nothing().unwrap();
    assert!(rig.processes().is_empty());
}

#[test]
fn an_agent_that_never_starts() {
    let defect = |_: &Wire, _: &Path| Some(Relay { start: vec![Act::Exit(3)], ..Relay::default() });
    fails(&ends::the_output_ends_while_starting, defect, "no end of the turn");
}
