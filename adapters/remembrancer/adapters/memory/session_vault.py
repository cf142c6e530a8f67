"""Keys and items of sessions in dictionaries."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.ports.archive import ArchivedSession
from remembrancer.application.ports.session_vault import SessionVault


@dataclass(frozen=True, slots=True, kw_only=True)
class _Secrets:
    """What is kept of one selection."""

    tenant: str
    owner: str
    session: str
    key: bytes = field(repr=False)
    items: dict[int, bytes] = field(repr=False)


class MemorySessionVault(SessionVault):
    """One record for each selection."""

    def __init__(self, *, transactions: MemoryTransactions) -> None:
        self._transactions = transactions
        self._kept: dict[UUID, _Secrets] = {}

    @override
    def keep_key(
        self, selection_id: UUID, *, tenant: str, owner: str, session: str, key: bytes
    ) -> None:
        with self._transactions.begin():
            before = self._kept.get(selection_id)
            items = before.items if before else {}
            secrets = _Secrets(tenant=tenant, owner=owner, session=session, key=key, items=items)
            self._put(selection_id, secrets)

    @override
    def key(self, selection_id: UUID) -> bytes | None:
        with self._transactions.snapshot():
            secrets = self._kept.get(selection_id)
            return secrets.key if secrets else None

    @override
    def keep_items(self, selection_id: UUID, *, number: int, items: bytes) -> None:
        with self._transactions.begin():
            before = self._kept.get(selection_id)
            if before is None:
                return
            secrets = _Secrets(
                tenant=before.tenant,
                owner=before.owner,
                session=before.session,
                key=before.key,
                items={**before.items, number: items},
            )
            self._put(selection_id, secrets)

    @override
    def items(self, selection_id: UUID, *, number: int) -> bytes | None:
        with self._transactions.snapshot():
            secrets = self._kept.get(selection_id)
            return secrets.items.get(number) if secrets else None

    @override
    def erase_session(self, *, tenant: str, session: str) -> int:
        return self._erase(lambda kept: (kept.tenant, kept.session) == (tenant, session))

    @override
    def erase_owner(self, *, tenant: str, owner: str) -> int:
        return self._erase(lambda kept: (kept.tenant, kept.owner) == (tenant, owner))

    def all_sessions(self) -> Iterator[ArchivedSession]:
        """Iterate over what is kept; called inside a snapshot."""
        for selection_id, kept in self._kept.items():
            yield ArchivedSession(
                selection_id=selection_id,
                tenant=kept.tenant,
                owner=kept.owner,
                session=kept.session,
                key=kept.key,
                items=tuple(sorted(kept.items.items())),
            )

    def _put(self, selection_id: UUID, secrets: _Secrets) -> None:
        before = self._kept.get(selection_id)
        self._kept[selection_id] = secrets
        self._transactions.on_rollback(lambda: self._restore(selection_id, before))

    def _restore(self, selection_id: UUID, before: _Secrets | None) -> None:
        if before is None:
            del self._kept[selection_id]
        else:
            self._kept[selection_id] = before

    def _erase(self, concerned: Callable[[_Secrets], bool]) -> int:
        with self._transactions.begin():
            gone = {number: kept for number, kept in self._kept.items() if concerned(kept)}
            for selection_id in gone:
                del self._kept[selection_id]
            self._transactions.on_rollback(lambda: self._kept.update(gone))
            return len(gone)
