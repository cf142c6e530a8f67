-- Back to receipts as they were before queries were paid for.  All rows stay, and every charge in
-- every sum: what was a query's looks like an index request's until the next upgrade, which tells
-- them apart again by the log.
--
-- Locks in the order in which a ledger takes them: owners, then receipts.
SET LOCAL lock_timeout = '4s';
LOCK TABLE owners IN EXCLUSIVE MODE;
LOCK TABLE spend_receipts IN ACCESS EXCLUSIVE MODE;

DO $$
DECLARE
    found bigint;
    whose text;
BEGIN
    -- Rows that row security hides would be counted as none: with this it is an error (42501).
    SET LOCAL row_security = off;
    SELECT count(*), left(string_agg(DISTINCT quote_ident(tenant), ', '), 200)
    INTO found, whose
    FROM spend_receipts WHERE state = 'pending' AND kind = 'query';
    SET LOCAL row_security = on;
    IF found > 0 THEN
        RAISE EXCEPTION 'query work is pending: % reservation(s) of tenant(s) %', found, whose
        USING HINT = 'stop preparing queries, wait until the leases have run out (15 seconds),'
            ' make what has expired unknown with `remembrancer spend expire --tenant NAME`,'
            ' then try again';
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'row security hides receipts from role %, and some could be pending',
            current_user
        USING ERRCODE = 'insufficient_privilege',
            HINT = 'take the schema back as a role that it hides nothing from: a superuser, or the'
            ' owner of the tables with BYPASSRLS for as long as this takes';
END $$;

-- A function that is dropped while somebody calls it is an error that says nothing; one that is
-- replaced can say what has happened.
DO $$
DECLARE
    definition text;
BEGIN
    FOR definition IN
        SELECT pg_get_functiondef(oid) FROM pg_proc
        WHERE pronamespace = 'remembrancer'::regnamespace
        AND proname IN ('open_ledger', 'record_admission', 'record_change')
    LOOP
        EXECUTE regexp_replace(
            definition,
            '\$function\$.*\$function\$',
            '$function$ BEGIN RAISE EXCEPTION ''the schema was taken back''
            USING ERRCODE = ''undefined_function''; END $function$'
        );
    END LOOP;
END $$;

DROP INDEX spend_receipts_one_pending_query;
ALTER TABLE spend_receipts DROP COLUMN kind, DROP COLUMN deadline;
