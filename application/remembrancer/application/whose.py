"""Whose an entry must be, for a host that acts for one tenant or owner and is given an id."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from remembrancer.application.load import load
from remembrancer.application.ports import EntryVault, EventLog, Transactions
from remembrancer.application.ports.archive import Part
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import UnknownEntryError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.parsed import parsed_name


class Owned(Protocol):
    """What belongs to an owner: an entry to be, an original, a text."""

    @property
    def tenant(self) -> str: ...  # noqa: D102  # said above
    @property
    def owner(self) -> str: ...  # noqa: D102  # said above


def places_by_owner(owned: Iterable[Owned]) -> list[tuple[tuple[str, str], list[int]]]:
    """Return the places of what belongs to each (tenant, owner), sorted by them."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(owned):
        places.setdefault((one.tenant, one.owner), []).append(place)
    return sorted(places.items())


def acting_for_named(
    transactions: Transactions, tenant: str | None, owner: str | None
) -> AbstractContextManager[None]:
    """Act for whom the host named; for anybody, where the store allows it, if it named none."""
    return nullcontext() if tenant is None else transactions.acting_for(tenant, owner)


def acting_for_part(transactions: Transactions, part: Part) -> AbstractContextManager[None]:
    """Read for whom a part of the store is: a tenant, one of its owners, or everybody."""
    if part.tenant is None:
        return transactions.over_all_tenants()
    return transactions.acting_for(part.tenant, part.owner)


def require_whose(
    entry_id: EntryId, *, vault: EntryVault, log: EventLog, tenant: str | None, owner: str | None
) -> None:
    """See that an entry, also an erased one, is ``tenant``'s and ``owner``'s; None is anybody's.

    Raises:
        UnknownEntryError: it is another's, or nobody's; which of them isn't told.
        InvalidInputError: a name breaks its bounds.
    """
    if tenant is None and owner is None:
        return
    wanted_tenant = None if tenant is None else parsed_name(tenant, field="tenant")
    wanted_owner = None if owner is None else parsed_name(owner, field="owner")
    found_tenant, found_owner = _whose(entry_id, vault, log)
    if wanted_tenant not in {None, found_tenant} or wanted_owner not in {None, found_owner}:
        raise UnknownEntryError(entry_id)


def _whose(entry_id: EntryId, vault: EntryVault, log: EventLog) -> tuple[str, str]:
    current = vault.current([entry_id]).get(entry_id)
    if current is not None:
        return current.tenant, current.owner
    tenant = vault.tenant_of_erased(entry_id)
    if tenant is not None:
        entry = load(log, MemoryEntry, MemoryEntry.create_id(tenant, entry_id))
        if entry is not None:
            return tenant, entry.owner
    raise UnknownEntryError(entry_id)
