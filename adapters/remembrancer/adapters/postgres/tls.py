"""How TLS is asked for, over what a connection string says, and why it couldn't be had."""

from pathlib import Path
from typing import NamedTuple

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


class TlsRefusal(NamedTuple):
    """Why there is no connection that is as safe as was asked for."""

    problem: str
    see_to: str
    """A setting."""


_REFUSALS = {
    "certificate verify failed": TlsRefusal(
        "shows a certificate that isn't valid, or that none of store.ssl_root_cert has signed",
        "store.ssl_root_cert",
    ),
    "does not match host name": TlsRefusal(
        "shows a certificate for another host name than the connection string's",
        "the host in the connection string",
    ),
    "root certificate file": TlsRefusal(
        "can't be told from another server: the file of certificates to check its own with "
        "isn't there, or can't be read",
        "store.ssl_root_cert",
    ),
    "server does not support SSL": TlsRefusal(
        "has no TLS, and the settings ask for it", "store.sslmode, or `ssl = on` at the server"
    ),
    "no encryption": TlsRefusal("wants TLS from this host", "store.sslmode"),
}
"""By words of libpq's, in the order in which they are looked for."""


def tls_refusal(words: str) -> TlsRefusal | None:
    """Return what is wrong with TLS, told by libpq's message; None if that isn't it."""
    if "authentication failed" in words:
        return None  # With `prefer` libpq tries in the clear then, and tells of that as well.
    return next((told for said, told in _REFUSALS.items() if said in words), None)
