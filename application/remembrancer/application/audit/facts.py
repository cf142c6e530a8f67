"""What the log says must be true elsewhere: in other streams, in the vault, in projections."""

from datetime import UTC, datetime
from typing import Final

from remembrancer.application.audit.agreement import SEPARATOR, Agreement
from remembrancer.application.audit.joined import Joined, Share
from remembrancer.application.audit.packs import PackCheck
from remembrancer.application.audit.permitted import Labels, PermittedVersions
from remembrancer.application.audit.snapshots import SnapshotCheck

ORIGINAL_FIELDS: Final = (
    *("entry", "version", "tenant", "owner", "scope", "kind", "sensitivity"),
    *("digest", "length", "recorded_at", "superseded_at"),
)
ERASED_FIELDS: Final = ("entry", "tenant")
PLACE_FIELDS: Final = ("id", "tenant", "owner")
ADMISSION_FIELDS: Final = (
    *("tenant", "owner", "reservation", "kind", "request_digest", "day", "admitted_at"),
    *("expires_at", "reserved_quanta", "admitted_version", "ceiling_quanta", "ceiling_requests"),
)
OUTCOME_FIELDS: Final = ("tenant", "owner", "reservation", "state", "charged_quanta", "usage")
REASON_FIELDS: Final = ("tenant", "owner", "reservation", "reason")

BOUGHT_MAX: Final = 10_000
"""Spaces that are told apart as bought ones; a real log has a few."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S, _SECOND_US = 86_400, 1_000_000


class Facts:
    """One reading's facts, and what is looked up in the store while it goes on."""

    def __init__(
        self,
        share: Share,
        *,
        packs: PackCheck | None = None,
        snapshots: SnapshotCheck | None = None,
    ) -> None:
        self.packs = packs
        self.snapshots = snapshots
        self.originals = Agreement(ORIGINAL_FIELDS, keys=2)
        """Kept versions: log against vault."""
        self.erased = Agreement(ERASED_FIELDS, keys=1)
        """Erased entries: log against vault."""
        self.places = Agreement(PLACE_FIELDS, keys=1)
        """Ids of kept versions as they stand in an index: log against sparse index."""
        self.admissions = Agreement(ADMISSION_FIELDS, keys=3)
        """What an admission fixed: ledgers against receipts."""
        self.outcomes = Agreement(OUTCOME_FIELDS, keys=3)
        """What became of reservations: ledgers against receipts."""
        self.reasons = Agreement(REASON_FIELDS, keys=3)
        """Why reservations became unknown: ledgers against receipts."""
        self.labels = Labels()
        """Of versions, and the bounds of selections."""
        self.versions: Joined = PermittedVersions(share, self.labels)
        """Selections want versions of entries, with labels within their bounds."""
        self.preparations = Joined(share, once=True)
        """Prepared vectors want a settled reservation."""
        self.batches = Joined(share, once=False)
        """An owner's vectors in a bought space want a settled batch."""
        self.bought: set[str] = set()
        """Digests of the embedding tuples that reservations were made for."""
        self.selections = Joined(share, once=False)
        """Keys of sessions want a selection."""


def record(*parts: object) -> str:
    """Spell a record."""
    return SEPARATOR.join(map(str, parts))


def microseconds(at: datetime) -> int:
    """Return microseconds since 1970, UTC."""
    since = at - _EPOCH  # Divided by a microsecond it takes longer than all of this.
    return (since.days * _DAY_S + since.seconds) * _SECOND_US + since.microseconds
