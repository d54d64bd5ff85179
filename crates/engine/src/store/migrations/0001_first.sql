-- Tables hold what is true. A JSON body holds what is only ever read and written whole; a column exists where
-- something is looked up, ordered or joined by it. Times are Unix milliseconds.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE providers (
    id   TEXT PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE accounts (
    id       INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    body     TEXT NOT NULL
) STRICT;

CREATE TABLE credentials (
    id      INTEGER PRIMARY KEY,
    account INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;

CREATE TABLE sign_ins (
    id   INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE runtimes (
    id   INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
    id        INTEGER PRIMARY KEY,
    provider  TEXT NOT NULL,
    thread    TEXT,
    archived  INTEGER NOT NULL,
    active_at INTEGER NOT NULL,
    -- Without its queue, which is in `messages`.
    body      TEXT NOT NULL
) STRICT;

-- Every message that was ever accepted, so that a repeated id is known.
CREATE TABLE messages (
    id       TEXT PRIMARY KEY,
    session  INTEGER NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    -- 'queued', 'sent' (its turn's own message), 'steer' (added to a running turn), 'removed'
    role     TEXT NOT NULL,
    turn     INTEGER,
    -- Place in the queue, or among the turn's additions.
    position INTEGER,
    at       INTEGER NOT NULL,
    delivery TEXT NOT NULL,
    text     TEXT NOT NULL
) STRICT;
CREATE INDEX messages_queue ON messages (session, position) WHERE role = 'queued';
CREATE INDEX messages_steers ON messages (turn, position) WHERE role = 'steer';

CREATE TABLE seen_messages (
    id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
    id         INTEGER PRIMARY KEY,
    session    INTEGER NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    message    TEXT,
    started_at INTEGER NOT NULL,
    -- NULL while the turn is open.
    ended_at   INTEGER,
    -- NULL while the turn is open, and for a turn whose message went back to the queue.
    outcome    TEXT,
    -- Without its additions, which are in `messages`.
    body       TEXT NOT NULL
) STRICT;
CREATE INDEX turns_open ON turns (id) WHERE ended_at IS NULL;
CREATE INDEX turns_of_session ON turns (session, id);

CREATE TABLE items (
    id        INTEGER PRIMARY KEY,
    session   INTEGER NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    -- Position in the session, from 1, without gaps.
    ordinal   INTEGER NOT NULL,
    item      TEXT NOT NULL,
    turn      INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    completed INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    body      TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX items_page ON items (session, ordinal);
CREATE UNIQUE INDEX items_named ON items (session, item);
CREATE INDEX items_open ON items (turn) WHERE completed = 0;

-- Words of completed items; rowid is items.id. Holds no copy of the text.
CREATE VIRTUAL TABLE items_text USING fts5 (text, content = '', contentless_delete = 1);

CREATE TABLE approvals (
    id       INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    turn     INTEGER NOT NULL,
    asked_at INTEGER NOT NULL,
    -- 1 while its turn is open.
    open     INTEGER NOT NULL,
    body     TEXT NOT NULL
) STRICT;
CREATE INDEX approvals_open ON approvals (id) WHERE open = 1;
CREATE INDEX approvals_of_session ON approvals (session, id);

CREATE TABLE notifications (
    key       TEXT PRIMARY KEY,
    dismissed INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    body      TEXT NOT NULL
) STRICT;
CREATE INDEX notifications_open ON notifications (key) WHERE dismissed = 0;

-- Evidence: what happened, in order. Trimmed; never needed to start.
CREATE TABLE journal (
    seq    INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    change TEXT NOT NULL
) STRICT;

-- Rows that could not be read, kept as they were found.
CREATE TABLE unreadable (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    source  TEXT NOT NULL,
    key     TEXT NOT NULL,
    why     TEXT NOT NULL,
    body    TEXT NOT NULL
) STRICT;
