"""The part of the facade that spends, or says what was spent and what may be.

What is here loads its parts when it is called: a memory that sends nothing needs none of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from remembrancer.composition.arguments import instance, instances
from remembrancer.composition.twin import async_twin
from remembrancer.domain.bounds import QUERIES_MAX
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.parsed import parsed_name
from remembrancer.domain.recall import RecallContext, RecallQuery

if TYPE_CHECKING:
    from remembrancer.application.gates import GatesReport
    from remembrancer.application.ports import SemanticQueryLookup
    from remembrancer.application.ports.ledger_repository import SpendOfDay
    from remembrancer.application.prepare_queries import PreparationReport, PrepareQueries
    from remembrancer.composition.container import Container
    from remembrancer.domain.reservation import Reservation

WITHDRAWN = "withdrawn_by_host"
_EVIDENCE_BYTES_READ = 65_537
"""One more than a document may have."""


class Spending:
    """Preparation, its admission, and its accounts."""

    # -- Preparation: only with an admitted configuration ------------------

    def semantic_lookup(self) -> "SemanticQueryLookup":
        """Return the lookup of prepared query vectors.

        Raises:
            NotAdmittedError: nothing is admitted; it names the gates that are missing.
        """
        return self._parts().semantic_lookup()

    def query_preparer(self) -> "PrepareQueries":
        """Return the preparation of query vectors.

        Raises:
            NotAdmittedError: nothing is admitted; it names the gates that are missing.
        """
        return self._parts().query_preparer()

    def prepare(
        self, queries: Iterable[RecallQuery], context: RecallContext, *, tenant: str, owner: str
    ) -> "PreparationReport":
        """Turn at most four questions of (tenant, owner) into vectors, explicitly and at a cost.

        Waits up to ten seconds, and three more to clean up.  What a provider does is in the
        report, one outcome per query, in order; it is never raised.

        Raises:
            NotAdmittedError: nothing is admitted; it names the gates that are missing.
            InvalidInputError: more than four queries, or something else than queries; nothing
                was done.
        """
        from remembrancer.application.blocking import run_blocking  # noqa: PLC0415  # needs anyio

        asked, context = _queries(queries), instance(context, RecallContext, field="context")
        preparer = self.query_preparer()
        return run_blocking(lambda: preparer(asked, context, tenant=tenant, owner=owner))

    async def aprepare(
        self, queries: Iterable[RecallQuery], context: RecallContext, *, tenant: str, owner: str
    ) -> "PreparationReport":
        """As :meth:`prepare`, in the caller's event loop (asyncio or trio).

        A cancellation stops the request, marks the reservation unknown, and goes on.
        """
        asked, context = _queries(queries), instance(context, RecallContext, field="context")
        return await self.query_preparer()(asked, context, tenant=tenant, owner=owner)

    def withdraw_admission(self, *, reason: str = WITHDRAWN) -> None:
        """End the admission in this process: empty the caches, stop what is in flight.

        ``reason`` is a code.  The admission comes back with the next opening, if the evidence
        still holds then.

        Raises:
            InvalidInputError: ``reason`` can't be recorded; nothing has ended.
        """
        reason = parsed_name(reason, field="reason")
        preparation = self._parts().preparation()
        if preparation is not None:
            preparation.withdraw(reason)

    # -- Gates and accounts: with or without an admission ------------------

    def gates(self) -> "GatesReport":
        """Return where each of the twelve gates stands for the settings as they are, and why."""
        return self._parts().gates()()

    def spend(
        self, *, tenant: str, owner: str | None = None, since: str | None = None
    ) -> "Sequence[SpendOfDay]":
        """Return what was spent by (owner, UTC day), from ``since`` (such as ``2030-01-31``) on.

        Raises:
            InvalidInputError: ``since`` isn't a day.
        """
        return self._parts().spend()(tenant=tenant, owner=owner, since=since)

    def expire_spend(
        self, *, tenant: str, owner: str | None = None
    ) -> "Mapping[str, tuple[Reservation, ...]]":
        """Make unknown, at its whole charge, what is pending though its lease has run out.

        The next admission of an owner does the same; this is for who won't wait for one, such as
        before a schema is taken back.  Returns what became unknown, by owner.
        """
        return self._parts().expire()(tenant=tenant, owner=owner)

    def reconcile(  # everything that is put on record
        self,
        reservation_id: UUID,
        *,
        tenant: str,
        owner: str,
        charged_quanta: int,
        evidence: Path | bytes,
        by: str,
    ) -> "Reservation":
        """Lower an unknown charge to what ``evidence`` states or more; it keeps its day.

        ``evidence`` is a document as :mod:`remembrancer.domain.reconciliation` defines it, or the
        file that holds it.  Its digest and ``by`` go on record.  The same again records nothing.

        Raises:
            InvalidInputError: the document can't be read, or is about another reservation.
            ReservationNotUnknownError: absent, pending, settled, or reconciled otherwise.
            ChargeNotLoweredError: not lower than it was, or lower than the evidence states.
        """
        document = evidence if isinstance(evidence, bytes) else _file(evidence)
        return self._parts().reconcile()(
            instance(reservation_id, UUID, field="reservation_id"),
            tenant=tenant,
            owner=owner,
            charged_quanta=charged_quanta,
            document=document,
            by=by,
        )

    agates = async_twin(gates)
    aspend = async_twin(spend)
    aexpire_spend = async_twin(expire_spend)
    areconcile = async_twin(reconcile)

    def _parts(self) -> "Container":
        raise NotImplementedError


def _queries(queries: Iterable[RecallQuery]) -> list[RecallQuery]:
    # One more than allowed is enough to know that there are too many, also of what never ends.
    few = islice(queries, QUERIES_MAX + 1) if isinstance(queries, Iterable) else queries
    found = instances(few, RecallQuery, field="queries")
    if len(found) > QUERIES_MAX:  # Before anything else, the admission included (design 6, 1).
        raise InvalidInputError(field="queries", problem=f"must be at most {QUERIES_MAX}")
    return found


def _file(path: Path) -> bytes:
    instance(path, Path, field="evidence")
    try:
        with path.open("rb") as file:
            return file.read(_EVIDENCE_BYTES_READ)
    except OSError as error:
        raise InvalidInputError(
            field="evidence", problem=f"{path} can't be read: {error.strerror}"
        ) from None
