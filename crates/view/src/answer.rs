//! A person's answer, checked against what was asked.
//!
//! It never guesses: what was not offered is refused.

use std::collections::BTreeMap;

use turnkeep_model::{
    ApprovalId,
    port::{Answer, Ask, AskBody, Choice, Question},
    state::{Approval, ApprovalState, State},
};

use crate::{dto, words};

/// Why an answer cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Answered already, withdrawn, or never asked.
    NotOpen,
    NotOffered,
    WrongKind,
    NotAllAnswered,
    NotJson,
}

impl Refused {
    /// In words that a person can act on.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NotOpen => words::NO_SUCH_APPROVAL,
            Self::NotOffered => words::NOT_OFFERED,
            Self::WrongKind => words::WRONG_KIND_OF_ANSWER,
            Self::NotAllAnswered => words::NOT_ALL_ANSWERED,
            Self::NotJson => words::FORM_IS_NOT_JSON,
        }
    }
}

/// The answer in the machine's terms.
///
/// # Errors
/// [`Refused`] where the question is not open, or the answer does not fit it.
pub fn answer(state: &State, approval: ApprovalId, answer: dto::Answer) -> Result<Answer, Refused> {
    match state.approvals.get(&approval) {
        Some(Approval { state: ApprovalState::Pending, ask, .. }) => fit(ask, answer),
        _ => Err(Refused::NotOpen),
    }
}

fn fit(ask: &Ask, answer: dto::Answer) -> Result<Answer, Refused> {
    match answer {
        dto::Answer::Choice { kind } => {
            ask.choices.iter().find(|choice| is(choice, kind)).cloned().map(Answer::Choice).ok_or(Refused::NotOffered)
        }
        dto::Answer::Answers { answers } => {
            let AskBody::Questions { questions } = &ask.body else { return Err(Refused::WrongKind) };
            answered(questions, answers).map(Answer::Answers)
        }
        dto::Answer::Form { json } => {
            let AskBody::Form { .. } = &ask.body else { return Err(Refused::WrongKind) };
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok();
            if is_json { Ok(Answer::Form(json)) } else { Err(Refused::NotJson) }
        }
    }
}

fn is(choice: &Choice, kind: dto::ChoiceKind) -> bool {
    matches!(
        (choice, kind),
        (Choice::Allow, dto::ChoiceKind::Allow)
            | (Choice::AllowForSession, dto::ChoiceKind::AllowForSession)
            | (Choice::AllowAlways { .. }, dto::ChoiceKind::AllowAlways)
            | (Choice::Deny, dto::ChoiceKind::Deny)
            | (Choice::DenyAndStop, dto::ChoiceKind::DenyAndStop)
    )
}

type Answers = BTreeMap<String, Vec<String>>;

fn answered(questions: &[Question], answers: Answers) -> Result<Answers, Refused> {
    if questions.iter().any(|question| answers.get(&question.id).is_none_or(Vec::is_empty)) {
        return Err(Refused::NotAllAnswered);
    }
    let fits = |(id, texts): (&String, &Vec<String>)| {
        questions.iter().find(|question| question.id == *id).is_some_and(|question| {
            question.free_text || texts.iter().all(|text| question.options.iter().any(|(label, _)| label == text))
        })
    };
    if answers.iter().all(fits) { Ok(answers) } else { Err(Refused::NotOffered) }
}

#[cfg(test)]
mod tests;
