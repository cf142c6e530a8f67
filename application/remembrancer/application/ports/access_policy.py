"""Who may see what."""

from dataclasses import dataclass
from typing import Protocol

from remembrancer.domain.entry import EntryHeader
from remembrancer.domain.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who asks, for whose memory, and how far they may read."""

    tenant: str
    owner: str
    principal: str
    scopes: tuple[str, ...]
    read_ceiling: Sensitivity


class AccessPolicy(Protocol):
    """Decides within a tenant; the use cases never let it reach beyond one (design 4.1)."""

    def owners(self, access: Access) -> tuple[str, ...] | None:
        """Return whose entries may be looked among; None for all of the tenant's."""
        ...

    def permits(self, access: Access, entry: EntryHeader) -> bool:
        """Say whether this version of an entry may be shown."""
        ...
