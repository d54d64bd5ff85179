// The only module that talks to the shell: one typed function per command, one line each.
//
// It never decides, retries or caches. A refused command rejects with a CommandError.
import type {
  Answer, CommandError, Goal, Matches, OfferedCommand, Runtime, SessionSettings, Settings, SignInMethod, ThreadPage, TranscriptPage, TurnDiff, WindowEvent,
} from "./wire";

export interface Transport {
  invoke(command: string, args: Record<string, unknown>): Promise<unknown>;
  watch(onEvents: (events: WindowEvent[]) => void): Promise<void>;
}

/** One of the person's own agents. */
export interface OwnAgent { id: string; name: string; commandLine: string }

export interface OpenedLink { host: string; opened: boolean }
export interface Diagnostics { version: string; logs: string; data: string; [name: string]: string }

let transport: Transport = {
  async invoke(command, args) {
    const { invoke } = await import("@tauri-apps/api/core");
    return invoke(command, args);
  },
  async watch(onEvents) {
    const { Channel, invoke } = await import("@tauri-apps/api/core");
    await invoke("watch", { channel: new Channel<WindowEvent[]>(onEvents) });
  },
};

/** Puts another transport in place of the shell: a scripted one in tests and in the browser. */
export function use(other: Transport): void {
  transport = other;
}

const call = <T = null>(command: string, args: Record<string, unknown> = {}): Promise<T> =>
  transport.invoke(command, args) as Promise<T>;

/** The refusal in any rejection, so that a screen never shows "[object Object]". */
export function refusal(reason: unknown): CommandError {
  const said = reason as Partial<CommandError> | null;
  if (typeof said?.message === "string") return { code: String(said.code ?? "other"), message: said.message };
  return { code: "other", message: String(reason) };
}

export const watch = (onEvents: (events: WindowEvent[]) => void) => transport.watch(onEvents);

export const openSession = (session: string) => call("open_session", { session });
export const closeSession = () => call("close_session");
export const transcriptPage = (session: string, before: number | null, limit: number) =>
  call<TranscriptPage>("transcript_page", { session, before, limit });

export const findEntries = (session: string, text: string, before: number | null) =>
  call<Matches>("find_entries", { session, text, before });
export const turnChanges = (session: string, turn: string) => call<TurnDiff | null>("turn_changes", { session, turn });
export const runtimes = () => call<Runtime[]>("runtimes");
export const providerThreads = (provider: string, cursor: string | null) =>
  call<ThreadPage>("provider_threads", { provider, cursor });

/** Nothing is chosen: all is as the provider has it. */
export const DEFAULTS: SessionSettings = { model: null, effort: null, approvalMode: null, sandbox: null };

export const sessionCommands = (session: string) => call<OfferedCommand[]>("session_commands", { session });

export const createSession = (provider: string, folder: string, title: string, settings: SessionSettings, thread: string | null = null) =>
  call<string>("create_session", { provider, folder, title, settings, thread });
export const forkSession = (session: string, title: string) => call<string>("fork_session", { session, title });
export const tryDemo = (title: string) => call<string>("try_demo", { title });
export const send = (session: string, message: string, text: string) => call("send", { session, message, text });
export const steer = (session: string, message: string, text: string) => call("steer", { session, message, text });
export const editQueued = (session: string, message: string, text: string) => call("edit_queued", { session, message, text });
export const removeQueued = (session: string, message: string) => call("remove_queued", { session, message });
export const interrupt = (session: string) => call("interrupt", { session });
export const answer = (approval: string, given: Answer) => call("answer", { approval, answer: given });
export const setGoal = (session: string, goal: Goal | null) => call("set_goal", { session, goal });
export const configureSession = (session: string, settings: SessionSettings) => call("configure_session", { session, settings });
export const renameSession = (session: string, title: string) => call("rename_session", { session, title });
export const archiveSession = (session: string, archived: boolean) => call("archive_session", { session, archived });
export const markRead = (session: string) => call("mark_read", { session });
export const seen = (session: string) => call("seen", { session });
export const tryAgain = (session: string) => call("try_again", { session });
export const resolveUnknown = (session: string, resend: boolean) => call("resolve_unknown", { session, resend });

export const signIn = (provider: string, account: string | null, label: string, method: SignInMethod, key: string | null, offer: string | null = null) =>
  call<string>("sign_in", { provider, account, label, method, key, ...(offer === null ? {} : { offer }) });
export const cancelSignIn = (signInId: string) => call("cancel_sign_in", { signIn: signInId });
export const attachServer = (provider: string, address: string, label: string) => call("attach_server", { provider, address, label });
export const signOut = (account: string, now: boolean) => call("sign_out", { account, now });
export const useAccount = (account: string) => call("use_account", { account });
export const renameAccount = (account: string, label: string) => call("rename_account", { account, label });
export const removeAccount = (account: string) => call("remove_account", { account });
export const unlockKeychain = () => call("unlock_keychain");
export const rescanProviders = () => call("rescan_providers");
export const ownAgents = () => call<OwnAgent[]>("own_agents");
export const addOwnAgent = (agent: OwnAgent) => call("add_own_agent", { agent });
export const removeOwnAgent = (id: string) => call("remove_own_agent", { id });

export const changeSettings = (settings: Settings) => call("change_settings", { settings });
export const openLink = (url: string, confirmed: boolean) => call<OpenedLink>("open_link", { url, confirmed });
export const pickFolder = () => call<string | null>("pick_folder");
export const checkFolder = (path: string) => call<string | null>("check_folder", { path });
export const quit = (force: boolean) => call("quit", { force });
export const cancelQuit = () => call("cancel_quit");
export const hideWindow = () => call("hide_window");
export const diagnostics = () => call<Diagnostics>("diagnostics");
