"""The installation's secret: keys what must not be guessed back from a log or a cache."""

from typing import Final, Protocol

SECRET_BYTES: Final = 32


class InstallationSecret(Protocol):
    """One random secret for all processes of a store, made when it is first asked for."""

    def secret(self) -> bytes:
        """Return the same 32 bytes every time, in every process of this store.

        The first call writes: don't make it inside a snapshot.

        Raises:
            StoreUnavailableError: another writer held the store too long; nothing was made.
            StoreReadOnlyError: none was made yet, and the store can't be written.
        """
        ...
