//! Codex's questions as the domain's, and a person's answers as Codex wants them.
//!
//! An answer is never guessed: what does not fit the question is refused here, and nothing is sent.

use serde_json::{Value, json, value::RawValue};
use turnkeep_model::{
    ItemId, ProviderTurn,
    port::{Answer, Ask, AskBody, Choice, Question},
};

use super::wire;

/// A question, and what is needed to answer it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) thread: String,
    pub(super) turn: Option<ProviderTurn>,
    /// A file change still lacks its changes, which came with its entry.
    pub(super) ask: Ask,
    pub(super) wanted: Wanted,
}

/// The shape of the answer that Codex waits for.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// A decision on a command or a file change; these were offered.
    Decision(Vec<Choice>),
    /// The granted part of these permissions.
    Permissions(Value),
    Answers,
    Elicitation,
}

/// The question that a request asks, if it is one that a person can answer.
pub(super) fn read(method: &str, params: &RawValue) -> Option<Asked> {
    let text = params.get();
    match method {
        "item/commandExecution/requestApproval" => Some(command(serde_json::from_str(text).ok()?)),
        "item/fileChange/requestApproval" => Some(file(serde_json::from_str(text).ok()?)),
        "item/permissions/requestApproval" => {
            let raw: wire::RawPermissions<'_> = serde_json::from_str(text).ok()?;
            let wanted = serde_json::from_str(raw.permissions.get()).ok()?;
            Some(permissions(serde_json::from_str(text).ok()?, wanted))
        }
        "item/tool/requestUserInput" => Some(questions(serde_json::from_str(text).ok()?)),
        "mcpServer/elicitation/request" => form(serde_json::from_str(text).ok()?),
        _ => None,
    }
}

fn command(from: wire::CommandAsk) -> Asked {
    let offered = from.available_decisions.unwrap_or_default();
    let rule =
        from.proposed_execpolicy_amendment.or_else(|| offered.iter().find_map(offered_rule)).filter(|rule| !rule.is_empty());
    let mut choices = vec![Choice::Allow, Choice::AllowForSession];
    choices.extend(rule.map(|rule| Choice::AllowAlways { rule }));
    choices.extend([Choice::DenyAndStop, Choice::Deny]);
    let command = from.command.unwrap_or_else(|| match &from.network_approval_context {
        Some(wish) => format!("network access to {} ({})", wish.host, wish.protocol),
        None => String::new(),
    });
    Asked {
        thread: from.thread_id,
        turn: turn(from.turn_id),
        ask: Ask {
            body: AskBody::Command { command, cwd: from.cwd.unwrap_or_default(), may_run_unsandboxed: true },
            reason: from.reason,
            choices: choices.clone(),
            item: item(from.item_id),
        },
        wanted: Wanted::Decision(choices),
    }
}

fn offered_rule(decision: &Value) -> Option<Vec<String>> {
    let words = decision.get("acceptWithExecpolicyAmendment")?.get("execpolicy_amendment")?.as_array()?;
    words.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

fn file(from: wire::FileAsk) -> Asked {
    let choices = vec![Choice::Allow, Choice::AllowForSession, Choice::DenyAndStop, Choice::Deny];
    Asked {
        thread: from.thread_id,
        turn: turn(from.turn_id),
        ask: Ask {
            body: AskBody::FileChange { changes: Vec::new(), grant_root: from.grant_root },
            reason: from.reason,
            choices: choices.clone(),
            item: item(from.item_id),
        },
        wanted: Wanted::Decision(choices),
    }
}

fn permissions(from: wire::PermissionAsk, wanted: Value) -> Asked {
    let files = from.permissions.file_system.unwrap_or_default();
    let mut read = files.read.unwrap_or_default();
    let mut write = files.write.unwrap_or_default();
    for entry in &files.entries {
        // An entry of an unknown shape is shown as it is: a grant must never hide what it grants.
        let path = entry.get("path").and_then(|path| ["path", "pattern", "value"].iter().find_map(|name| path.get(name)));
        let path = match path {
            Some(Value::String(path)) => path.clone(),
            Some(other) => other.to_string(),
            None => entry.to_string(),
        };
        match entry.get("access").and_then(Value::as_str) {
            Some("read") => read.push(path),
            Some("deny") => {}
            _ => write.push(path),
        }
    }
    Asked {
        thread: from.thread_id,
        turn: turn(from.turn_id),
        ask: Ask {
            body: AskBody::Permissions { network: from.permissions.network.is_some_and(|network| network.enabled), read, write },
            reason: from.reason,
            choices: vec![Choice::Allow, Choice::AllowForSession, Choice::Deny],
            item: item(from.item_id),
        },
        wanted: Wanted::Permissions(wanted),
    }
}

fn questions(from: wire::QuestionAsk) -> Asked {
    let question = |from: wire::Question| Question {
        id: from.id,
        header: from.header,
        text: from.question,
        free_text: from.is_other || from.options.as_ref().is_none_or(Vec::is_empty),
        options: from.options.unwrap_or_default().into_iter().map(|option| (option.label, option.description)).collect(),
        secret: from.is_secret,
    };
    Asked {
        thread: from.thread_id,
        turn: turn(from.turn_id),
        ask: Ask {
            body: AskBody::Questions { questions: from.questions.into_iter().map(question).collect() },
            reason: None,
            choices: vec![Choice::Deny],
            item: item(from.item_id),
        },
        wanted: Wanted::Answers,
    }
}

/// `None` for a kind of form that only OpenAI's own programs can answer.
fn form(from: wire::FormAsk) -> Option<Asked> {
    let mut message = from.message;
    let mut choices = Vec::new();
    let mut schema = None;
    match from.mode.as_str() {
        "form" | "openai/form" | "openaiForm" => {
            let wanted = from.requested_schema.unwrap_or(Value::Null);
            let empty = wanted.get("properties").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty);
            if empty {
                choices.push(Choice::Allow);
                let persist = from.meta.get("persist").cloned().unwrap_or(Value::Null);
                let can = |word: &str| {
                    persist.as_str() == Some(word)
                        || persist.as_array().is_some_and(|words| words.iter().any(|known| known == word))
                };
                if can("session") {
                    choices.push(Choice::AllowForSession);
                }
                if can("always") {
                    choices.push(Choice::AllowAlways { rule: Vec::new() });
                }
            } else {
                schema = Some(wanted.to_string());
            }
        }
        "url" => {
            let url = from.url?;
            message = format!("{message}\n{url}");
            choices.push(Choice::Allow);
        }
        _ => return None,
    }
    choices.extend([Choice::DenyAndStop, Choice::Deny]);
    Some(Asked {
        thread: from.thread_id,
        turn: from.turn_id.and_then(turn),
        ask: Ask {
            body: AskBody::Form { server: from.server_name, message, schema },
            reason: from.meta.get("tool_description").and_then(Value::as_str).map(str::to_owned),
            choices,
            item: None,
        },
        wanted: Wanted::Elicitation,
    })
}

/// The result to send back.
///
/// # Errors
/// What does not fit, in words.
pub(super) fn answer(wanted: &Wanted, answer: &Answer) -> Result<Value, &'static str> {
    match (wanted, answer) {
        (Wanted::Decision(offered), Answer::Choice(choice)) => {
            let decision = match choice {
                Choice::Allow => json!("accept"),
                Choice::AllowForSession => json!("acceptForSession"),
                Choice::AllowAlways { rule } if offered.contains(choice) => {
                    json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": rule}})
                }
                Choice::AllowAlways { .. } => return Err("a rule was given that Codex had not offered"),
                Choice::Deny => json!("decline"),
                Choice::DenyAndStop => json!("cancel"),
            };
            Ok(json!({ "decision": decision }))
        }
        (Wanted::Permissions(wished), Answer::Choice(choice)) => Ok(match choice {
            Choice::Allow => json!({"permissions": granted(wished), "scope": "turn"}),
            Choice::AllowForSession => json!({"permissions": granted(wished), "scope": "session"}),
            Choice::Deny | Choice::DenyAndStop => json!({"permissions": {}, "scope": "turn"}),
            Choice::AllowAlways { .. } => return Err("permissions cannot be granted for ever"),
        }),
        (Wanted::Answers, Answer::Answers(answers)) => {
            let answers: serde_json::Map<String, Value> =
                answers.iter().map(|(id, texts)| (id.clone(), json!({ "answers": texts }))).collect();
            Ok(json!({ "answers": answers }))
        }
        (Wanted::Answers, Answer::Choice(Choice::Deny | Choice::DenyAndStop)) => Ok(json!({ "answers": {} })),
        (Wanted::Elicitation, Answer::Choice(choice)) => Ok(match choice {
            Choice::Allow => json!({"action": "accept", "content": {}, "_meta": null}),
            Choice::AllowForSession => json!({"action": "accept", "content": {}, "_meta": {"persist": "session"}}),
            Choice::AllowAlways { .. } => json!({"action": "accept", "content": {}, "_meta": {"persist": "always"}}),
            Choice::Deny => json!({"action": "decline", "content": null, "_meta": null}),
            Choice::DenyAndStop => json!({"action": "cancel", "content": null, "_meta": null}),
        }),
        (Wanted::Elicitation, Answer::Form(text)) => match serde_json::from_str::<Value>(text) {
            Ok(content @ Value::Object(_)) => Ok(json!({"action": "accept", "content": content, "_meta": null})),
            _ => Err("the form's answer is not a JSON object"),
        },
        _ => Err("the answer is of another kind than the question"),
    }
}

/// What was wished for, without the members that say nothing.
fn granted(wished: &Value) -> Value {
    let members = wished.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn turn(id: String) -> Option<ProviderTurn> {
    (!id.is_empty()).then_some(ProviderTurn(id))
}

fn item(id: String) -> Option<ItemId> {
    (!id.is_empty()).then_some(ItemId(id))
}

#[cfg(test)]
mod tests;
