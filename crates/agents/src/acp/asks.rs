//! The agent's questions as the domain's, and a person's answers as the agent wants them.
//!
//! An option is chosen by what kind it is of, never by its name: every agent names them otherwise. What does not fit the
//! question is refused here, and nothing is sent.

use serde_json::{Value, json};
use turnkeep_model::{
    ItemId,
    port::{Answer, Ask, AskBody, Choice},
};

use super::{Entry, items::ToolCall, wire::PermissionOption};

/// The option of each choice.
#[derive(Clone, Debug, Default)]
pub(super) struct Options(Vec<(Choice, Option<String>)>);

/// The answer to a question that nobody needs an answer to any more.
pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

/// The question about this tool call.
pub(super) fn ask(entry: &Entry, call: &ToolCall, item: ItemId, folder: &str, options: Vec<PermissionOption>) -> (Ask, Options) {
    let changes = call.changes();
    let body = if !changes.is_empty() {
        AskBody::FileChange { changes, grant_root: None }
    } else if let Some(command) = call.command() {
        let cwd = call.folder();
        AskBody::Command {
            command,
            cwd: if cwd.is_empty() { folder.to_owned() } else { cwd },
            may_run_unsandboxed: entry.quirks.allows_outside_sandbox,
        }
    } else {
        let message = match call.arguments() {
            nothing if nothing.is_empty() || nothing == "{}" => call.title().to_owned(),
            arguments => format!("{}\n{arguments}", call.title()),
        };
        AskBody::Form { server: entry.name.clone(), message, schema: None }
    };
    // What "always" would mean is said by its name alone.
    let always = options.iter().find(|option| option.kind == "allow_always");
    let reason = always.map(|option| format!("To always allow it means: “{}”.", option.name));
    let options = Options::of(options);
    let choices = options.0.iter().map(|(choice, _)| choice.clone()).collect();
    (Ask { body, reason, choices, item: Some(item) }, options)
}

impl Options {
    /// The choices on offer, the safe one last.
    fn of(options: Vec<PermissionOption>) -> Self {
        let of_kind = |kind: &str| options.iter().find(|option| option.kind == kind).map(|option| option.option_id.clone());
        let mut choices = Vec::new();
        choices.extend(of_kind("allow_once").map(|id| (Choice::Allow, Some(id))));
        choices.extend(of_kind("allow_always").map(|id| (Choice::AllowAlways { rule: Vec::new() }, Some(id))));
        choices.push((Choice::DenyAndStop, None));
        choices.extend(of_kind("reject_once").or_else(|| of_kind("reject_always")).map(|id| (Choice::Deny, Some(id))));
        Self(choices)
    }

    /// The result to send back.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub(super) fn answer(&self, answer: &Answer) -> Result<Value, &'static str> {
        let Answer::Choice(choice) = answer else { return Err("the answer is of another kind than the question") };
        match self.0.iter().find(|(known, _)| known == choice) {
            Some((_, Some(id))) => Ok(json!({"outcome": {"outcome": "selected", "optionId": id}})),
            Some((_, None)) => Ok(cancelled()),
            // The turn goes on to its end, or is cancelled; either way nothing is allowed.
            None if matches!(choice, Choice::Deny | Choice::DenyAndStop) => Ok(cancelled()),
            None => Err("this was not on offer"),
        }
    }
}
