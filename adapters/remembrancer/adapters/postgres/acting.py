"""For whom a thread acts, by blocks: what row security will be told (adr/0018)."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from remembrancer.adapters.postgres.scope import Scope
from remembrancer.adapters.postgres.thread_state import EVERYBODY, Everybody
from remembrancer.domain.errors import SettingsError


class Acting(ABC):
    """What has a stack of blocks for each thread."""

    @property
    @abstractmethod
    def _blocks(self) -> list[Scope | Everybody]:
        """The calling thread's, the innermost last."""

    @property
    @abstractmethod
    def reads_over_all_tenants(self) -> bool:
        """Whether :meth:`over_all_tenants` is to be had."""

    def acting_for(self, tenant: str, owner: str | None = None) -> AbstractContextManager[None]:
        """Say for whom this thread reads and writes inside; see the port ``Transactions``."""
        return self._block(Scope(tenant, owner))

    def over_all_tenants(self) -> AbstractContextManager[None]:
        """Let this thread's reads inside see every tenant's rows.

        Raises:
            SettingsError: there is no auditor's role to read with.
        """
        if not self.reads_over_all_tenants:
            raise SettingsError(
                setting="store.reader_dsn",
                problem="is missing: reading over all tenants needs the auditor's role",
            )
        return self._block(EVERYBODY)

    @property
    def whose(self) -> Scope | Everybody | None:
        """For whom this thread acts, to let another thread act for the same."""
        return self._blocks[-1] if self._blocks else None

    def acting_as(self, whose: Scope | Everybody | None) -> AbstractContextManager[None]:
        """Act for whom another thread acts."""
        return nullcontext() if whose is None else self._block(whose)

    @contextmanager
    def _block(self, one: Scope | Everybody) -> Generator[None]:
        blocks = self._blocks
        blocks.append(one)
        try:
            yield
        finally:
            blocks.pop()
