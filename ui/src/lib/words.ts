// Every text of the window, with its plural forms: the only file to translate, and the only one that may name a provider.
//
// Verb first, the object named. Counts are digits. A text never holds markup.
import type {
  AccountKind, ApprovalMode, Asker, ChoiceKind, Delivery, FileChangeKind, GoalStatus, Group, ItemStatus, Outcome, Sandbox, Scheme,
  SessionStatus, SignInMethod,
} from "./wire";

/** The language to write numbers and times in: the person's, or English where it is no language ("C", on a bare system). */
export function language(tag: string | undefined): string {
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? "en";
  } catch {
    return "en";
  }
}

export const locale = language(globalThis.navigator?.language);

const number = new Intl.NumberFormat(locale);
const rules = new Intl.PluralRules("en");

/** The form for a count; "#" stands for the number. */
export function plural(n: number, forms: { one: string; other: string }): string {
  return (rules.select(n) === "one" ? forms.one : forms.other).replaceAll("#", number.format(n));
}

const turns = (n: number) => plural(n, { one: "# turn", other: "# turns" });
const messages = (n: number) => plural(n, { one: "# message", other: "# messages" });
const pad = (n: number) => String(n).padStart(2, "0");

export const words = {
  app: "Turnkeep",
  number: (n: number) => number.format(n),
  join: " · ",
  close: "Close",
  cancel: "Cancel",
  later: "Later",
  save: "Save",
  copy: "Copy",
  copied: "Copied",
  details: "Details",
  copyDetails: "Copy details",
  dismiss: "Dismiss",

  title: (needs: number, running: number) => {
    const parts = [];
    if (needs > 0) parts.push(plural(needs, { one: "# needs you", other: "# need you" }));
    if (running > 0) parts.push(`${number.format(running)} running`);
    return parts.length > 0 ? `Turnkeep: ${parts.join(", ")}` : "Turnkeep";
  },

  time: {
    seconds: (n: number) => `${n} s`,
    tenths: (n: number) => `${n.toFixed(1)} s`,
    minutes: (n: number) => `${n} min`,
    hours: (n: number) => `${n} h`,
    days: (n: number) => `${n} d`,
    minutesSeconds: (m: number, s: number) => `${m} min ${pad(s)} s`,
    hoursMinutes: (h: number, m: number) => `${h} h ${pad(m)} min`,
    yesterday: "Yesterday",
  },

  list: {
    label: "Sessions",
    search: "Search sessions",
    clear: "Clear the search",
    newSession: "New session",
    settings: "Settings",
    accounts: "Accounts",
    groups: { needsYou: "Needs you", running: "Running", finished: "Finished, unread", idle: "Idle" } satisfies Record<Group, string>,
    archived: "Archived",
    nothingNeedsYou: "Nothing needs you.",
    nothingRuns: "Nothing is running.",
    showAll: (n: number) => `Show all ${number.format(n)}`,
    showArchived: (n: number) => plural(n, { one: "Show # archived session", other: "Show # archived sessions" }),
    hideArchived: "Hide archived sessions",
    noMatch: (query: string) => `No session matches “${query}”`,
    searched: "Titles, folders and last lines were searched.",
    open: "Open",
    moved: (title: string, group: string) => `${title}: ${group}`,
    chip: (provider: string, account: string, old: boolean) => `${provider} · ${account}${old ? ", old" : ""}`,
    noAccount: "no account",
    empty: "No sessions yet",
    emptyWhat: "A session is a thread of work in one folder.",
    pick: "Choose a session",
    pickWhat: "The list says which ones need you.",
    failedTitle: (title: string) => `Failed: ${title}`,
    asksCommand: (command: string) => `Asks to run ${command}`,
    asksChange: (n: number) => plural(n, { one: "Asks to change # file", other: "Asks to change # files" }),
    asksPermissions: "Asks for more permissions",
    asksQuestion: (text: string) => `Asks: ${text}`,
    outcomeUnknown: "Outcome unknown: last message",
    waits: (n: number, why: string) => `${messages(n)} queued: ${why}`,
  },

  account: {
    signedIn: "Signed in",
    signedOut: "Signed out",
    signingIn: "Signing in…",
    checking: "Checking…",
    rejected: "Sign-in rejected",
    keyRejected: "Key rejected",
    itemMissing: "Keychain item missing",
    itemMissingWhat: "Its entry was deleted from the keychain. Sign in again to make a new one.",
    keychainLocked: "Keychain locked",
    keychainLockedLong: "Keychain is locked",
    keychainLockedWhat: "New turns wait",
    keychainAbsent: "No keychain",
    keychainAbsentWhat: "Keys cannot be kept until the system has one",
    troubled: "Not checked",
    unlock: "Unlock",
    none: "No account",
    noneAction: "Sign in",
    missing: "Not installed",
    finishing: (n: number) => `Finishing ${turns(n)}`,
    kinds: {
      apiKey: "Kept in the system keychain", privateHome: "Signed in through Turnkeep", system: "The sign-in of this computer",
    } satisfies Record<AccountKind, string>,
    plan: (plan: string) => `${plan} plan`,
    current: "current",
    currentAccount: "Current account",
    revocationOwed: "its access still has to be revoked",
    checkedAt: (at: string) => `checked ${at}`,
  },

  usage: {
    window: (minutes: number | null) => {
      if (minutes === null) return "Limit";
      if (minutes % 10080 === 0) return plural(minutes / 10080, { one: "Week", other: "# weeks" });
      if (minutes % 1440 === 0) return plural(minutes / 1440, { one: "Day", other: "# days" });
      if (minutes % 60 === 0) return plural(minutes / 60, { one: "1 hour", other: "# hours" });
      return plural(minutes, { one: "# minute", other: "# minutes" });
    },
    percent: (n: number) => `${n}%`,
    nearly: (n: number) => `${n}%, nearly used`,
    full: "100%, used up",
    resets: (at: string) => `resets ${at}`,
    context: (n: number) => `Context ${n}%`,
    contextLabel: (n: number) => `Context ${n}% used`,
    contextTokens: (used: number, of: number) => `Context: ${number.format(used)} of ${number.format(of)} tokens`,
    tokens: (n: number) => plural(n, { one: "# token", other: "# tokens" }),
    spent: (total: number, input: number, output: number) =>
      `${number.format(total)} tokens in all: ${number.format(input)} in, ${number.format(output)} out`,
  },

  status: {
    idle: "Idle", starting: "Starting", running: "Running", needsApproval: "Needs you", outcomeUnknown: "Outcome unknown",
    failed: "Failed", signedOut: "Signed out", keychainLocked: "Keychain locked",
  } satisfies Record<SessionStatus["type"], string>,
  outcomes: {
    completed: "Finished", interrupted: "Interrupted", failed: "Failed", lost: "Lost", unknown: "Outcome unknown",
  } satisfies Record<Outcome, string>,

  session: {
    interrupt: "Interrupt",
    interrupting: "Interrupting…",
    interruptKeys: "Interrupt the turn (Esc Esc)",
    escOnce: "Press Esc again to interrupt the turn",
    more: "More about this session",
    back: "Sessions",
    rename: "Rename…",
    renameTitle: "Rename the session",
    name: "Name",
    archive: "Archive",
    unarchive: "Bring back from the archive",
    copyFolder: "Copy folder path",
    goal: "Set a goal…",
    editGoal: "Edit the goal…",
    markRead: "Mark as read",
    starting: (provider: string, folder: string) => `Starting ${provider} in ${folder}…`,
    retrying: (provider: string, why: string) => `${provider} is retrying: ${why}`,
    retryingWhat: "The turn is still running. You can wait or interrupt it; nothing is sent twice.",
    oldAccount: "This turn finishes on its previous account.",
    oldAccountWhat: (to: string) => `Steering still reaches this turn; queued messages go to “${to}” afterwards.`,
    oldAccountNowhere: "Steering still reaches this turn; queued messages wait until you sign in.",
    failedTurn: (provider: string) => `${provider} stopped before the turn was complete.`,
    filesStay: "The files it changed stay as they are.",
    cannotGoOn: (provider: string) => `${provider} cannot go on in this session`,
    tryAgain: "Try again",
    sendAgain: "Send again",
    drop: "Drop it",
    unknown: "Outcome unknown.",
    unknownWhat: (provider: string) =>
      `It is not known whether ${provider} received the last message. Look at the transcript and the folder, then send it again or drop it.`,
    disconnected: (provider: string) => `${provider} isn’t connected.`,
    disconnectedWhat: (provider: string) => `Sign in to ${provider}; queued messages are sent then.`,
    lockedWhat: (provider: string) => `Turnkeep cannot read the sign-in of ${provider}. Queued messages wait.`,
    showLook: "Look at the session",
    account: (provider: string, label: string, identity: string | null) =>
      identity === null || identity === label ? `${provider}, ${label}` : `${provider}, ${label} (${identity})`,
    notThere: "This session is no longer there.",
  },

  goal: {
    title: "Goal",
    what: "While a goal is active, each turn is followed by the next until it is done or the budget is used up.",
    objective: "Objective",
    budget: "Token budget (empty: none)",
    set: "Set the goal",
    clear: "Clear the goal",
    pause: "Pause",
    resume: "Go on",
    statuses: {
      active: "Active", paused: "Paused", blocked: "Blocked", limited: "Budget used up", done: "Done",
    } satisfies Record<GoalStatus, string>,
  },

  composer: {
    label: "Message",
    placeholder: (provider: string) => `Message ${provider}`,
    mode: "How to send",
    steer: "Steer",
    queue: "Queue",
    send: "Send",
    effects: {
      send: "Starts a turn",
      steer: "Read during this turn, without interrupting it",
      queue: "Sent when this turn ends",
      signedOut: "Waits until you sign in",
      wait: (why: string) => why,
      quitting: "Turnkeep is quitting: no new turn starts",
    },
    queued: "Queued:",
    steered: "Steering:",
    edit: "Edit",
    editing: "Editing a queued message",
    saveEdit: "Save",
    remove: "Remove from queue",
    useQueue: "Queue it instead",
    deliveries: {
      queued: "Queued", sending: "Sending…", admitted: "Read", notAdmitted: "Not read: the turn had ended", unknown: "Not known whether it was read",
    } satisfies Record<Delivery, string>,
    model: "Model",
    defaultModel: "Default model",
    effort: "Effort",
    defaultEffort: "Default effort",
    approvals: "Approvals",
    sandbox: "Sandbox",
    refused: (why: string) => `Not sent: ${why}`,
    changesNext: "Applies from the next turn",
  },
  approvalModes: {
    always: "Ask before everything", onRequest: "Ask before commands", never: "Never ask",
  } satisfies Record<ApprovalMode, string>,
  sandboxes: { readOnly: "Read only", writeFolder: "Write in folder", full: "No sandbox" } satisfies Record<Sandbox, string>,
  providerDefault: "Provider’s default",

  approval: {
    label: "Approval",
    command: (provider: string) => `${provider} asks to run a command`,
    change: (provider: string, n: number) => plural(n, { one: `${provider} asks to change # file`, other: `${provider} asks to change # files` }),
    permissions: (provider: string) => `${provider} asks for more permissions`,
    questions: (provider: string, n: number) => plural(n, { one: `${provider} asks a question`, other: `${provider} asks # questions` }),
    form: (server: string) => `${server} asks for an answer`,
    where: (folder: string) => `in ${folder}`,
    unsandboxed: "outside the sandbox",
    position: (n: number, of: number) => `${n} of ${of}`,
    network: "Use the network",
    reads: "Read",
    writes: "Write",
    grantsRoot: (folder: string) => `Also allows writing anywhere in ${folder} for this session`,
    readToEnd: "Scroll to its end before you allow it",
    choices: {
      allow: "Allow once", allowForSession: "Allow for session", allowAlways: "Always allow", deny: "Deny", denyAndStop: "Deny and stop the turn",
    } satisfies Record<ChoiceKind, string>,
    alwaysRule: (rule: string) => `Always allow “${rule} …”`,
    sendAnswer: "Send answer",
    sending: "Sending…",
    otherAnswer: "Another answer",
    secretHint: "Not shown and not kept",
    formJson: "Answer as JSON",
    required: "Answer every question first",
    answered: (choice: ChoiceKind | null, by: Asker, at: string) => {
      const did = choice === null ? "Answered" : choice === "deny" || choice === "denyAndStop" ? "Denied" : "Allowed";
      const where: Record<Asker, string> = {
        window: "here", tray: "in the tray", notification: "in the notification", cli: "in the CLI", api: "through the API",
      };
      return `${did} ${where[by]} at ${at}`;
    },
    appeared: (what: string, detail: string) => `${what}: ${detail}`,
    hidden: "Hidden characters are shown as ⟨U+…⟩, line ends as ↵, tabs as ⇥.",
  },

  transcript: {
    label: "Transcript",
    you: "You",
    thought: "Thought",
    thinking: "Thinking…",
    showThought: "Show the reasoning",
    exit: (code: number) => `exit ${code}`,
    ran: (ms: string) => `running · ${ms}`,
    statuses: {
      running: "running", completed: "done", failed: "failed", declined: "denied", abandoned: "not finished",
    } satisfies Record<ItemStatus, string>,
    command: "Command",
    fileChange: "File change",
    kinds: { added: "added", deleted: "deleted", updated: "changed" } satisfies Record<FileChangeKind, string>,
    movedTo: (path: string) => `moved to ${path}`,
    showLines: (n: number) => plural(n, { one: "Show # more line", other: "Show # more lines" }),
    showFewer: "Show fewer lines",
    hiddenLines: (n: number) => plural(n, { one: "# line not shown", other: "# lines not shown" }),
    foldedLines: (n: number) => plural(n, { one: "# unchanged line", other: "# unchanged lines" }),
    showChanges: (n: number) => plural(n, { one: "Show # changed line", other: "Show # changed lines" }),
    tool: (server: string, name: string) => `${server}: ${name}`,
    toolLabel: "Tool",
    arguments: "Arguments",
    result: "Result",
    search: (query: string) => `Searched the web: ${query}`,
    plan: (done: number, of: number) => `Plan, ${done} of ${of} done`,
    planStates: { pending: "to do", running: "in progress", done: "done" },
    compaction: "Earlier parts were summarised by the agent to save context",
    error: "Error",
    newBelow: (n: number) => plural(n, { one: "# new below", other: "# new below" }),
    toEnd: "To the end",
    opening: (title: string) => `Opening “${title}”`,
    loading: "Loading earlier parts…",
    empty: "Nothing here yet",
    emptyWhat: (provider: string) => `Send a message to start ${provider} in this folder.`,
    find: "Find in transcript",
    findNext: "Next match",
    findPrevious: "Previous match",
    found: (at: number, of: number) => (of === 0 ? "No match" : `${at} of ${of}`),
    findScope: "Loaded parts",
    image: (alt: string) => (alt === "" ? "Image, not loaded" : `Image, not loaded: ${alt}`),
    turnEnded: (outcome: Outcome, took: string, at: string) => `${words.outcomes[outcome]} at ${at} after ${took}`,
    stoppedHere: "Turnkeep stopped during this turn",
    copyMessage: "Copy message",
    pinned: "The message of this turn; opens on click",
  },

  link: {
    title: (host: string) => `Open ${host}?`,
    what: "This address comes from the agent. It opens in your browser.",
    mail: "This address comes from the agent. It opens your mail program.",
    open: "Open in browser",
    copy: "Copy address",
    refused: (why: string) => `Not opened: ${why}`,
  },

  newSession: {
    title: "New session",
    provider: "Agent",
    folder: "Folder",
    pickFolder: "Choose…",
    name: "Name (empty: from the first message)",
    create: "Start session",
    trust: "The agent reads this folder’s own settings and may run what they name. Choose only folders you trust.",
    noProvider: "No agent was found on this computer yet.",
  },

  signIn: {
    title: (provider: string) => `Sign in to ${provider}`,
    method: "How to sign in",
    methods: { browser: "Browser", deviceCode: "Device code", apiKey: "API key" } satisfies Record<SignInMethod, string>,
    name: "Name",
    nameHint: "for example work",
    browserWhat: "Your browser opens the provider’s own sign-in page. Turnkeep does not see your password.",
    browserStart: "Open the browser",
    deviceWhat: "For a browser on another device: you get a code to type there.",
    deviceStart: "Get a code",
    preparing: "Preparing the sign-in…",
    waiting: "Waiting for you to finish in the browser.",
    waitingCode: "Waiting until the code was typed.",
    ifNotOpened: "If no page opened, copy the address and open it yourself. This dialog closes when you are signed in.",
    copyAddress: "Copy address",
    openAgain: "Open again",
    openPage: "Open the page",
    typeOn: "On any device, open this page and type the code:",
    codeLabel: (code: string) => `Code: ${[...code].map((c) => (c === "-" ? "dash" : c)).join(" ")}`,
    copyCode: "Copy code",
    key: "API key",
    keyWhat: "Kept in the system keychain and nowhere else. Turnkeep shows only the last four characters.",
    keySave: "Save and check",
    checkingKey: "Checking the key…",
    failed: "Sign-in failed.",
    again: "Start over",
    keychainFirst: "Unlock the keychain first: keys are never kept in a file instead.",
    noMethod: (provider: string) => `${provider} signs in by itself, in a terminal. Turnkeep notices when it has.`,
  },

  signOut: {
    title: (provider: string, label: string) => `Sign out of ${provider}, ${label}?`,
    running: (n: number, identity: string) => plural(n, { one: `# turn is running as ${identity}.`, other: `# turns are running as ${identity}.` }),
    none: "No turn is running on this account.",
    after: "After running turns",
    afterWhat: (n: number) => plural(n, {
      one: "Takes effect at once: no new turn starts. The turn keeps working and you can still steer it; its access ends when it does.",
      other: "Takes effect at once: no new turn starts. The # turns keep working and you can still steer them; their access ends when they do.",
    }),
    now: "Now",
    nowWhat: (n: number) => plural(n, {
      one: "Interrupts the turn. Files it changed stay as they are; its last answer will be incomplete.",
      other: "Interrupts all # turns. Files they changed stay as they are; their last answers will be incomplete.",
    }),
    doAfter: "Sign out after turns",
    doNow: (n: number) => plural(n, { one: "Interrupt # turn and sign out", other: "Interrupt # turns and sign out" }),
    doPlain: "Sign out",
    system: "This is the sign-in of this computer: other programs that use it are signed out too.",
  },

  keychain: {
    title: "The keychain is locked",
    locked: "The keychain is locked.",
    lockedWhat: "Turnkeep cannot read its keys, so new turns wait. Keys are never kept in a file instead.",
    hint: "Your desktop will ask for the keychain’s password. If it asks for nothing, open your password manager and unlock “Login”.",
    unlock: "Unlock keychain",
    absent: "This system has no keychain.",
    absentWhat: (why: string) => `API keys cannot be kept: ${why}. Install and start a keyring (for example gnome-keyring or KWallet). Keys are never kept in a file instead.`,
  },

  settings: {
    label: "Settings",
    back: "Sessions",
    pages: {
      accounts: "Providers and accounts", notifications: "Notifications", quitting: "Quitting", appearance: "Appearance", diagnostics: "Diagnostics",
    },
    finishing: (n: number) => plural(n, { one: "# turn is finishing on the old account.", other: "# turns are finishing on the old account." }),
    finishingWhat: "Each session moves over when its turn ends; nothing is reopened until then.",
    showTurns: (n: number) => plural(n, { one: "Show the turn", other: "Show the # turns" }),
    addAccount: "Add account",
    signIn: "Sign in",
    signInAgain: "Sign in again",
    replaceKey: "Replace key",
    signOut: "Sign out…",
    makeCurrent: "Make current",
    rename: "Rename…",
    renameTitle: "Rename the account",
    remove: "Remove…",
    removeTitle: (label: string) => `Remove the account ${label}?`,
    removeWhat: "It leaves this list. Sessions and their transcripts stay.",
    removeDo: "Remove account",
    moreAccount: (label: string) => `More about the account ${label}`,
    notFound: "Not found on this computer",
    searching: "Looking for it…",
    searched: (n: number) => plural(n, { one: "# place was searched", other: "# places were searched" }),
    lookAgain: "Look again",
    installWhat: "Install in a terminal, then look again. Turnkeep installs nothing by itself.",
    noAccounts: "No account yet",
    notify: "Notify me",
    notifyCompleted: "When a turn is finished",
    notifyApprovals: "When an agent needs an answer",
    notifyFailures: "When a turn or an agent fails",
    notifySignOuts: "When an account is signed out",
    notifyNever: "There is none for the session you are looking at.",
    muted: "Mute all notifications",
    mutedWhat: "The tray and the list still say what needs you.",
    quiet: "Quiet hours",
    quietFrom: "From",
    quietTo: "To",
    quitWaits: "When you quit, running turns",
    quitNoLimit: "may finish, however long they take",
    quitLimit: "may take at most",
    quitMinutes: (n: number) => plural(n, { one: "# minute", other: "# minutes" }),
    quitThen: "Then they are interrupted. Sessions come back at the next start.",
    quitNow: "Quit Turnkeep…",
    scheme: "Colours",
    schemes: { system: "As the system", light: "Light", dark: "Dark" } satisfies Record<Scheme, string>,
    textSize: "Text size",
    textSizes: (percent: number) => `${percent}%`,
    diagnosticsWhat: "Where Turnkeep keeps its things. Nothing here is sent anywhere.",
    diagnosticNames: {
      version: "Version", logs: "Logs", data: "Data", system: "System", desktop: "Desktop", display: "Display", webview: "Web view", tauri: "Tauri", errors: "Errors logged",
    } as Record<string, string>,
  },

  firstRun: {
    title: "Welcome to Turnkeep",
    what: "It keeps your coding agents running, and tells you when one needs you. It lives in the tray; closing this window stops nothing.",
    found: "Found on this computer",
    missing: "Not found",
    looking: "Looking for agents…",
    signedInAs: (who: string) => `Signed in as ${who}`,
    ready: "Ready",
    installWhat: "Install in a terminal, then",
    lookAgain: "look again",
    installsNothing: "Turnkeep installs nothing by itself.",
    start: (provider: string) => `Start with ${provider}`,
    skip: "Go to the sessions",
    noneFound: "No agent is installed yet. Install one with the command below.",
  },

  quit: {
    title: (n: number) => plural(n, { one: "Waiting for # running turn", other: "Waiting for # running turns" }),
    closing: "Turnkeep is quitting",
    what: (n: number) => plural(n, {
      one: "No new turn starts. Turnkeep quits by itself when it has ended, and sessions come back at the next start.",
      other: "No new turn starts. Turnkeep quits by itself when all have ended, and sessions come back at the next start.",
    }),
    since: (at: string, took: string) => `since ${at} · ${took}`,
    noLimit: "There is no time limit.",
    limit: (at: string) => `Running turns are interrupted at ${at}.`,
    answer: "Answer",
    show: "Show",
    now: "Quit now…",
    forced: "Stopping every agent…",
    confirmTitle: (n: number) => plural(n, { one: "Quit now and interrupt # turn?", other: "Quit now and interrupt # turns?" }),
    confirmIdle: "Quit now?",
    doNowIdle: "Quit now",
    stops: "stops in the middle of its turn. The files it changed stay as they are.",
    unanswered: "stops with its question unanswered.",
    noGoOn: "Nothing continues by itself at the next start.",
    kept: (n: number) => plural(n, { one: "The # queued message is kept and is not sent by itself.", other: "The # queued messages are kept and are not sent by themselves." }),
    keepWaiting: "Keep waiting",
    doNow: (n: number) => plural(n, { one: "Interrupt # turn and quit", other: "Interrupt # turns and quit" }),
    askTitle: "Quit Turnkeep?",
    askWhat: (n: number) => (n === 0
      ? "Nothing is running. Sessions come back at the next start."
      : plural(n, { one: "# turn is running. Turnkeep waits for it, then quits.", other: "# turns are running. Turnkeep waits for them, then quits." })),
    ask: (n: number) => (n === 0 ? "Quit" : plural(n, { one: "Quit when # turn ends", other: "Quit when # turns end" })),
  },

  recovery: {
    title: (at: string) => `Turnkeep stopped unexpectedly at ${at}`,
    what: "Sessions are back. Nothing is sent again until you say so.",
    sent: (at: string) => `sent ${at}`,
    stay: "These sessions stay under Needs you until you decide.",
    show: "Show what happened",
  },

  trouble: {
    fatal: "Turnkeep cannot go on.",
    lost: "Turnkeep’s background service does not answer",
    lostWhat: "Agents may still be working. Open the window again from the tray.",
    tryNow: "Try now",
    refused: "That did not work.",
  },
};

export type Words = typeof words;
