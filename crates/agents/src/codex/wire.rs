//! What Codex writes, as far as it is read. Unknown members and kinds are skipped, absent ones take their default.
//!
//! Private to this folder: nothing past it sees a wire type.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// A string, or whatever else stood in its place as `None`: one odd member must not cost the message.
fn lenient<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Lenient::deserialize(from)?.into_inner())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Lenient<T> {
    Good(T),
    Odd(serde::de::IgnoredAny),
}

impl<T: Default> Lenient<T> {
    fn into_inner(self) -> T {
        match self {
            Self::Good(value) => value,
            Self::Odd(_) => T::default(),
        }
    }
}

macro_rules! wire {
    ($($(#[$meta:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(super) struct $name {
            $($(#[$field_meta])* #[serde(deserialize_with = "lenient")] pub(super) $field: $ty,)*
        }
    )*};
}

wire! {
    struct Initialized { user_agent: String, }
    struct ConfigRead { config: Config, }
    /// Spelled as in the file that it is read from.
    struct Config { #[serde(rename = "model_provider")] model_provider: Option<String>, }

    // ---- accounts
    struct AccountRead {
        account: Option<Account>,
        user_id: Option<String>,
        requires_openai_auth: bool,
        workspace_routing: Option<WorkspaceRouting>,
    }
    struct Account { r#type: String, email: Option<String>, plan_type: Option<String>, workspace_name: Option<String>, }
    struct WorkspaceRouting { chatgpt_account_id: Option<String>, }
    struct LoginStarted {
        r#type: String,
        login_id: Option<String>,
        auth_url: Option<String>,
        verification_url: Option<String>,
        user_code: Option<String>,
    }
    struct LoginCompleted { login_id: Option<String>, success: bool, error: Option<String>, }
    struct AccountUpdated { auth_mode: Option<String>, }
    struct RateLimitsRead { rate_limits: RateLimits, }
    struct RateLimits {
        limit_id: Option<String>,
        primary: Option<Window>,
        secondary: Option<Window>,
        plan_type: Option<String>,
    }
    struct Window { used_percent: f64, window_duration_mins: Option<u64>, resets_at: Option<i64>, }

    // ---- models and threads
    struct ModelPage { data: Vec<Model>, next_cursor: Option<String>, }
    struct Model {
        id: String,
        model: String,
        display_name: String,
        description: String,
        hidden: bool,
        supported_reasoning_efforts: Vec<Effort>,
        default_reasoning_effort: Option<String>,
        is_default: bool,
    }
    struct Effort { reasoning_effort: String, }
    struct ThreadOpened {
        thread: Thread,
        model: Option<String>,
        model_provider: Option<String>,
        approval_policy: Option<String>,
        sandbox: Option<Kind>,
        reasoning_effort: Option<String>,
    }
    struct ThreadStarted { thread: Thread, }
    struct Thread {
        id: String,
        name: Option<String>,
        preview: String,
        cwd: String,
        updated_at: i64,
        ephemeral: bool,
        parent_thread_id: Option<String>,
        source: Value,
        status: Kind,
    }
    struct ThreadPage { data: Vec<Thread>, next_cursor: Option<String>, }
    struct Kind { r#type: String, }
    struct ThreadStatus { thread_id: String, status: Kind, }
    struct ThreadOnly { thread_id: String, }
    struct ThreadName { thread_id: String, thread_name: Option<String>, }
    struct Unsubscribed { status: String, }
    struct GoalUpdated { thread_id: String, goal: Goal, }
    struct GoalAnswer { goal: Option<Goal>, }
    struct Goal { objective: String, status: String, token_budget: Option<u64>, }
    struct UsageUpdated { thread_id: String, token_usage: TokenUsage, }
    struct TokenUsage { total: Tokens, last: Tokens, model_context_window: Option<u64>, }
    struct Tokens {
        total_tokens: u64,
        input_tokens: u64,
        cached_input_tokens: u64,
        output_tokens: u64,
        reasoning_output_tokens: u64,
    }

    // ---- turns
    struct TurnStarting { turn: Turn, }
    struct TurnOf { thread_id: String, turn: Turn, }
    struct Turn { id: String, status: String, error: Option<TurnError>, items: Vec<ThreadItem>, }
    struct TurnPage { data: Vec<Turn>, next_cursor: Option<String>, }
    struct ItemPage { data: Vec<ItemEntry>, next_cursor: Option<String>, }
    struct ItemEntry { turn_id: String, item: ThreadItem, }
    struct TurnFailing { thread_id: String, turn_id: String, error: TurnError, will_retry: bool, }
    struct TurnError {
        message: String,
        codex_error_info: Value,
        additional_details: Option<String>,
    }
    struct PlanUpdated { thread_id: String, plan: Vec<Step>, }
    struct Step { step: String, status: String, }
    struct DiffUpdated { thread_id: String, turn_id: String, diff: String, }
    struct ItemOf { thread_id: String, turn_id: String, item: ThreadItem, }
    struct SummaryPart { thread_id: String, turn_id: String, item_id: String, summary_index: u64, }
    struct DeltaOf { thread_id: String, turn_id: String, item_id: String, delta: String, }

    /// All kinds of item in one: `kind` says which members mean something.
    struct ThreadItem {
        #[serde(rename = "type")]
        kind: String,
        id: String,
        client_id: Option<String>,
        /// Parts of a user message, or the raw texts of a reasoning.
        content: Vec<Value>,
        text: String,
        phase: Option<String>,
        summary: Vec<String>,
        command: String,
        cwd: String,
        status: String,
        aggregated_output: Option<String>,
        exit_code: Option<i32>,
        duration_ms: Option<u64>,
        changes: Vec<Change>,
        server: String,
        namespace: Option<String>,
        tool: String,
        name: String,
        arguments: Value,
        result: Value,
        output: Value,
        error: Option<Said>,
        content_items: Value,
        prompt: Option<String>,
        query: String,
        path: Option<String>,
        review: Option<String>,
        fragments: Vec<Value>,
    }
    struct Change { path: String, kind: ChangeKind, diff: String, }
    struct ChangeKind { r#type: String, move_path: Option<String>, }
    struct Said { message: String, }

    // ---- questions
    struct CommandAsk {
        thread_id: String,
        turn_id: String,
        item_id: String,
        reason: Option<String>,
        command: Option<String>,
        cwd: Option<String>,
        network_approval_context: Option<NetworkContext>,
        available_decisions: Option<Vec<Value>>,
        proposed_execpolicy_amendment: Option<Vec<String>>,
    }
    struct NetworkContext { host: String, protocol: String, }
    struct FileAsk {
        thread_id: String,
        turn_id: String,
        item_id: String,
        reason: Option<String>,
        grant_root: Option<String>,
    }
    struct PermissionAsk {
        thread_id: String,
        turn_id: String,
        item_id: String,
        reason: Option<String>,
        permissions: Permissions,
    }
    struct Permissions { network: Option<NetworkWish>, file_system: Option<FileWish>, }
    struct NetworkWish { enabled: bool, }
    struct FileWish { read: Option<Vec<String>>, write: Option<Vec<String>>, entries: Vec<Value>, }
    struct QuestionAsk { thread_id: String, turn_id: String, item_id: String, questions: Vec<Question>, }
    struct Question {
        id: String,
        header: String,
        question: String,
        is_other: bool,
        is_secret: bool,
        options: Option<Vec<QuestionOption>>,
    }
    struct QuestionOption { label: String, description: String, }
    struct FormAsk {
        thread_id: String,
        turn_id: Option<String>,
        server_name: String,
        mode: String,
        #[serde(rename = "_meta")]
        meta: Value,
        message: String,
        title: Option<String>,
        description: Option<String>,
        url: Option<String>,
        requested_schema: Option<Value>,
    }

    // ---- notices
    struct Warned { thread_id: Option<String>, message: String, }
    struct ConfigWarned { summary: String, details: Option<String>, path: Option<String>, }
}

/// The id of a request of Codex's own, as it was written, in `serverRequest/resolved`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResolvedId<'a> {
    #[serde(borrow)]
    pub(super) request_id: &'a RawValue,
}

/// The asked-for permissions as they were written, to be granted as they are.
#[derive(Debug, Deserialize)]
pub(super) struct RawPermissions<'a> {
    #[serde(borrow)]
    pub(super) permissions: &'a RawValue,
}
