"""Originals in dictionaries."""

from collections.abc import Iterator, Sequence
from functools import partial

from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.ports.entry_vault import EntryVault, Original
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import StaleStreamError
from remembrancer.domain.identity import EntryId, version_id


class MemoryEntryVault(EntryVault):
    """All versions of each entry, oldest first: the last one is current."""

    def __init__(self, *, transactions: MemoryTransactions) -> None:
        self._transactions = transactions
        self._kept: dict[EntryId, list[Original]] = {}
        self._superseded: dict[EntryId, tuple[EntryId, int]] = {}
        self._erased: dict[EntryId, str] = {}

    @override
    def keep(self, originals: Sequence[Original]) -> None:
        with self._transactions.begin():
            for original in sorted(originals, key=lambda original: original.version):
                self._keep_one(original)

    @override
    def current(self, entry_ids: Sequence[EntryId]) -> dict[EntryId, Original]:
        with self._transactions.snapshot():
            return {
                entry_id: self._kept[entry_id][-1]
                for entry_id in entry_ids
                if entry_id in self._kept
            }

    @override
    def versions(
        self, wanted: Sequence[tuple[EntryId, int]]
    ) -> dict[tuple[EntryId, int], Original]:
        with self._transactions.snapshot():
            return {
                (entry_id, version): self._kept[entry_id][version - 1]
                for entry_id, version in wanted
                if 1 <= version <= len(self._kept.get(entry_id, ()))
            }

    @override
    def indexed(self, index_ids: Sequence[EntryId]) -> dict[EntryId, Original]:
        with self._transactions.snapshot():
            found = self.current(index_ids)
            for index_id in index_ids:
                if index_id in self._superseded:
                    entry_id, version = self._superseded[index_id]
                    found[index_id] = self._kept[entry_id][version - 1]
            return found

    @override
    def history(self, entry_id: EntryId) -> list[Original]:
        with self._transactions.snapshot():
            return list(self._kept.get(entry_id, ()))

    @override
    def of_kind(
        self, *, tenant: str, owners: tuple[str, ...] | None, kind: str, scopes: tuple[str, ...]
    ) -> list[Original]:
        with self._transactions.snapshot():
            found = [
                versions[-1]
                for versions in self._of(tenant, owners)
                if versions[-1].kind == kind and versions[-1].scope in scopes
            ]
        return sorted(found, key=lambda original: (original.recorded_at, original.entry_id))

    @override
    def scopes(self, *, tenant: str, owners: tuple[str, ...] | None) -> list[str]:
        with self._transactions.snapshot():
            return sorted(
                {original.scope for versions in self._of(tenant, owners) for original in versions}
            )

    @override
    def entries_of(self, *, tenant: str, owner: str) -> list[EntryId]:
        with self._transactions.snapshot():
            return sorted(versions[-1].entry_id for versions in self._of(tenant, (owner,)))

    @override
    def count(self) -> int:
        with self._transactions.snapshot():
            return len(self._kept)

    @override
    def erase(self, entry_id: EntryId) -> list[int]:
        with self._transactions.begin():
            versions = self._kept.pop(entry_id, None)
            if versions is None:
                return []
            places = {
                version_id(entry_id, original.version): (entry_id, original.version)
                for original in versions[:-1]
            }
            for index_id in places:
                del self._superseded[index_id]
            self._erased[entry_id] = versions[-1].tenant

            def undo() -> None:
                self._kept[entry_id] = versions
                self._superseded.update(places)
                del self._erased[entry_id]

            self._transactions.on_rollback(undo)
            return [original.version for original in versions]

    @override
    def tenant_of_erased(self, entry_id: EntryId) -> str | None:
        with self._transactions.snapshot():
            return self._erased.get(entry_id)

    @property
    def knows_anything(self) -> bool:
        """Whether an entry is kept here, or was erased."""
        return bool(self._kept or self._erased)

    def all_versions(self) -> Iterator[list[Original]]:
        """Iterate over the kept versions of each entry; called inside a snapshot."""
        return iter(self._kept.values())

    def keep_erased(self, entry_id: EntryId, tenant: str) -> None:
        """Know an entry as erased that never was here."""
        with self._transactions.begin():
            self._erased[entry_id] = tenant
            self._transactions.on_rollback(partial(self._forget_erased, entry_id))

    def _forget_erased(self, entry_id: EntryId) -> None:
        self._erased.pop(entry_id, None)

    def _of(self, tenant: str, owners: tuple[str, ...] | None) -> Iterator[list[Original]]:
        for versions in self._kept.values():
            # Tenant and owner are the same in all versions of an entry.
            if versions[-1].tenant == tenant and (owners is None or versions[-1].owner in owners):
                yield versions

    def _keep_one(self, original: Original) -> None:
        entry_id, before = original.entry_id, self._kept.get(original.entry_id, [])
        if original.version != len(before) + 1:
            raise StaleStreamError(MemoryEntry.create_id(original.tenant, entry_id))
        # The caller's mapping is copied: what is kept doesn't change under us.
        kept = original._replace(metadata=dict(original.metadata), superseded_at=None)
        if not before:
            self._begin_entry(kept)
            return
        last = before[-1]._replace(superseded_at=original.recorded_at)
        self._kept[entry_id] = [*before[:-1], last, kept]
        superseded = version_id(entry_id, last.version)
        self._superseded[superseded] = (entry_id, last.version)

        def undo() -> None:
            self._kept[entry_id] = before
            del self._superseded[superseded]

        self._transactions.on_rollback(undo)

    def _begin_entry(self, original: Original) -> None:
        entry_id = original.entry_id
        self._kept[entry_id] = [original]
        erased = self._erased.pop(entry_id, None)

        def undo() -> None:
            del self._kept[entry_id]
            if erased is not None:
                self._erased[entry_id] = erased

        self._transactions.on_rollback(undo)
