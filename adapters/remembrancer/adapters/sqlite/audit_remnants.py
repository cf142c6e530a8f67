"""What erasing must have emptied, and hasn't: erased rows stay as empty shells (adr/0003).

Every statement finds the shells by an index, so that what is kept needn't be read for it.
"""

from collections.abc import Iterator
from typing import Final

import apsw

from remembrancer.application.ports.audit_source import StoreFault
from remembrancer.domain.counted import counted

_REMNANTS: Final = (
    (
        "original",
        (
            "SELECT count(*) FROM original WHERE index_id IS NULL AND coalesce(entry_id, version,"
            " owned_scope, kind, sensitivity, recorded_at, superseded_at, tokens, token_counter,"
            " digest, salt, subjects, metadata, reason, text) IS NOT NULL"
        ),
    ),
    (
        "session_key",
        (
            "SELECT count(*) FROM session_key WHERE selection_id IS NULL"
            " AND coalesce(tenant, owner, session, key) IS NOT NULL"
        ),
    ),
    (
        "session_items",
        (
            "SELECT count(*) FROM session_items WHERE selection_id IS NULL"
            " AND coalesce(number, items) IS NOT NULL"
        ),
    ),
    (
        "vector_outbox",
        (
            "SELECT count(*) FROM vector_outbox WHERE index_number IS NULL"
            " AND coalesce(entry_id, version, tenant, owner, vector) IS NOT NULL"
        ),
    ),
)
"""By table: how many erased rows of it hold something."""
_WAITING: Final = (
    "SELECT count(*) FROM vector_outbox WHERE entry_id IN (SELECT entry_id FROM erased_entry)"
)
_VECTOR_INDEXES: Final = "SELECT number FROM vector_index WHERE place = 'local'"
_VECTOR_ROWS: Final = (
    "SELECT count(*) FROM vector_row_{n} WHERE gone IS NOT NULL"
    " AND coalesce(key, metadata) IS NOT NULL"
)


def remnants(connection: apsw.Connection) -> Iterator[StoreFault]:
    """Yield the tables in which erased rows hold something still."""
    tables = [*_REMNANTS, ("vector_outbox", _WAITING)]
    if connection.table_exists("main", "vector_index"):
        numbers = [int(number) for (number,) in connection.execute(_VECTOR_INDEXES)]
        tables += [(f"vector_row_{n}", _VECTOR_ROWS.format(n=n)) for n in numbers]
    for table, statement in tables:
        if connection.table_exists("main", table):
            count: int = connection.execute(statement).get
            if count:
                yield StoreFault(
                    expected=f"nothing of what was erased in {table}", found=counted(count, "row")
                )
