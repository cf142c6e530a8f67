"""How TLS is asked for, over what a connection string says."""

from pathlib import Path

from psycopg import conninfo


def with_tls(dsn: str, *, sslmode: str | None, root_cert: Path | None) -> str:
    """Return a connection string with these settings in it.

    Args:
        dsn: one that was checked.
        sslmode: as libpq's; None leaves what is there.
        root_cert: certificates that the server's is checked with; None leaves what is there.
    """
    given = {
        "sslmode": sslmode,
        "sslrootcert": None if root_cert is None else str(root_cert),
    }
    return conninfo.make_conninfo(dsn, **{key: value for key, value in given.items() if value})
