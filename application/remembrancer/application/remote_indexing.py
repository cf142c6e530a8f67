"""Buying the vectors of entries: the same guards, ledger and rules as for queries.

A text that may not leave, a reservation that is refused and an answer that proves nothing all
leave the entry without a vector: it is kept, found by keywords, and embedded later by
``reindex --missing`` (design 4.2 and 4.5).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from remembrancer.application.blocking import run_blocking
from remembrancer.application.document_vectors import Document, Embedded
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

INPUTS_MAX = 64
"""Texts of one request."""
REQUEST_BYTES_MAX = 262_144
"""UTF-8 bytes of one request's texts."""
SILENT_MAX = 2
"""Requests in a row without an answer, after which no more are sent."""


class RemoteIndexing:
    """Embeds documents through the admitted provider, owner by owner."""

    def __init__(  # one part each
        self,
        *,
        admission: AdmissionSource,
        configuration: Configuration,
        guards: Guards,
        destination: str,
        keys: QueryKeys,
        paid_request: PaidRequest,
        clock: Clock,
    ) -> None:
        self._admission = admission
        self._configuration = configuration
        self._guards = guards
        self._destination = destination
        self._keys = keys
        self._paid_request = paid_request
        self._clock = clock

    @property
    def embedding_tuple(self) -> EmbeddingTuple:
        """The space of what is bought."""
        return self._configuration.embedding_tuple

    def embedded(self, documents: Sequence[Document]) -> Embedded:
        """Return a vector for each document; None where it may not leave or wasn't answered.

        A refused reservation ends the owner's requests: its others would be refused too.  Two
        requests in a row without an answer end them all: the provider is away, and each further
        one would keep its complete charge.
        """
        found = Embedded(vectors=[None] * len(documents))
        unanswered: dict[int, str] = {}
        stopped: dict[tuple[str, str], str] = {}
        silent = 0
        waiting = deque(self._requests(documents))
        obstacle: str | None = self._obstacle()
        while waiting:
            places = waiting.popleft()
            buyer = (documents[places[0]].tenant, documents[places[0]].owner)
            code = obstacle or stopped.get(buyer)
            if code is not None:
                unanswered |= dict.fromkeys(places, code)
                continue
            paid = self._buy(documents, places)
            if paid.status is QueryStatus.PREPARED:
                silent = 0
                for place, vector in zip(places, paid.vectors, strict=True):
                    found.vectors[place] = vector
            elif paid.reason == QueryReason.OVER_MONEY_CEILING and len(places) > 1:
                # Nothing was sent, and fewer texts may still fit what is left of the day.
                half = len(places) // 2
                waiting.extendleft([places[half:], places[:half]])
            elif paid.status is QueryStatus.REFUSED:
                waiting.appendleft(places)
                stopped[buyer] = paid.reason
            else:
                unanswered |= dict.fromkeys(places, paid.reason)
                silent += 1
                obstacle = paid.reason if silent == SILENT_MAX else None
        return replace(found, unanswered=unanswered)

    def _requests(self, documents: Sequence[Document]) -> Iterator[list[int]]:
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

    def _may_leave(self, document: Document) -> bool:
        if len(document.text.encode()) > GUARDED_BYTES_MAX:
            return False
        verdict = guarded(
            self._guards,
            document.text,
            declared=document.sensitivity,
            destination=self._destination,
        )
        return verdict.may_leave

    def _buy(self, documents: Sequence[Document], places: list[int]) -> Paid:
        texts = tuple(documents[place].text for place in places)
        order = Order(
            tenant=documents[places[0]].tenant,
            owner=documents[places[0]].owner,
            kind=ReservationKind.INDEXING,
            texts=texts,
            request_digest=self._keys.request([sha256(text.encode()).digest() for text in texts]),
            configuration=self._configuration,
            began_s=self._clock.monotonic(),
            obstacle=self._obstacle,
        )
        return run_blocking(lambda: self._paid_request(order))

    def _obstacle(self) -> QueryReason | None:
        """Say why nothing may be out: what is admitted isn't what these parts were made for."""
        try:
            admitted = require_admitted(self._admission.admitted())
        except NotAdmittedError:
            return QueryReason.NOT_ADMITTED
        same = admitted.digest == self._configuration.digest
        return None if same else QueryReason.NOT_ADMITTED
