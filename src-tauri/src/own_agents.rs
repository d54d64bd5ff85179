//! The person's own agents, as the window shows and changes them: an id, a name and a command line.
//!
//! What is set for an agent's process is not shown here, and not taken from here: it may be a secret.

use serde::{Deserialize, Serialize};
use tauri::State;
use turnkeep_agents::configured::Configured;
use turnkeep_engine::own_agents;
use turnkeep_view::dto;

use crate::shell::Shell;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OwnAgent {
    id: String,
    name: String,
    /// As a shell takes it, of which only quotes are understood.
    command_line: String,
}

fn refused(message: String) -> dto::CommandError {
    dto::CommandError { code: "ownAgent".to_owned(), message }
}

#[tauri::command(async)]
pub(crate) fn own_agents(shell: State<'_, Shell>) -> Result<Vec<OwnAgent>, dto::CommandError> {
    let listed = own_agents::list(&shell.places).map_err(refused)?;
    let shown = |agent: Configured| OwnAgent {
        command_line: std::iter::once(&agent.command).chain(&agent.args).map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        id: agent.id,
        name: agent.name,
    };
    Ok(listed.into_iter().map(shown).collect())
}

#[tauri::command(async)]
pub(crate) fn add_own_agent(shell: State<'_, Shell>, agent: OwnAgent) -> Result<(), dto::CommandError> {
    let mut words = words(&agent.command_line).map_err(refused)?.into_iter();
    let added = Configured {
        id: agent.id.trim().to_owned(),
        name: agent.name.trim().to_owned(),
        command: words.next().unwrap_or_default(),
        args: words.collect(),
        ..Configured::default()
    };
    own_agents::add(&shell.places, &added).map_err(refused)
}

#[tauri::command(async)]
pub(crate) fn remove_own_agent(shell: State<'_, Shell>, id: String) -> Result<(), dto::CommandError> {
    own_agents::remove(&shell.places, &id).map_err(refused)
}

/// The words of a command line: between spaces, or between quotes.
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quote.is_some() { Err("It was not added: a quote in the command line is not closed.".to_owned()) } else { Ok(words) }
}

fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    match (plain, word.contains('"')) {
        (true, _) => word.to_owned(),
        (false, false) => format!("\"{word}\""),
        (false, true) => format!("'{word}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_at_spaces_and_quotes_keep_words_together() {
        assert_eq!(words("my-agent  --acp 'a b' \"\" x'y'z").unwrap(), ["my-agent", "--acp", "a b", "", "xyz"]);
        assert_eq!(words(r"C:\bin\agent.exe --acp").unwrap(), [r"C:\bin\agent.exe", "--acp"]);
        assert!(words("  ").unwrap().is_empty());
        assert!(words("a 'b").is_err());
    }

    #[test]
    fn what_is_shown_is_split_again_into_the_same() {
        for word in ["plain", "two words", "", "it's", "say \"x\""] {
            assert_eq!(words(&quoted(word)).unwrap(), [word]);
        }
    }
}
