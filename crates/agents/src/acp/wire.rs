//! The protocol's messages, as far as they are read here.
//!
//! Every member may be missing, be null or be of another kind than expected: then it counts as missing, and the rest of
//! the message is still of use. Nothing past this folder sees these types.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// The value, or the default of its type where it has another shape.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).unwrap_or_default())
}

/// The elements that can be read.
fn readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let Value::Array(elements) = Value::deserialize(from)? else { return Ok(Vec::new()) };
    Ok(elements.into_iter().filter_map(|element| serde_json::from_value(element).ok()).collect())
}

/// As [`readable`]; `None` where there is no list at all, which is not the same as an empty one.
fn readable_if_any<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<Vec<T>>, D::Error> {
    let Value::Array(elements) = Value::deserialize(from)? else { return Ok(None) };
    Ok(Some(elements.into_iter().filter_map(|element| serde_json::from_value(element).ok()).collect()))
}

macro_rules! tolerant {
    ($($(#[$about:meta])* struct $name:ident { $($(#[$how:meta])* $member:ident: $kind:ty = $with:literal,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(super) struct $name {
            $(
                $(#[$how])*
                #[serde(deserialize_with = $with)]
                pub(super) $member: $kind,
            )*
        }
    )*};
}

tolerant! {
    // ---- the handshake

    struct Initialized {
        protocol_version: Option<u64> = "lenient",
        agent_capabilities: AgentCapabilities = "lenient",
        agent_info: AgentInfo = "lenient",
        auth_methods: Vec<AuthMethod> = "readable",
        #[serde(rename = "_meta")]
        meta: Value = "lenient",
    }

    struct AgentInfo {
        version: String = "lenient",
    }

    struct AgentCapabilities {
        load_session: bool = "lenient",
        session_capabilities: SessionCapabilities = "lenient",
        auth: AuthCapabilities = "lenient",
    }

    /// A capability is there if it is not null, whatever it holds.
    struct SessionCapabilities {
        resume: Value = "lenient",
        list: Value = "lenient",
        close: Value = "lenient",
        fork: Value = "lenient",
    }

    struct AuthCapabilities {
        logout: Value = "lenient",
    }

    struct AuthMethod {
        id: String = "lenient",
        name: String = "lenient",
        description: String = "lenient",
        r#type: String = "lenient",
        args: Vec<String> = "readable",
        #[serde(rename = "_meta")]
        meta: Value = "lenient",
    }

    struct AuthStatusUpdate {
        auth_status: AuthStatus = "lenient",
    }

    struct AuthStatus {
        kind: String = "lenient",
        label: String = "lenient",
        detail: String = "lenient",
        account: AuthAccount = "lenient",
    }

    struct AuthAccount {
        email: Option<String> = "lenient",
        organization: Option<String> = "lenient",
        plan: Option<String> = "lenient",
    }

    // ---- sessions

    struct Opened {
        session_id: Option<String> = "lenient",
        modes: Option<Modes> = "lenient",
        models: Option<Models> = "lenient",
        config_options: Vec<ConfigOption> = "readable",
    }

    struct Modes {
        current_mode_id: Option<String> = "lenient",
        available_modes: Vec<Mode> = "readable",
    }

    struct Mode {
        id: String = "lenient",
    }

    struct Models {
        current_model_id: Option<String> = "lenient",
        available_models: Vec<Model> = "readable",
    }

    struct Model {
        model_id: String = "lenient",
        name: String = "lenient",
        description: String = "lenient",
    }

    /// `options` may be a list, or a list of groups of lists.
    struct ConfigOption {
        id: String = "lenient",
        category: String = "lenient",
        current_value: Value = "lenient",
        options: Vec<ConfigChoice> = "readable",
    }

    struct ConfigChoice {
        value: Option<String> = "lenient",
        name: String = "lenient",
        description: String = "lenient",
        options: Vec<ConfigChoice> = "readable",
    }

    struct ConfigSet {
        config_options: Option<Vec<ConfigOption>> = "readable_if_any",
    }

    struct SessionOnly {
        session_id: String = "lenient",
    }

    struct SessionList {
        sessions: Vec<Listed> = "readable",
        next_cursor: Option<String> = "lenient",
    }

    struct Listed {
        session_id: String = "lenient",
        cwd: String = "lenient",
        title: String = "lenient",
        updated_at: String = "lenient",
    }

    // ---- turns

    struct PromptEnded {
        stop_reason: String = "lenient",
        usage: Option<TurnUsage> = "lenient",
    }

    struct TurnUsage {
        total_tokens: u64 = "lenient",
        input_tokens: u64 = "lenient",
        output_tokens: u64 = "lenient",
        cached_read_tokens: u64 = "lenient",
        thought_tokens: u64 = "lenient",
    }

    struct Steered {
        outcome: String = "lenient",
    }

    struct Updated {
        session_id: String = "lenient",
        update: Update = "lenient",
    }

    /// Any kind of update: the members of all of them.
    struct Update {
        session_update: String = "lenient",
        message_id: Option<String> = "lenient",
        /// One block of a message, or the list of a tool call.
        content: Value = "lenient",
        entries: Vec<PlanEntry> = "readable",
        current_mode_id: Option<String> = "lenient",
        config_options: Option<Vec<ConfigOption>> = "readable_if_any",
        title: Option<String> = "lenient",
        available_commands: Vec<Command> = "readable",
        used: Option<u64> = "lenient",
        size: Option<u64> = "lenient",
        tool_call_id: Option<String> = "lenient",
        kind: Option<String> = "lenient",
        status: Option<String> = "lenient",
        raw_input: Value = "lenient",
        raw_output: Value = "lenient",
        #[serde(rename = "_meta")]
        meta: Value = "lenient",
    }

    struct Command {
        name: String = "lenient",
        description: String = "lenient",
        input: CommandInput = "lenient",
    }

    struct CommandInput {
        hint: String = "lenient",
    }

    struct PlanEntry {
        content: String = "lenient",
        status: String = "lenient",
    }

    // ---- what the agent asks

    struct PermissionAsk {
        session_id: String = "lenient",
        /// Has the members of an update of a tool call.
        tool_call: Update = "lenient",
        options: Vec<PermissionOption> = "readable",
    }

    struct PermissionOption {
        option_id: String = "lenient",
        name: String = "lenient",
        kind: String = "lenient",
    }
}

/// What the agent withdraws, by the id of its own request, as it came.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Withdrawn<'a> {
    #[serde(borrow)]
    pub(super) request_id: &'a serde_json::value::RawValue,
}

/// A refusal, with the data that tells its kinds apart.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    pub(super) code: i64,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: String,
    pub(super) data: Value,
}

/// The text in a block of content; what is no text is named.
pub(super) fn text_of(block: &Value) -> String {
    let member = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    match member("type") {
        "text" => member("text").to_owned(),
        "resource_link" => member("uri").to_owned(),
        "resource" => {
            let resource = block.get("resource").unwrap_or(&Value::Null);
            let text = resource.get("text").or_else(|| resource.get("uri"));
            text.and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        "" => String::new(),
        other => format!("[{other}]"),
    }
}
