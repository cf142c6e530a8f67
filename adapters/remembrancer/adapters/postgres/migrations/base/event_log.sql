-- The log.  Positions rise, are never used twice, and have gaps; why a follower misses nothing is
-- told in adr/0017.  Each event carries its own hash and its predecessor's (adr/0006).
CREATE SEQUENCE event_positions AS bigint MINVALUE 0 START 0 CACHE 1;

-- So that the last value given out is 0 as long as none is.
SELECT setval('event_positions', 0, true);

CREATE TABLE stored_events (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    originator_id uuid NOT NULL,
    originator_version bigint NOT NULL CHECK (originator_version >= 0),
    position bigint NOT NULL DEFAULT nextval('event_positions') CHECK (position < 281474976710656),
    topic text COLLATE "C" NOT NULL,
    state bytea NOT NULL,
    predecessor_hash bytea NOT NULL CHECK (octet_length(predecessor_hash) = 32),
    event_hash bytea NOT NULL CHECK (octet_length(event_hash) = 32),
    PRIMARY KEY (tenant, originator_id, originator_version)
);

CREATE INDEX stored_events_in_order ON stored_events (position);
CREATE INDEX stored_events_of_tenant_in_order ON stored_events (tenant, position);

CREATE FUNCTION refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION 'a stored event is never changed or removed; append another'
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER stored_events_are_not_changed
BEFORE UPDATE OR DELETE OR TRUNCATE ON stored_events
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Snapshots are a cache of the log and may go.
CREATE TABLE stored_snapshots (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    originator_id uuid NOT NULL,
    originator_version bigint NOT NULL CHECK (originator_version >= 0),
    topic text COLLATE "C" NOT NULL,
    state bytea NOT NULL,
    PRIMARY KEY (tenant, originator_id, originator_version)
);

-- How far a projection has followed which log.
CREATE TABLE tracking (
    application_name text COLLATE "C" NOT NULL PRIMARY KEY,
    notification_id bigint NOT NULL
);

CREATE FUNCTION refuse_going_back() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.notification_id <= OLD.notification_id
        OR NEW.application_name <> OLD.application_name
    THEN
        RAISE EXCEPTION 'tracking only moves forward' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER tracking_only_moves_forward
BEFORE UPDATE OR DELETE ON tracking FOR EACH ROW EXECUTE FUNCTION refuse_going_back();
