"""The installation's secret in PostgreSQL."""

from functools import partial
from typing import Any

from typing_extensions import override

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.application.ports.installation_secret import SECRET_BYTES, InstallationSecret
from remembrancer.application.ports.randomness import Randomness

_SELECT = "SELECT secret FROM installation_secret WHERE id = 1"
# Who comes second waits for the first to commit, and adds nothing.
_INSERT = "INSERT INTO installation_secret (id, secret) VALUES (1, %s) ON CONFLICT DO NOTHING"


class PostgresInstallationSecret(InstallationSecret):
    """The one row of ``installation_secret``."""

    def __init__(self, *, database: Database, randomness: Randomness) -> None:
        self._database = database
        self._randomness = randomness
        self._kept: bytes | None = None
        """Only what was committed."""

    @override
    def secret(self) -> bytes:
        if self._kept is not None:
            return self._kept
        if not self._database.in_write:
            with self._database.read_common() as connection:
                found = _secret(connection)
            if found is not None:
                self._kept = found
                return found
        return self._made()

    def _made(self) -> bytes:
        with self._database.begin() as connection:
            secret = _secret(connection)
            if secret is None:
                connection.execute(_INSERT, (self._randomness.bytes(SECRET_BYTES),))
                secret = _secret(connection)
            assert secret is not None  # noqa: S101 - it was there, or is now
            # An outer transaction may still be rolled back, and the secret with it.
            self._database.after_commit(partial(self._keep, secret))
            return secret

    def _keep(self, secret: bytes) -> None:
        self._kept = secret


def _secret(connection: Connection) -> bytes | None:
    row: Any = connection.execute(_SELECT).fetchone()
    return None if row is None else bytes(row[0])
