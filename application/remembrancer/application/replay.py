"""Use case: replay a stage's pack from events and vault alone.

No index, no embedder, no token counter is asked, and nothing is written: years later, on another
machine, the same bytes come out, or the replay says exactly what isn't as it was (design 4.1).
"""

import hmac
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from remembrancer.application.build_pack import items_digest, pack_of
from remembrancer.application.load import load
from remembrancer.application.ports import EventLog, SessionVault, Transactions
from remembrancer.application.ports.access_policy import Access
from remembrancer.application.quote import ALTERED, ERASED, Quote
from remembrancer.domain.canonical_json import proven_json
from remembrancer.domain.context_pack import (
    ContextItem,
    ContextPack,
    Difference,
    pack_digest,
    reassemble,
)
from remembrancer.domain.errors import (
    InvalidInputError,
    UnknownPackError,
    UnknownSelectionError,
)
from remembrancer.domain.fences import gone
from remembrancer.domain.l3_selection import AssembledPack, L3Selection, StageKey
from remembrancer.domain.parsed import Name, Parsed
from remembrancer.domain.recall import SCOPES_MAX
from remembrancer.domain.scope import Scope
from remembrancer.domain.sensitivity import Sensitivity

PACK = "pack"
"""Stands as the id of a difference that is no single entry's: the whole text differs."""


class Reader(Parsed):
    """Who replays, and how far they may read."""

    tenant: Name
    principal: Name
    scopes: Annotated[tuple[Scope, ...], Field(strict=False, min_length=1, max_length=SCOPES_MAX)]
    read_ceiling: Annotated[Sensitivity, Field(strict=False)]


class Replay:
    """Reads, and reads only."""

    def __init__(
        self, *, quote: Quote, log: EventLog, sessions: SessionVault, transactions: Transactions
    ) -> None:
        self._quote = quote
        self._log = log
        self._sessions = sessions
        self._transactions = transactions

    def __call__(  # the facade's fixed signature
        self,
        session: str,
        stage: str,
        *,
        tenant: str,
        principal: str,
        scopes: Sequence[str],
        read_ceiling: Sensitivity,
        pack_number: int | None = None,
    ) -> ContextPack:
        """Return a pack as it was assembled, the last one unless ``pack_number`` says another.

        ``differences`` names what can't be shown as it was, with the reason; without any, text
        and digest are those of the pack.

        Raises:
            UnknownSelectionError: nothing was selected for the stage in this tenant.
            UnknownPackError: no such pack was assembled from it.
            InvalidInputError: a name, a scope or the ceiling breaks its bounds.
        """
        given: dict[str, Any] = {  # A lone string for the scopes is refused, not taken apart.
            "tenant": tenant,
            "principal": principal,
            "scopes": scopes,
            "read_ceiling": read_ceiling,
        }
        reader = Reader(**given)
        key = StageKey(tenant=reader.tenant, session=session, stage=stage)
        with self._transactions.acting_for(key.tenant), self._transactions.snapshot():
            committed = load(
                self._log,
                L3Selection,
                L3Selection.create_id(key.tenant, key.session, key.stage),
            )
            if committed is None:
                raise UnknownSelectionError(session=session, stage=stage)
            record = _record(committed, pack_number)
            access = Access(
                tenant=reader.tenant,
                owner=committed.selection.owner,
                principal=reader.principal,
                scopes=reader.scopes,
                read_ceiling=reader.read_ceiling,
            )
            return self._replayed(committed, record, access)

    def _replayed(
        self, committed: L3Selection, record: AssembledPack, access: Access
    ) -> ContextPack:
        selection = committed.selection
        included = set(record.included)
        quotations = self._quote([one for one in committed.texts if one[0] in included], access)
        items, lost = self._items(committed, record)
        text = reassemble(items, quotations, label=record.label, included=record.included)
        digest = pack_digest(
            selection=selection,
            text=text,
            included=record.included,
            omitted=record.omitted,
            token_budget=record.token_budget,
            tokens=record.tokens,
            token_counter=record.token_counter,
        )
        differences = lost + [
            Difference(id=one.entry_id, reason=one.gone)
            for one in quotations
            if one.gone is not None
        ]
        if not differences and digest != record.digest:
            differences = [Difference(id=PACK, reason=ALTERED)]
        return pack_of(committed, record, text=text, digest=digest, differences=differences)

    def _items(
        self, committed: L3Selection, record: AssembledPack
    ) -> tuple[list[ContextItem], list[Difference]]:
        found = self._sessions.keyed_items(committed.id, number=record.number)
        if found is not None and hmac.compare_digest(items_digest(*found), record.items_digest):
            return [ContextItem(**one) for one in proven_json(found[1])], []
        reason = ERASED if found is None else ALTERED
        entry_ids = {shown for shown, *_ in committed.texts}
        lost = [one for one in record.included if one not in entry_ids]
        return (
            [
                ContextItem(layer=0, id=one, text=gone(one, reason, label=record.label))
                for one in lost
            ],
            [Difference(id=one, reason=reason) for one in lost],
        )


def _record(committed: L3Selection, pack_number: int | None) -> AssembledPack:
    packs = committed.packs
    wanted = len(packs) if pack_number is None else pack_number
    if type(wanted) is not int:
        raise InvalidInputError(field="pack_number", problem="must be a whole number")
    if not 1 <= wanted <= len(packs):
        selection = committed.selection
        raise UnknownPackError(
            session=selection.session, stage=selection.stage, number=wanted, packs=len(packs)
        )
    return packs[wanted - 1]
