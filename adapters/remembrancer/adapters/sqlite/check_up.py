"""Whether SQLite itself finds the file damaged."""

from remembrancer.adapters.sqlite.database import Database
from remembrancer.domain.errors import StoreCorruptError

CHECKED_BYTES_MAX = 1024**3
"""A longer file is looked at only where that is asked for: SQLite reads a gigabyte in two seconds
where the system has it in memory, in ten and more where it comes from a disk."""

_FAULTS_MAX = 3
"""So many are named; SQLite's words name pages, tables and rows, and nothing that is in them."""
_AUDIT = "`remembrancer audit`"
_RESTORE = (
    f"copy the file away, then restore a backup or an export; {_AUDIT} says what of the log is "
    "sound"
)


def check_up(database: Database, *, deep: bool = False) -> list[tuple[str, bool, str, str]]:
    """Look at an open file: what, whether it is in order, what was found, what to do.

    Changes nothing and keeps nobody from writing.  ``deep`` compares indexes with their tables
    too, and looks at a file of any length.

    Raises:
        StoreUnavailableError: it can't be read now.
    """
    try:
        with database.read() as connection:
            length = int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
            if length > CHECKED_BYTES_MAX and not deep:
                return [_not_looked_at(length)]
            check = "integrity_check" if deep else "quick_check"
            said = [str(one) for (one,) in connection.execute(f"PRAGMA {check}({_FAULTS_MAX})")]
    except StoreCorruptError as error:
        said = [error.problem]
    if said == ["ok"]:
        found = f"SQLite finds no damage in {_megabytes(length)}; log and texts: {_AUDIT}"
        return [("file", True, found, "")]
    return [("file", False, f"damaged: {'; '.join(said)}", _RESTORE)]


def _not_looked_at(length: int) -> tuple[str, bool, str, str]:
    return (
        "file",
        True,
        f"not looked at: {_megabytes(length)} take a while",
        "`remembrancer doctor --deep` looks for damage in all of it",
    )


def _megabytes(length: int) -> str:
    return f"{length / 1e6:,.1f} MB"
