"""Committed entries as quotations: the recorded version, if it may still be shown."""

from collections.abc import Mapping, Sequence

from remembrancer.application.ports import AccessPolicy, EntryVault, Original
from remembrancer.application.ports.access_policy import Access
from remembrancer.domain.fences import Quotation
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import CommittedText
from remembrancer.domain.original_digest import original_digest
from remembrancer.domain.recall import LeftOutReason

ERASED = LeftOutReason.ERASED.value
NO_LONGER_PERMITTED = "no longer permitted"
ALTERED = "altered"


class Quote:
    """Resolves a selection from the vault alone: no index, no embedder."""

    def __init__(self, *, vault: EntryVault, policy: AccessPolicy) -> None:
        self._vault = vault
        self._policy = policy

    def __call__(self, selected: Sequence[CommittedText], access: Access) -> list[Quotation]:
        """Return a quotation for each selected entry, in order.

        Its ``gone`` says why a text can't be shown: it was erased; the entry's labels of today
        or of then don't permit it; or it isn't the text that was committed.
        """
        wanted = [(entry_id, version) for _, entry_id, version, _ in selected]
        originals = self._vault.in_order(wanted)
        # A version that is current is its own head; only for others one has to be read.
        superseded = [
            one.entry_id for one in originals if one is not None and one.superseded_at is not None
        ]
        heads = self._vault.current(superseded) if superseded else {}
        return [
            self._quotation(one, original, heads, access)
            for one, original in zip(selected, originals, strict=True)
        ]

    def _quotation(
        self,
        selected: CommittedText,
        original: Original | None,
        heads: Mapping[EntryId, Original],
        access: Access,
    ) -> Quotation:
        shown, _, _, digest = selected
        if original is None:
            return _gone(selected, ERASED)
        permitted = self._permits(access, original)
        if original.superseded_at is not None:
            head = heads.get(original.entry_id)
            if head is None:
                return _gone(selected, ERASED)
            permitted = permitted and self._permits(access, head)
        if not permitted:
            return _gone(selected, NO_LONGER_PERMITTED)
        if original_digest(original.salt, original.text) != digest:
            return _gone(selected, ALTERED)
        return quotation_of(original, shown)

    def _permits(self, access: Access, one: Original) -> bool:
        return one.tenant == access.tenant and self._policy.permits(access, one.header)


def quotation_of(original: Original, entry_id: str) -> Quotation:
    """Return the text of a version as a pack quotes it; ``entry_id`` is its entry's, spelt."""
    return Quotation(
        entry_id,
        original.version,
        original.scope,
        original.kind,
        original.sensitivity.word,
        source_of(original.metadata),
        original.text,
    )


def _gone(selected: CommittedText, reason: str) -> Quotation:
    shown, _, version, _ = selected
    return Quotation(
        shown,
        version,
        scope="",
        kind="",
        sensitivity="",
        source="",
        text="",
        gone=reason,
    )


def source_of(metadata: Mapping[str, str]) -> str:
    """Return where an original comes from, as its metadata tells it."""
    source = metadata.get("source") or metadata.get("path") or ""
    heading = metadata.get("heading")
    return f"{source}#{heading}" if source and heading else source
