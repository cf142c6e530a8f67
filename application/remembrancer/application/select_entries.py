"""Use case: select entries for a stage, and commit the choice before anything is made of it."""

from array import array
from base64 import b64encode
from collections.abc import Mapping
from uuid import UUID

from remembrancer.application.load import append, load
from remembrancer.application.ports import (
    Clock,
    EventLog,
    Randomness,
    Sealer,
    SessionVault,
    Transactions,
)
from remembrancer.application.recall import Recall
from remembrancer.domain.errors import InvalidInputError, StaleStreamError
from remembrancer.domain.l3_selection import L3Selection, SelectedEntry, Selection, StageKey
from remembrancer.domain.recall import RecallContext, Recalled, RecallQuery

KEY_BYTES = 32


class SelectEntries:
    """Commits which entries a stage gets; what is committed is never chosen again."""

    def __init__(  # one port each
        self,
        *,
        recall: Recall,
        log: EventLog,
        sessions: SessionVault,
        sealer: Sealer,
        transactions: Transactions,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._recall = recall
        self._log = log
        self._sessions = sessions
        self._sealer = sealer
        self._transactions = transactions
        self._clock = clock
        self._randomness = randomness

    def __call__(
        self, session: str, stage: str, query: RecallQuery, context: RecallContext
    ) -> Selection:
        """Return the stage's selection, committed now or before.

        The first request decides: a later one gets what was committed and asks no index, also
        with another question.  Of two that race, one commits and the other adopts.

        Raises:
            InvalidInputError: the stage was selected for another owner.
        """
        committed, _ = self.committed(session, stage, query, context)
        return committed.selection

    def committed(
        self, session: str, stage: str, query: RecallQuery, context: RecallContext
    ) -> tuple[L3Selection, bool]:
        """As calling, but return the aggregate, and whether it had been committed before."""
        key = StageKey(tenant=query.tenant, session=session, stage=stage)
        stream = L3Selection.create_id(key.tenant, key.session, key.stage)
        with self._transactions.acting_for(key.tenant):
            known, reused = load(self._log, L3Selection, stream), True
        if known is None:
            known, reused = self._commit(stream, key, query, self._recall(query, context))
        if known.selection.owner != query.owner:
            raise InvalidInputError(
                field="owner", problem="this session and stage belong to another owner"
            )
        return known, reused

    def _commit(
        self, stream: UUID, key: StageKey, query: RecallQuery, recalled: Recalled
    ) -> tuple[L3Selection, bool]:
        secret = self._randomness.bytes(KEY_BYTES)
        selection = _selection(
            key, query, recalled, self._filter(query), self._sealed(recalled, stream, secret)
        )
        selected = L3Selection.select(selection, at=self._clock.now())
        try:
            with (
                self._transactions.acting_for(key.tenant, query.owner),
                self._transactions.begin(),
            ):
                append(self._log, selected)
                self._sessions.keep_key(
                    stream,
                    tenant=key.tenant,
                    owner=query.owner,
                    session=key.session,
                    key=secret,
                )
        except StaleStreamError:
            with self._transactions.acting_for(key.tenant):
                adopted = load(self._log, L3Selection, stream)
            if adopted is None:
                raise
            return adopted, True
        return selected, False

    def _filter(self, query: RecallQuery) -> Mapping[str, tuple[str, ...]]:
        # Subjects are content, and the log is never rewritten: only their number is kept.
        bounds = {
            "tenant": (query.tenant,),
            "owner": (query.owner,),
            "scopes": query.scopes,
            "sensitivity": tuple(one.value for one in query.read_ceiling.at_or_under()),
            "subject_count": (str(len(query.subjects)),),
        }
        if query.as_of is not None:
            bounds["as_of"] = (query.as_of.isoformat(),)
        return bounds

    def _sealed(self, recalled: Recalled, stream: UUID, secret: bytes) -> str | None:
        if recalled.query_vector is None:
            return None
        values = array("f", recalled.query_vector)
        sealed = self._sealer.seal(values.tobytes(), key=secret, identity=stream.bytes)
        return b64encode(sealed).decode()


def _selection(
    key: StageKey,
    query: RecallQuery,
    recalled: Recalled,
    bounds: Mapping[str, tuple[str, ...]],
    sealed: str | None,
) -> Selection:
    return Selection(
        tenant=key.tenant,
        owner=query.owner,
        principal=query.principal,
        session=key.session,
        stage=key.stage,
        kind=query.kind,
        entries=tuple(
            SelectedEntry(
                entry_id=one.entry_id,
                version=one.version,
                digest=one.digest,
                score=one.score,
                ranks=one.ranks,
            )
            for one in recalled.entries
        ),
        mode=recalled.mode,
        mode_reason=recalled.mode_reason,
        left_out=recalled.left_out,
        left_out_count=recalled.left_out_count,
        limit=query.limit,
        filter=bounds,
        embedding_tuple=recalled.embedding_tuple,
        sealed_query_vector=sealed,
    )
