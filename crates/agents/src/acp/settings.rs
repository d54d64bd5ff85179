//! Modes, models and other choices of a session: what is on offer, what is in effect, and how a choice is made.
//!
//! Agents offer them in two ways, old and new, some in both: as lists of their own, and as options of a common list.

use serde_json::{Value, json};
use turnkeep_model::port::{ApprovalMode, Model, Sandbox, SessionSettings};

use super::{Entry, wire};

/// One thing that can be chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    by: Option<By>,
    pub(super) current: Option<String>,
    /// Id, name and description.
    choices: Vec<(String, String, String)>,
}

/// How a choice is told to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    /// A method of its own.
    Method(&'static str),
    /// The option with this id.
    Option(String),
}

/// Everything that a session offers.
#[derive(Clone, Debug, Default)]
pub(super) struct Catalogue {
    pub(super) mode: Offer,
    pub(super) model: Offer,
    pub(super) effort: Offer,
}

/// A choice to be told to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) what: What,
    pub(super) value: String,
}

/// What is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Mode,
    Model,
    Effort,
}

impl What {
    /// For a sentence: "set …".
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Mode => "set the mode",
            Self::Model => "set the model",
            Self::Effort => "set the effort",
        }
    }
}

impl Catalogue {
    /// As an opened session tells it.
    pub(super) fn of(opened: &wire::Opened) -> Self {
        let mut catalogue = Self::default();
        if let Some(modes) = &opened.modes {
            let choices = modes.available_modes.iter().map(|mode| (mode.id.clone(), String::new(), String::new()));
            catalogue.mode = Offer {
                by: Some(By::Method("session/set_mode")),
                current: modes.current_mode_id.clone(),
                choices: choices.collect(),
            };
        }
        if let Some(models) = &opened.models {
            let choices = models.available_models.iter().map(|m| (m.model_id.clone(), m.name.clone(), m.description.clone()));
            catalogue.model = Offer {
                by: Some(By::Method("session/set_model")),
                current: models.current_model_id.clone(),
                choices: choices.collect(),
            };
        }
        catalogue.options(&opened.config_options);
        catalogue
    }

    /// The whole common list, as it is now. Its modes are the same as those that have a list of their own.
    pub(super) fn options(&mut self, options: &[wire::ConfigOption]) {
        for option in options {
            let offer = match option.category.as_str() {
                "mode" => &mut self.mode,
                "model" => &mut self.model,
                "thought_level" => &mut self.effort,
                _ => continue,
            };
            if offer.by != Some(By::Method("session/set_mode")) {
                offer.by = Some(By::Option(option.id.clone()));
            }
            offer.current = option.current_value.as_str().map(str::to_owned);
            let flat = option.options.iter().flat_map(|choice| std::iter::once(choice).chain(&choice.options));
            offer.choices = flat
                .filter_map(|choice| Some((choice.value.clone()?, choice.name.clone(), choice.description.clone())))
                .collect();
        }
    }

    fn offer(&mut self, what: What) -> &mut Offer {
        match what {
            What::Mode => &mut self.mode,
            What::Model => &mut self.model,
            What::Effort => &mut self.effort,
        }
    }

    /// The method and the parameters that make a choice; `None` where it is not on offer.
    pub(super) fn request(&mut self, session: &str, setting: &Setting) -> Option<(&'static str, Value)> {
        let value = setting.value.as_str();
        let offer = self.offer(setting.what);
        if !offer.has(value) {
            return None;
        }
        Some(match offer.by.as_ref()? {
            By::Method(method @ "session/set_mode") => (*method, json!({"sessionId": session, "modeId": value})),
            By::Method(method) => (*method, json!({"sessionId": session, "modelId": value})),
            By::Option(id) => ("session/set_config_option", json!({"sessionId": session, "configId": id, "value": value})),
        })
    }

    /// The agent took the choice.
    pub(super) fn chosen(&mut self, setting: &Setting) {
        self.offer(setting.what).current = Some(setting.value.clone());
    }

    /// Models as the domain's.
    pub(super) fn models(&self) -> Vec<Model> {
        let efforts: Vec<String> = self.effort.choices.iter().map(|(id, ..)| id.clone()).collect();
        let model = |(id, name, description): &(String, String, String)| Model {
            id: id.clone(),
            name: if name.is_empty() { id.clone() } else { name.clone() },
            description: description.clone(),
            efforts: efforts.clone(),
            default_effort: self.effort.current.clone(),
            is_default: self.model.current.as_ref() == Some(id),
        };
        self.model.choices.iter().map(model).collect()
    }

    /// What is in effect, in the domain's terms.
    pub(super) fn settings(&self, entry: &Entry) -> SessionSettings {
        let current = self.mode.current.as_deref();
        let mode = entry.quirks.modes.iter().find(|mode| Some(mode.id) == current);
        SessionSettings {
            model: self.model.current.clone(),
            effort: self.effort.current.clone(),
            approval_mode: mode.map(|mode| mode.approval),
            sandbox: mode.and_then(|mode| mode.sandbox),
        }
    }

    /// What must be told to the agent so that `wanted` is in effect; what cannot be is in the second list, in words.
    pub(super) fn differences(&self, entry: &Entry, wanted: &SessionSettings) -> (Vec<Setting>, Vec<String>) {
        let (mut settings, mut impossible) = (Vec::new(), Vec::new());
        let mut want = |what, offer: &Offer, value: Option<String>| {
            let Some(value) = value.filter(|value| offer.current.as_ref() != Some(value)) else { return };
            if offer.has(&value) {
                settings.push(Setting { what, value });
            } else {
                impossible.push(format!("{} does not offer to {} to {value}.", entry.name, what.words()));
            }
        };
        want(What::Mode, &self.mode, self.mode_for(entry, wanted.approval_mode, wanted.sandbox));
        want(What::Model, &self.model, wanted.model.clone());
        want(What::Effort, &self.effort, wanted.effort.clone());
        (settings, impossible)
    }

    /// The mode that means this. One in effect that means it stays; where nothing is chosen, it is the one that asks.
    fn mode_for(&self, entry: &Entry, approval: Option<ApprovalMode>, sandbox: Option<Sandbox>) -> Option<String> {
        if approval.is_none() && sandbox.is_none() {
            return entry.quirks.asks_in.filter(|mode| self.mode.has(mode)).map(str::to_owned);
        }
        let fits = |mode: &&super::quirks::Mode| {
            approval.is_none_or(|wanted| mode.approval == wanted)
                && sandbox.is_none_or(|wanted| mode.sandbox.is_none_or(|is| is == wanted))
        };
        let current = self.mode.current.as_deref();
        let mut fitting = entry.quirks.modes.iter().filter(fits).filter(|mode| self.mode.has(mode.id));
        let first = fitting.clone().next();
        fitting.find(|mode| Some(mode.id) == current).or(first).map(|mode| mode.id.to_owned())
    }
}

impl Offer {
    fn has(&self, value: &str) -> bool {
        self.choices.iter().any(|(id, ..)| id == value)
    }
}
