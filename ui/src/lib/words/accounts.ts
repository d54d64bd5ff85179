// The texts of accounts: signing in and out, servers of somebody else's, the keychain.
import type { SignInMethod } from "../wire";
import { plural } from "./language";

export const signIn = {
  title: (provider: string) => `Sign in to ${provider}`,
  method: "How to sign in",
  methods: { browser: "Browser", deviceCode: "Device code", apiKey: "API key", advertised: "The agent’s own way", elsewhere: "In a terminal" } satisfies Record<SignInMethod, string>,
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
  offerWhat: "The agent signs in by itself, usually in your browser.",
  offerStart: "Begin",
  offerWaiting: "Waiting for the agent to finish signing in.",
  terminalWhat: (provider: string) => `Sign in with ${provider}’s own program, in a terminal. Turnkeep then uses that sign-in as it is.`,
  terminalRun: "Run this in a terminal, then say that you did:",
  terminalDone: "I have signed in",
  failed: "Sign-in failed.",
  again: "Start over",
  keychainFirst: "Unlock the keychain first: keys are never kept in a file instead.",
  noMethod: (provider: string) => `${provider} signs in by itself, in a terminal. Turnkeep notices when it has.`,
};

export const signOut = {
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
};

export const server = {
  title: (provider: string) => `Use a ${provider} server that is already running`,
  what: "Turnkeep becomes a client of it: sessions run there, with the sign-in that the server has. Turnkeep never stops it, not even when you quit.",
  address: "Address",
  addressHint: "unix:///path/to/the.sock or ws://127.0.0.1:PORT",
  nameHint: "Optional, such as Work",
  startOne: "To start one, in a terminal:",
  copyCommand: "Copy the command",
  connect: "Connect",
  connecting: "Connecting…",
  again: "Try again",
  disconnect: "Disconnect…",
  connected: "Connected",
  waiting: "Connects when needed",
  disconnected: "Disconnected",
  refused: "Not signed in there",
  unreachable: "Not reachable",
  state: (connected: boolean, version: string | null) => (connected && version ? `version ${version}` : null),
};

export const disconnect = {
  title: (provider: string, label: string) => `Disconnect from ${provider}, ${label}?`,
  running: (n: number, _identity: string) => plural(n, { one: "# turn of yours is running there.", other: "# turns of yours are running there." }),
  none: "The server keeps running. No turn of yours is running there.",
  after: "After running turns",
  afterWhat: (n: number) => plural(n, {
    one: "No new turn starts there. The turn keeps working and you can still steer it; the connection is closed when it ends. The server keeps running.",
    other: "No new turn starts there. The # turns keep working and you can still steer them; the connection is closed when they end. The server keeps running.",
  }),
  now: "Now",
  nowWhat: (n: number) => plural(n, {
    one: "Interrupts the turn, then closes the connection. The server keeps running.",
    other: "Interrupts all # turns, then closes the connection. The server keeps running.",
  }),
  doAfter: "Disconnect after turns",
  doNow: (n: number) => plural(n, { one: "Interrupt # turn and disconnect", other: "Interrupt # turns and disconnect" }),
  doPlain: "Disconnect",
  system: "",
};

export const keychain = {
  title: "The keychain is locked",
  locked: "The keychain is locked.",
  lockedWhat: "Turnkeep cannot read its keys, so new turns wait. Keys are never kept in a file instead.",
  hint: "Your desktop will ask for the keychain’s password. If it asks for nothing, open your password manager and unlock “Login”.",
  unlock: "Unlock keychain",
  absent: "This system has no keychain.",
  absentWhat: (why: string) => `API keys cannot be kept: ${why}. Install and start a keyring (for example gnome-keyring or KWallet). Keys are never kept in a file instead.`,
};
