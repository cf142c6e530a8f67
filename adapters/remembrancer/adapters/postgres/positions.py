"""Which positions of the log a follower may be given, without a lock on the table (adr/0017).

Before a writer takes its first position from the sequence it locks, shared, the sequence's last
value: all its positions will be larger.  A follower reads the last value given out, then the
smallest one locked, and then, in a later snapshot, the rows up to the smaller of the two.  A row
that is missing there will never come: whoever took its position before the first step either held
its lock in the second, and is above it, or had ended, and shows in the third.
"""

from remembrancer.adapters.postgres.connection import Connection, together

_TAG = 0x5EA1
"""The upper 16 bits of all these locks' keys; the lower 48 are a position."""

LOCK_LAST = (
    f"SELECT pg_advisory_xact_lock_shared({_TAG << 48} + last_value)"  # noqa: S608 - a constant
    " FROM remembrancer.event_positions"
)
"""For a writer, before its first position."""

_LAST = "SELECT last_value FROM remembrancer.event_positions"
# A transaction gives up its number, which it had before the lock, an instant before the lock, and
# has become visible by then: who waited for it isn't kept from seeing what it did.
_LOCKED = """
    WITH locks AS MATERIALIZED (SELECT * FROM pg_locks)
    SELECT min(((position.classid::bigint & 65535) << 32) | position.objid::bigint)
    FROM locks AS position
    WHERE position.locktype = 'advisory'
    AND position.objsubid = 1
    AND position.classid::bigint >> 16 = %s
    AND position.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND position.pid <> pg_backend_pid()
    AND EXISTS (
        SELECT 1 FROM locks AS number
        WHERE number.locktype = 'transactionid'
        AND number.mode = 'ExclusiveLock'
        AND number.granted
        AND number.virtualtransaction = position.virtualtransaction
    )
"""


def last_settled(connection: Connection) -> int:
    """Return the last position that can be read without a smaller one coming later.

    The reading must be in a snapshot that is taken after this has returned.
    """
    with together(connection):
        last = connection.execute(_LAST)
        locked = connection.execute(_LOCKED, (_TAG,))
        given_out, smallest = last.fetchone(), locked.fetchone()
    assert given_out is not None  # noqa: S101 - a sequence has a row
    assert smallest is not None  # noqa: S101 - so has an aggregate
    bounds: list[int] = [row[0] for row in (given_out, smallest) if row[0] is not None]
    return min(bounds)
