"""The installation's secret: keys what must not be guessed back from a log or a cache."""

from typing import Protocol


class InstallationSecret(Protocol):
    """One random secret for all processes of a store, made when it is first asked for."""

    def secret(self) -> bytes:
        """Return the same 32 bytes every time, in every process of this store."""
        ...
