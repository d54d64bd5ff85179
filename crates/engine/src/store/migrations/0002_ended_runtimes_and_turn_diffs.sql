-- Processes that are proven gone, the newest ones.
CREATE TABLE ended_runtimes (
    id       INTEGER PRIMARY KEY,
    ended_at INTEGER NOT NULL,
    -- As it was last, and why it ended (NULL: it was not needed any more).
    body     TEXT NOT NULL,
    failure  TEXT
) STRICT;

-- The last diff of each turn that changed files.
CREATE TABLE turn_diffs (
    turn    INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    files   INTEGER NOT NULL,
    added   INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    -- Bytes that were left off at the end.
    dropped INTEGER NOT NULL,
    text    TEXT NOT NULL
) STRICT;
