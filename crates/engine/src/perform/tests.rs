use turnkeep_model::{
    AccountId, CredentialId, ProviderId, SessionId, SignInId, TurnId,
    port::{AgentCommand, SessionSettings, SignInMethod},
    state::AccountKind,
};

use super::*;
use crate::play;

fn wishes(number: u64) -> Vec<Effect> {
    let (runtime, session) = (RuntimeId(number), SessionId(number));
    let (provider, account, credential) = (ProviderId::new("p"), AccountId(1), CredentialId(number));
    let open = AgentCommand::OpenSession {
        session,
        thread: None,
        fork_of: None,
        history: false,
        folder: "/".into(),
        settings: SessionSettings::default(),
        goal: None,
    };
    let probe = AgentCommand::Probe {
        session,
        thread: turnkeep_model::ThreadRef::new("t"),
        turn: TurnId(number),
        message: turnkeep_model::MessageId::new("m"),
    };
    let kind = AccountKind::System;
    vec![
        Effect::Spawn { runtime, provider: provider.clone(), account, credential, kind: kind.clone() },
        Effect::Stop { runtime, force: false },
        Effect::Stop { runtime, force: true },
        Effect::Reap { runtime, process: None },
        Effect::Open { runtime, command: open },
        Effect::Release { runtime, session },
        Effect::SignIn {
            sign_in: SignInId(number),
            provider: provider.clone(),
            account,
            credential,
            method: SignInMethod::Browser,
            key: None,
        },
        Effect::CancelSignIn { sign_in: SignInId(number) },
        Effect::Revoke { provider, account, credential, kind },
        Effect::Probe { turn: TurnId(number), runtime, command: probe },
        Effect::Notify { key: format!("key {number}") },
    ]
}

#[test]
fn every_wish_is_one_until_it_is_answered_and_no_other_is_touched() {
    for wish in wishes(1) {
        let mut owed = Owed::default();
        let others = wishes(12);
        assert!(others.iter().all(|other| owed.take(other)));
        assert!(owed.take(&wish), "{wish:?}");
        assert!(!owed.take(&wish), "{wish:?}");
        let answers = play::answers(&wish);
        assert!(!answers.is_empty(), "{wish:?}");
        for answer in &answers {
            owed.answered(answer);
        }
        assert!(owed.take(&wish), "after its answer: {wish:?}");
        assert!(others.iter().all(|other| !owed.take(other)), "another one was forgotten with {wish:?}");
    }
}

#[test]
fn nothing_is_owed_by_a_process_that_is_gone() {
    let mut owed = Owed::default();
    let wishes = wishes(1);
    wishes.iter().for_each(|wish| assert!(owed.take(wish)));
    owed.answered(&Input::RuntimeGone { runtime: RuntimeId(1), closed: None });
    for wish in &wishes {
        let of_runtime = matches!(
            wish,
            Effect::Spawn { .. } | Effect::Stop { .. } | Effect::Reap { .. } | Effect::Open { .. } | Effect::Release { .. }
        );
        assert_eq!(owed.take(wish), of_runtime, "{wish:?}");
    }
}

#[test]
fn what_must_be_done_each_time_is_done_each_time() {
    let mut owed = Owed::default();
    let command = AgentCommand::Interrupt { session: SessionId(1), turn: TurnId(1) };
    let once = Effect::Command { runtime: RuntimeId(1), command };
    assert!(owed.take(&once) && owed.take(&once));
}

#[test]
fn a_notification_can_be_shown_taken_away_and_shown_again() {
    let mut owed = Owed::default();
    let key = || "key".to_owned();
    for _ in 0..2 {
        let show = Effect::Notify { key: key() };
        owed.superseded(&show);
        assert!(owed.take(&show) && !owed.take(&show));
        let close = Effect::CloseNotification { key: key() };
        owed.superseded(&close);
        assert!(owed.take(&close));
        owed.closed("key");
    }
}
