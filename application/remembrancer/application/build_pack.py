"""Use case: build the context pack of a stage."""

from collections.abc import Sequence
from dataclasses import replace

from remembrancer.application.load import append, load
from remembrancer.application.ports import (
    Clock,
    EventLog,
    Randomness,
    SessionVault,
    TokenCounter,
    Transactions,
)
from remembrancer.application.quote import NO_LONGER_PERMITTED, Quote
from remembrancer.application.recall import access_of
from remembrancer.application.select_entries import KEY_BYTES, SelectEntries
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.context_pack import (
    FORMAT_VERSION,
    ContextItem,
    ContextPack,
    Difference,
    assemble,
    check_request,
    pack_digest,
)
from remembrancer.domain.errors import StaleStreamError
from remembrancer.domain.fences import LABEL_BYTES, Quotation
from remembrancer.domain.keyed_digest import keyed_digest
from remembrancer.domain.l3_selection import AssembledPack, L3Selection
from remembrancer.domain.recall import LeftOutReason, RecallContext, RecallQuery

ATTEMPTS = 5
"""How often a pack is assembled anew because another process recorded one meanwhile."""


class BuildPack:
    """Selection first, then the pack from it, then the record of the pack."""

    def __init__(  # one port each
        self,
        *,
        select: SelectEntries,
        quote: Quote,
        tokens: TokenCounter,
        log: EventLog,
        sessions: SessionVault,
        transactions: Transactions,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._select = select
        self._quote = quote
        self._tokens = tokens
        self._log = log
        self._sessions = sessions
        self._transactions = transactions
        self._clock = clock
        self._randomness = randomness

    def __call__(  # the facade's fixed signature
        self,
        session: str,
        stage: str,
        query: RecallQuery,
        context: RecallContext,
        *,
        items: Sequence[ContextItem],
        token_budget: int,
    ) -> ContextPack:
        """Assemble the stage's pack and record it.

        The same request again gives the same bytes and records nothing; another budget or other
        items give a further pack of the same selection.  ``reused_selection`` says that the
        stage had been selected before, so that ``query`` decided nothing.

        Raises:
            InvalidInputError: two items share an id, or the budget breaks its bounds.
            BudgetTooSmallError: the required items don't fit; nothing was assembled.
        """
        check_request(items, token_budget)
        committed, reused = self._select.committed(session, stage, query, context)
        texts = committed.texts
        check_request(items, token_budget, entry_ids=[shown for shown, *_ in texts])
        with self._transactions.acting_for(query.tenant):
            quotations = self._quote(texts, access_of(query))
        for _ in range(ATTEMPTS):
            try:
                pack = self._assemble(committed, items, quotations, token_budget)
                return replace(pack, reused_selection=reused)
            except StaleStreamError:
                with self._transactions.acting_for(query.tenant):
                    committed = load(self._log, L3Selection, committed.id) or committed
        raise StaleStreamError(committed.id)

    def _assemble(
        self,
        committed: L3Selection,
        items: Sequence[ContextItem],
        quotations: Sequence[Quotation],
        token_budget: int,
    ) -> ContextPack:
        selection, given = committed.selection, items_as_json(items)
        with (
            self._transactions.acting_for(selection.tenant, selection.owner),
            self._transactions.begin(),
        ):
            key = self._key(committed)
            of_items = items_digest(key, given)
            last = committed.packs[-1] if committed.packs else None
            label = self._label(committed, of_items)
            draft = assemble(
                items,
                [one for one in quotations if one.gone is None],
                label=label,
                token_budget=token_budget,
                count=self._tokens.count,
            )
            omitted = draft.omitted + tuple(
                (one.entry_id, _omission(one.gone)) for one in quotations if one.gone is not None
            )
            digest = pack_digest(
                selection=selection,
                text=draft.text,
                included=draft.included,
                omitted=omitted,
                token_budget=token_budget,
                tokens=draft.tokens,
                token_counter=self._tokens.name,
            )
            record = AssembledPack(
                number=len(committed.packs) + 1,
                digest=digest,
                label=label,
                format_version=FORMAT_VERSION,
                included=draft.included,
                omitted=omitted,
                token_budget=token_budget,
                tokens=draft.tokens,
                token_counter=self._tokens.name,
                items_digest=of_items,
            )
            if last is None or last.digest != digest:
                committed.assemble(record, at=max(self._clock.now(), committed.modified_on))
                append(self._log, committed)
                self._sessions.keep_items(committed.id, number=record.number, items=given)
        return pack_of(committed, committed.packs[-1], text=draft.text, digest=digest)

    def _label(self, committed: L3Selection, of_items: str) -> str:
        """Return the label that these items had before, so that they give the same bytes."""
        for record in reversed(committed.packs):
            if record.items_digest == of_items:
                return record.label
        return self._randomness.bytes(LABEL_BYTES).hex()

    def _key(self, committed: L3Selection) -> bytes:
        key = self._sessions.key(committed.id)
        if key is None:
            # The session was erased; what is assembled from here on is erasable under a new key.
            key = self._randomness.bytes(KEY_BYTES)
            selection = committed.selection
            self._sessions.keep_key(
                committed.id,
                tenant=selection.tenant,
                owner=selection.owner,
                session=selection.session,
                key=key,
            )
        return key


def items_as_json(items: Sequence[ContextItem]) -> bytes:
    """Return the host's items as the vault keeps them."""
    return canonical_json([item.model_dump(mode="json") for item in items])


def items_digest(key: bytes, items: bytes) -> str:
    """Return the digest of the host's items, keyed with the selection's own key."""
    return keyed_digest(key, items)


def pack_of(
    committed: L3Selection,
    record: AssembledPack,
    *,
    text: str,
    digest: str,
    differences: Sequence[Difference] = (),
) -> ContextPack:
    """Return a pack as the host gets it."""
    selection = committed.selection
    return ContextPack(
        session=selection.session,
        stage=selection.stage,
        number=record.number,
        text=text,
        digest=digest,
        tokens=record.tokens,
        token_budget=record.token_budget,
        token_counter=record.token_counter,
        label=record.label,
        included=record.included,
        omitted=record.omitted,
        selection=selection,
        differences=tuple(differences),
    )


def _omission(gone: str) -> str:
    return LeftOutReason.PERMISSION.value if gone == NO_LONGER_PERMITTED else gone
