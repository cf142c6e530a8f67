"""Buying the vectors of entries: the same guards, ledger and rules as for queries.

A text that may not leave, a reservation that is refused and an answer that proves nothing all
leave the entry without a vector: it is kept, found by keywords, and embedded later by
``reindex --missing`` (issue of the shared budget: design 4.2 and 4.5).
"""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256

from remembrancer.application.blocking import run_blocking
from remembrancer.application.document_vectors import DocumentText
from remembrancer.application.paid_request import Order, Paid, PaidRequest
from remembrancer.application.ports import Clock
from remembrancer.application.ports.admission_source import AdmissionSource
from remembrancer.application.ports.guards import GUARDED_BYTES_MAX, Guards, guarded
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.eligibility import QueryReason, QueryStatus
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import NotAdmittedError
from remembrancer.domain.query_key import QueryKeys
from remembrancer.domain.release import require_admitted
from remembrancer.domain.reservation import ReservationKind
from remembrancer.domain.vector import Vector

INPUTS_MAX = 64
"""Texts of one request."""
REQUEST_BYTES_MAX = 262_144
"""UTF-8 bytes of one request's texts."""


class RemoteIndexing:
    """Embeds documents through the admitted provider, owner by owner."""

    def __init__(  # one part each
        self,
        *,
        admission: AdmissionSource,
        space: EmbeddingTuple,
        guards: Guards,
        destination: str,
        keys: QueryKeys,
        paid_request: PaidRequest,
        clock: Clock,
    ) -> None:
        self._admission = admission
        self._space = space
        self._guards = guards
        self._destination = destination
        self._keys = keys
        self._paid_request = paid_request
        self._clock = clock

    @property
    def embedding_tuple(self) -> EmbeddingTuple:
        """The space of what is bought."""
        return self._space

    def vectors(self, documents: Sequence[DocumentText]) -> list[Vector | None]:
        """Return a vector for each document; None where none was to be had."""
        found: list[Vector | None] = [None] * len(documents)
        try:
            configuration = require_admitted(self._admission.admitted()).configuration
        except NotAdmittedError:
            return found
        if configuration.embedding_tuple != self._space:
            return found
        stopped: set[tuple[str, str]] = set()
        for places in self._requests(documents):
            first = documents[places[0]]
            buyer = (first.tenant, first.owner)
            if buyer in stopped:
                continue
            paid = self._buy(documents, places, configuration)
            for place, vector in zip(places, paid.vectors, strict=False):
                found[place] = vector
            if paid.status is QueryStatus.REFUSED:
                # The day's room is used up: the owner's other requests would be refused too.
                stopped.add(buyer)
        return found

    def _requests(self, documents: Sequence[DocumentText]) -> Iterator[list[int]]:
        """Group what may leave into requests of one owner each, within the bounds."""
        by_owner: dict[tuple[str, str], list[int]] = {}
        for place, one in enumerate(documents):
            if self._may_leave(one):
                by_owner.setdefault((one.tenant, one.owner), []).append(place)
        for places in by_owner.values():
            request: list[int] = []
            size = 0
            for place in places:
                length = len(documents[place].text.encode())
                if request and (len(request) == INPUTS_MAX or size + length > REQUEST_BYTES_MAX):
                    yield request
                    request, size = [], 0
                request.append(place)
                size += length
            if request:
                yield request

    def _may_leave(self, document: DocumentText) -> bool:
        if len(document.text.encode()) > GUARDED_BYTES_MAX:
            return False
        verdict = guarded(
            self._guards,
            document.text,
            declared=document.sensitivity,
            destination=self._destination,
        )
        return verdict.may_leave

    def _buy(
        self, documents: Sequence[DocumentText], places: list[int], configuration: Configuration
    ) -> Paid:
        texts = tuple(documents[place].text for place in places)
        order = Order(
            tenant=documents[places[0]].tenant,
            owner=documents[places[0]].owner,
            kind=ReservationKind.INDEXING,
            texts=texts,
            request_digest=self._keys.request([sha256(text.encode()).digest() for text in texts]),
            configuration=configuration,
            began_s=self._clock.monotonic(),
            obstacle=self._obstacle_to(configuration),
        )
        return run_blocking(lambda: self._paid_request(order))

    def _obstacle_to(self, configuration: Configuration) -> Callable[[], QueryReason | None]:
        def obstacle() -> QueryReason | None:
            try:
                admitted = require_admitted(self._admission.admitted())
            except NotAdmittedError:
                return QueryReason.NOT_ADMITTED
            same = admitted.digest == configuration.digest
            return None if same else QueryReason.NOT_ADMITTED

        return obstacle
