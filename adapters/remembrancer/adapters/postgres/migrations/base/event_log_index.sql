-- Who the events are about, found without reading the log of others.

CREATE INDEX stored_events_of_owner_in_order ON stored_events (tenant, owner, position);

-- A session's stages are found by the digest of its name as it stands in the state: sorted keys put
-- "stage" right behind it.  A column, since row security lets no index of an expression be used;
-- no cast, since bytes that aren't ours must not be an error here.
ALTER TABLE stored_events ADD COLUMN session_key bytea GENERATED ALWAYS AS (
    CASE WHEN topic = 'remembrancer.l3_selection.l3_entries_selected' THEN
        sha256(substring(
            state
            FROM position('\x2273657373696f6e223a'::bytea IN state) + 10 -- "session":
            FOR greatest(
                0,
                position('\x2c227374616765223a'::bytea IN state) -- ,"stage":
                - position('\x2273657373696f6e223a'::bytea IN state) - 10
            )
        ))
    END
) STORED;

CREATE INDEX stored_events_of_session ON stored_events (tenant, session_key)
WHERE session_key IS NOT NULL;
