-- A ledger's two round trips in one call each.  They lock, read and add rows; what may be spent is
-- decided between them, in the domain.  Called by name with the schema, before anything is set.

CREATE OR REPLACE FUNCTION open_ledger(
    _tenant text,
    _owner text,
    _ledger_id uuid,
    _known_version bigint, -- of the copy at hand; 0 if there is none
    _about uuid, -- a reservation to be read as well; may be NULL
    _statement_timeout text,
    _lock_timeout text,
    _idle_timeout text,
    OUT xid text,
    OUT backend integer,
    OUT timeline text,
    OUT at_us bigint, -- since 1970
    OUT snapshot_version bigint, -- if nothing was read that the copy at hand tells
    OUT snapshot bytea, -- if it is newer than the copy at hand
    OUT versions bigint[], -- of the event that the newest copy ends with, and of all behind it
    OUT topics text[],
    OUT states bytea[],
    OUT predecessors bytea[],
    OUT hashes bytea[],
    OUT has_receipt boolean, -- true if it is there; then it follows
    OUT kind text,
    OUT request_digest text,
    OUT state text,
    OUT day text,
    OUT admitted_us bigint,
    OUT lease_s integer,
    OUT reserved_quanta bigint,
    OUT charged_quanta bigint,
    OUT usage_tokens bigint,
    OUT unknown_reason text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('search_path', 'remembrancer, pg_temp', true),
        set_config('statement_timeout', _statement_timeout, true),
        set_config('lock_timeout', _lock_timeout, true),
        set_config('idle_in_transaction_session_timeout', _idle_timeout, true),
        set_config('remembrancer.tenant', _tenant, true),
        set_config('remembrancer.owner', _owner, true),
        set_config('remembrancer.reach', '', true);
    -- Before any lock that a follower of the log looks at.
    xid := pg_current_xact_id()::text;
    backend := pg_backend_pid();
    timeline := substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8);

    PERFORM FROM owners WHERE tenant = _tenant AND owner = _owner FOR UPDATE;
    IF NOT FOUND THEN
        -- What isn't there can't be locked.
        INSERT INTO owners (tenant, owner) VALUES (_tenant, _owner) ON CONFLICT DO NOTHING;
        PERFORM FROM owners WHERE tenant = _tenant AND owner = _owner FOR UPDATE;
    END IF;

    -- Each statement from here on sees what the last holder of the lock has committed.  now() is
    -- as old as the transaction, and would be before that.
    at_us := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    IF _known_version > 0 THEN
        -- The event that the copy ends with, and whether one is behind it, which is rare.  All that
        -- are behind it would be planned anew each time, for longer than it takes; in order and with
        -- a limit no index but the key is thought as good, as another is where the table was never
        -- analysed.
        SELECT array_agg(originator_version), array_agg(topic), array_agg(state),
            array_agg(predecessor_hash), array_agg(event_hash)
        INTO versions, topics, states, predecessors, hashes
        FROM (
            SELECT * FROM stored_events
            WHERE tenant = _tenant AND originator_id = _ledger_id
            AND originator_version >= _known_version
            ORDER BY originator_version
            LIMIT 2
        ) AS next;
    END IF;
    IF _known_version = 0 OR _known_version + 1 = ANY (versions) THEN
        SELECT version, CASE WHEN version > _known_version THEN state END
        INTO snapshot_version, snapshot
        FROM ledger_snapshots WHERE tenant = _tenant AND owner = _owner;
        SELECT array_agg(originator_version), array_agg(topic), array_agg(state),
            array_agg(predecessor_hash), array_agg(event_hash)
        INTO versions, topics, states, predecessors, hashes
        FROM (
            SELECT * FROM stored_events
            WHERE tenant = _tenant AND originator_id = _ledger_id
            AND originator_version >= greatest(_known_version, open_ledger.snapshot_version)
            ORDER BY originator_version
        ) AS behind;
    END IF;
    IF _about IS NOT NULL THEN
        SELECT true, kind, request_digest, state, day,
            (extract(epoch FROM admitted_at) * 1000000)::bigint,
            lease_s, reserved_quanta, charged_quanta, usage_tokens, unknown_reason
        INTO has_receipt, open_ledger.kind, open_ledger.request_digest, open_ledger.state,
            open_ledger.day, admitted_us, open_ledger.lease_s, open_ledger.reserved_quanta,
            open_ledger.charged_quanta, open_ledger.usage_tokens, open_ledger.unknown_reason
        FROM spend_receipts
        WHERE tenant = _tenant AND owner = _owner AND reservation_id = _about;
    END IF;
END $$;

-- The key of the lock is that of positions.py: it says which positions this transaction may take.
CREATE OR REPLACE FUNCTION record_admission(
    _tenant text, _owner text, _ledger_id uuid, _version bigint,
    _topic text, _state bytea, _predecessor_hash bytea, _event_hash bytea,
    _reservation_id uuid, _request_digest text, _receipt_state text, _day text,
    _admitted_at timestamptz, _lease_s bigint, _reserved_quanta bigint, _charged_quanta bigint,
    _ceiling_quanta bigint, _ceiling_requests bigint,
    _kind text, _deadline timestamptz -- of queries only
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(6818731310815641600 + last_value) FROM event_positions;
    INSERT INTO stored_events (tenant, owner, originator_id, originator_version, topic, state,
        predecessor_hash, event_hash)
    VALUES (_tenant, _owner, _ledger_id, _version, _topic, _state, _predecessor_hash, _event_hash);
    INSERT INTO spend_receipts (tenant, owner, reservation_id, request_digest, state, day,
        admitted_at, lease_s, reserved_quanta, charged_quanta, ceiling_quanta, ceiling_requests,
        ledger_id, admitted_version, kind, deadline)
    VALUES (_tenant, _owner, _reservation_id, _request_digest, _receipt_state, _day,
        _admitted_at, _lease_s::integer, _reserved_quanta, _charged_quanta, _ceiling_quanta,
        _ceiling_requests, _ledger_id, _version, _kind, _deadline);
END $$;

CREATE OR REPLACE FUNCTION record_change(
    _tenant text, _owner text, _ledger_id uuid, _version bigint,
    _topic text, _state bytea, _predecessor_hash bytea, _event_hash bytea,
    _reservation_id uuid, _receipt_state text, _charged_quanta bigint, _usage_tokens bigint,
    _unknown_reason text
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(6818731310815641600 + last_value) FROM event_positions;
    INSERT INTO stored_events (tenant, owner, originator_id, originator_version, topic, state,
        predecessor_hash, event_hash)
    VALUES (_tenant, _owner, _ledger_id, _version, _topic, _state, _predecessor_hash, _event_hash);
    UPDATE spend_receipts SET state = _receipt_state, charged_quanta = _charged_quanta,
        usage_tokens = _usage_tokens, unknown_reason = _unknown_reason
    WHERE tenant = _tenant AND owner = _owner AND reservation_id = _reservation_id;
END $$;
