"""The installation's secret in the SQLite file."""

from functools import partial

import apsw
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.application.ports.installation_secret import SECRET_BYTES, InstallationSecret
from remembrancer.application.ports.randomness import Randomness

_SELECT = "SELECT secret FROM installation_secret WHERE id = 1"
_INSERT = "INSERT INTO installation_secret (id, secret) VALUES (1, ?)"


class SqliteInstallationSecret(InstallationSecret):
    """The one row of ``installation_secret``; see ``installation_secret.sql``."""

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
            with self._database.read() as connection:
                found = _secret(connection)
            if found is not None:
                self._kept = found
                return found
        return self._made()

    def _made(self) -> bytes:
        with self._database.write() as connection:
            # Again, under the lock: another thread or process may have been first.
            secret = _secret(connection)
            if secret is None:
                secret = self._randomness.bytes(SECRET_BYTES)
                connection.execute(_INSERT, (secret,))
            # An outer transaction may still be rolled back, and the secret with it.
            self._database.after_commit(partial(self._keep, secret))
            return secret

    def _keep(self, secret: bytes) -> None:
        self._kept = secret


def _secret(connection: apsw.Connection) -> bytes | None:
    found: bytes | None = connection.execute(_SELECT).get
    return found
