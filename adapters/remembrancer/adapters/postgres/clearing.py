"""Noting that something was erased whose dead rows still lie in the database's files.

PostgreSQL never overwrites a row: what was deleted stays in its page until the table is written
anew, which takes its owner's role (``remembrancer maintain clear``, adr/0027).  The application
can only say that there is such a row.
"""

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database

_NOTE = "INSERT INTO pending_clearing DEFAULT VALUES ON CONFLICT DO NOTHING"
_ANY = "SELECT EXISTS (SELECT FROM pending_clearing)"


def note_erasure(connection: Connection) -> None:
    """Note that this write transaction erases something."""
    connection.execute(_NOTE)


def is_cleared(database: Database) -> bool:
    """Say whether nothing was erased since the tables were last written anew."""
    with database.read_common() as connection:
        row = connection.execute(_ANY).fetchone()
    return row == (False,)
