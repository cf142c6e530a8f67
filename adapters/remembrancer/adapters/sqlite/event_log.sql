-- The log.  Numbers are never used twice (AUTOINCREMENT, even after a row was removed by force);
-- each event carries its own hash and its predecessor's (hash_chain.py in the domain, adr/0006).
CREATE TABLE IF NOT EXISTS stored_events (
    notification_id INTEGER PRIMARY KEY AUTOINCREMENT,
    originator_id BLOB NOT NULL CHECK (length(originator_id) = 16),
    originator_version INTEGER NOT NULL CHECK (originator_version >= 0),
    topic TEXT NOT NULL,
    state BLOB NOT NULL,
    predecessor_hash BLOB NOT NULL CHECK (length(predecessor_hash) = 32),
    event_hash BLOB NOT NULL CHECK (length(event_hash) = 32),
    UNIQUE (originator_id, originator_version)
) STRICT;

-- INSERT OR REPLACE would remove a row without asking the trigger on DELETE.
CREATE TRIGGER IF NOT EXISTS stored_events_are_not_replaced
BEFORE INSERT ON stored_events
WHEN NEW.notification_id BETWEEN 1 AND (SELECT seq FROM sqlite_sequence WHERE name = 'stored_events')
    OR EXISTS (
        SELECT 1 FROM stored_events
        WHERE originator_id = NEW.originator_id AND originator_version = NEW.originator_version
    )
BEGIN
    SELECT RAISE(ABORT, 'a stored event is never replaced, nor its number used again');
END;

CREATE TRIGGER IF NOT EXISTS stored_events_are_not_changed
BEFORE UPDATE ON stored_events
BEGIN
    SELECT RAISE(ABORT, 'a stored event is never changed; append another');
END;

CREATE TRIGGER IF NOT EXISTS stored_events_are_not_removed
BEFORE DELETE ON stored_events
BEGIN
    SELECT RAISE(ABORT, 'a stored event is never removed');
END;

-- Snapshots are a cache of the log and may go.
CREATE TABLE IF NOT EXISTS stored_snapshots (
    originator_id BLOB NOT NULL CHECK (length(originator_id) = 16),
    originator_version INTEGER NOT NULL CHECK (originator_version >= 0),
    topic TEXT NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (originator_id, originator_version)
) STRICT, WITHOUT ROWID;

-- How far a projection has followed which log.
CREATE TABLE IF NOT EXISTS tracking (
    application_name TEXT NOT NULL PRIMARY KEY,
    notification_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS tracking_only_moves_forward
BEFORE UPDATE ON tracking
WHEN NEW.notification_id <= OLD.notification_id OR NEW.application_name <> OLD.application_name
BEGIN
    SELECT RAISE(ABORT, 'tracking only moves forward');
END;

CREATE TRIGGER IF NOT EXISTS tracking_is_not_removed
BEFORE DELETE ON tracking
BEGIN
    SELECT RAISE(ABORT, 'tracking only moves forward');
END;
