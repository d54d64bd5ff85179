//! What the agent does, as data: a list of steps for each word that a person may type.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    through::Errand,
    wire::{INTERNAL, Refusal, SIGN_IN_NEEDED},
};

/// What can be typed, and what then happens.
pub const WORDS: [(&str, &str); 13] = [
    ("ask", "asks for a permission, and does nothing else"),
    ("plan", "shows a plan and works through it"),
    ("slow", "answers slowly, for a minute or so"),
    ("long", "answers with a long text"),
    ("big", "runs a command with much output, and shows a large change"),
    ("wait", "runs a command that does not end until the turn is stopped"),
    ("client", "has its client write, read and run for it, and asks for what a careful client refuses"),
    ("fail", "the turn fails"),
    ("hang", "says nothing more until the turn is stopped"),
    ("crash", "the agent's process ends in the middle of the turn"),
    ("sign out", "is signed out after this turn: nothing works until you sign in"),
    ("need sign-in", "refuses this very turn until you sign in"),
    ("tour", "a bit of everything: a plan, a command and a change, each after your permission"),
];

/// One thing that it does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Say(String),
    Think(String),
    /// The entries, and how many of them are done; the next is in progress.
    Plan(&'static [&'static str], usize),
    /// Asks before `tool` is used. Refused: the other steps.
    Ask {
        tool: Tool,
        refused: Vec<Self>,
    },
    /// Uses it without asking.
    Use(Tool),
    Usage,
    /// A pause, in steps.
    Pause(u32),
    /// Nothing more until the turn is stopped.
    Hang,
    /// The turn's request is refused.
    Refuse(Refusal),
    SignOut,
    /// The process ends at once.
    Crash,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tool {
    Run {
        title: &'static str,
        program: &'static [&'static str],
    },
    /// A file in the sub-folder of the session's folder.
    Edit {
        name: &'static str,
        text: String,
    },
    /// Done by the client.
    Through(Errand),
    /// Only asked about, never done.
    Nothing,
}

impl Tool {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Run { .. } => "execute",
            Self::Edit { .. } => "edit",
            Self::Through(errand) => errand.kind(),
            Self::Nothing => "other",
        }
    }

    pub(crate) fn title(&self) -> String {
        match self {
            Self::Run { title, .. } => (*title).to_owned(),
            Self::Edit { name, .. } => format!("Write {}/{name}", crate::scratch::FOLDER),
            Self::Through(errand) => errand.title(),
            Self::Nothing => "Do something that needs your permission".to_owned(),
        }
    }

    pub(crate) fn input(&self) -> Value {
        match self {
            Self::Run { program, .. } => json!({ "command": program.join(" ") }),
            Self::Edit { name, .. } => json!({ "path": format!("{}/{name}", crate::scratch::FOLDER) }),
            Self::Through(errand) => errand.input(),
            Self::Nothing => json!({}),
        }
    }
}

#[cfg(not(windows))]
const NAME_OF_THE_SYSTEM: Tool = Tool::Run { title: "uname -sr", program: &["uname", "-sr"] };
#[cfg(windows)]
const NAME_OF_THE_SYSTEM: Tool = Tool::Run { title: "ver", program: &["cmd", "/C", "ver"] };

/// Reads an input that never comes: it ends with the agent, however that ends.
#[cfg(not(windows))]
const WAITS: Tool = Tool::Run { title: "cat", program: &["cat"] };
#[cfg(windows)]
const WAITS: Tool = Tool::Run { title: "findstr x", program: &["findstr", "x"] };

#[cfg(not(windows))]
const COUNTS: Tool = Tool::Run { title: "seq 1 20000", program: &["seq", "1", "20000"] };
#[cfg(windows)]
const COUNTS: Tool = Tool::Run { title: "count to 20000", program: &["cmd", "/C", "for /L %i in (1,1,20000) do @echo %i"] };

/// Which script a text chooses: the first of its words that is one, else the tour.
pub(crate) fn word(text: &str) -> &'static str {
    let text = text.to_lowercase();
    let plain: String = text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let is = |at: usize, phrase: &[&str]| words.get(at..at + phrase.len()) == Some(phrase);
    (0..words.len())
        .find_map(|at| {
            if is(at, &["sign", "out"]) || is(at, &["log", "out"]) {
                return Some("sign out");
            }
            if is(at, &["need", "sign", "in"]) || is(at, &["needs", "sign", "in"]) {
                return Some("need sign-in");
            }
            WORDS.iter().map(|(word, _)| *word).find(|word| *word == words[at])
        })
        .unwrap_or("tour")
}

/// The steps for a text. `first`: nothing was said in this session before.
pub(crate) fn steps(text: &str, first: bool) -> Vec<Step> {
    let word = word(text);
    let mut steps = match word {
        "ask" => ask(),
        "plan" => plan(),
        "slow" => slow(),
        "long" => long(),
        "big" => big(),
        "wait" => vec![
            say("I run a command that waits for an input which never comes. Stop the turn when you have seen enough."),
            Step::Use(WAITS),
            say("It has ended."),
        ],
        "client" => client(),
        "fail" => vec![
            say("This turn is going to fail."),
            Step::Refuse(
                Refusal::new(INTERNAL, "Internal error").with(json!({ "details": "The demo agent was asked to fail, and did." })),
            ),
        ],
        "hang" => vec![say("From here on I say nothing until you stop the turn."), Step::Hang],
        "crash" => vec![say("My process ends now, in the middle of this turn."), Step::Pause(5), Step::Crash],
        "sign out" => vec![
            say("I am signed out after this turn. Your next message waits until you sign in to the demo agent."),
            Step::SignOut,
        ],
        "need sign-in" => vec![Step::SignOut, Step::Refuse(sign_in_needed())],
        _ => tour(),
    };
    if first && word != "need sign-in" {
        steps.insert(0, introduction());
    }
    steps
}

pub(crate) fn sign_in_needed() -> Refusal {
    Refusal::new(SIGN_IN_NEEDED, "Authentication required")
}

fn say(text: &str) -> Step {
    Step::Say(text.to_owned())
}

fn introduction() -> Step {
    let words: String = WORDS.iter().map(|(word, what)| format!("- **{word}** — {what}\n")).collect();
    Step::Say(format!(
        "Hello. I am the demo agent: a real process on this computer, but scripted, without a model, an account or a \
         network. Type one of these words to see more:\n\n{words}\n"
    ))
}

const STEPS: &[&str] = &["Look at this computer", "Write a file in the session's folder", "Say how it went"];

fn tour() -> Vec<Step> {
    vec![
        Step::Think("First a plan, then a command, then a change. I ask before each of the last two.".to_owned()),
        Step::Plan(STEPS, 0),
        say("I would like to know which system this is. "),
        Step::Ask { tool: NAME_OF_THE_SYSTEM, refused: vec![say("Then I do not look. ")] },
        Step::Plan(STEPS, 1),
        say("Now I would like to write a file, in a sub-folder of this session's folder. "),
        Step::Ask {
            tool: Tool::Edit {
                name: "tour.md",
                text: "# The tour\n\n- [x] a plan\n- [x] a command\n- [x] this file\n".to_owned(),
            },
            refused: vec![say("Then I write nothing. ")],
        },
        Step::Plan(STEPS, 2),
        Step::Usage,
        Step::Plan(STEPS, 3),
        say("That was the tour. Everything that you saw came over the same way as from any other agent."),
    ]
}

fn ask() -> Vec<Step> {
    vec![
        say("I ask for a permission, and wait for your answer. "),
        Step::Ask { tool: Tool::Nothing, refused: vec![say("You refused, so I did nothing. ")] },
        say("Thank you for the answer."),
    ]
}

fn plan() -> Vec<Step> {
    const ENTRIES: &[&str] = &["Read what is asked", "Think about it", "Do it", "Look at it again", "Report"];
    let mut steps = vec![say("Here is a plan, and how it goes on.")];
    for done in 0..=ENTRIES.len() {
        steps.extend([Step::Plan(ENTRIES, done), Step::Pause(10)]);
    }
    steps.push(say(" All of it is done."));
    steps
}

fn slow() -> Vec<Step> {
    let mut steps = vec![say("I take my time. ")];
    for left in (1..=60).rev() {
        steps.extend([Step::Pause(25), Step::Say(format!("{left}… "))]);
    }
    steps.push(say("Done."));
    steps
}

fn long() -> Vec<Step> {
    let chapter = |number: u32| {
        format!(
            "## Part {number}\n\nThis is one of many paragraphs. It has **bold** and `code`, and a list:\n\n- first\n- \
             second\n\n```rust\nfn part() -> u32 {{\n    {number}\n}}\n```\n\n"
        )
    };
    (1..=100).map(|number| Step::Say(chapter(number))).collect()
}

fn big() -> Vec<Step> {
    let text: String = (1..=3000).map(|line| format!("line {line} of a large file\n")).collect();
    vec![
        say("First a command with much output, "),
        Step::Use(COUNTS),
        say("then a large change. "),
        Step::Ask { tool: Tool::Edit { name: "big.txt", text }, refused: vec![say("No change, then. ")] },
        say("That was all."),
    ]
}

fn client() -> Vec<Step> {
    let errand = |errand| Step::Use(Tool::Through(errand));
    let asked = |errand, refused| Step::Ask { tool: Tool::Through(errand), refused: vec![say(refused)] };
    vec![
        say("Here I touch nothing myself: my client writes, reads and runs for me, as far as it lets me. "),
        asked(Errand::Write { name: "client.md", text: "# By way of the client\n" }, "Then nothing is written. "),
        errand(Errand::Read { name: "client.md" }),
        asked(Errand::Run { program: RUN_BY_THE_CLIENT }, "Then nothing is run. "),
        say("Now a file that is not below the session's folder. "),
        errand(Errand::ReadOutside),
        say("That was all. Nothing was done that you did not allow."),
    ]
}

#[cfg(not(windows))]
const RUN_BY_THE_CLIENT: &[&str] = &["uname", "-s"];
#[cfg(windows)]
const RUN_BY_THE_CLIENT: &[&str] = &["cmd", "/C", "ver"];

/// How long a step takes at this pace.
pub(crate) fn pause(pace: Duration, steps: u32) -> Duration {
    pace.saturating_mul(steps)
}
