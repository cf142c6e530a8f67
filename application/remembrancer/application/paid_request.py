"""One paid request to the embedding provider: reserve, send, validate, settle (design 6, 4 to 7).

The reservation commits before anything leaves; the request runs outside every transaction; only a
validated answer lowers the charge.  Whatever else happens (an error, a timeout, a cancellation, a
withdrawn admission, a lease that ran out) leaves the complete charge and at most three seconds of
cleaning up.  Queries and indexing both go this way, so there is one budget and one set of rules.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import anyio

from remembrancer.application.ports import Clock, Randomness
from remembrancer.application.ports.embedding_provider import EmbeddingProvider, ProviderError
from remembrancer.application.ports.ledger_repository import LedgerRepository
from remembrancer.application.ports.worker import Worker
from remembrancer.application.reservations import (
    Attempt,
    AttemptAbandonedError,
    is_pending,
    mark_unknown,
    reserve,
    settle,
)
from remembrancer.application.watched import StoppedError, watched
from remembrancer.domain.bounds import CHECK_INTERVAL_S, CLEANUP_S, DEADLINE_S, LEASE_S
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.eligibility import QueryReason, QueryStatus
from remembrancer.domain.errors import RefusedError, RemembrancerError
from remembrancer.domain.provider_answer import (
    AnswerExpected,
    ProviderAnswer,
    UnusableAnswer,
    read_answer,
)
from remembrancer.domain.reservation import ReservationKind, UnknownReason
from remembrancer.domain.spend_errors import (
    OverMoneyCeilingError,
    OverRequestCeilingError,
    QueryPendingError,
    ReservationReusedError,
)
from remembrancer.domain.vector import Vector

_REFUSALS: dict[type[RemembrancerError], QueryReason] = {
    QueryPendingError: QueryReason.QUERY_PENDING,
    OverRequestCeilingError: QueryReason.OVER_REQUEST_CEILING,
    OverMoneyCeilingError: QueryReason.OVER_MONEY_CEILING,
    ReservationReusedError: QueryReason.RESERVATION_REUSED,
}

Obstacle = Callable[[], QueryReason | None]
"""Says why a request may not (or no longer) be out, or None.  Blocking; quick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to ask the provider for, and under which conditions it may be out."""

    tenant: str
    owner: str
    kind: ReservationKind
    texts: tuple[str, ...] = field(repr=False)
    request_digest: str
    configuration: Configuration
    began_s: float
    """Monotonic time at which the caller's ten seconds began."""
    obstacle: Obstacle
    """Asked right before sending, and each second while the request is out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """What an order came to; holds no text."""

    status: QueryStatus
    """``prepared``, ``refused`` (nothing was sent) or ``unknown`` (it may have been)."""
    reason: str
    reservation_id: UUID | None = None
    charged_quanta: int = 0
    vectors: tuple[Vector, ...] = field(default=(), repr=False)


class PaidRequest:
    """Carries an order out: one reservation, at most one request."""

    def __init__(
        self,
        *,
        ledger: LedgerRepository,
        provider: EmbeddingProvider,
        clock: Clock,
        randomness: Randomness,
        worker: Worker,
    ) -> None:
        self._ledger = ledger
        self._provider = provider
        self._clock = clock
        self._randomness = randomness
        self._worker = worker

    async def __call__(self, order: Order) -> Paid:
        """Carry ``order`` out; what a provider or a store does is in the answer, never raised.

        A cancellation propagates, after the reservation was marked unknown.
        """
        attempt = Attempt(
            tenant=order.tenant,
            owner=order.owner,
            kind=order.kind,
            reservation_id=self._randomness.uuid(),
            request_digest=order.request_digest,
            input_bytes=tuple(len(text.encode()) for text in order.texts),
            configuration=order.configuration,
            # Before the reserving transaction is sent: what the wait for it takes counts against
            # the lease, or a request could leave after the store has given it up.
            lease_began_s=self._clock.monotonic(),
        )
        refused = await self._reserve(order, attempt)
        return refused or await self._spend(order, attempt)

    async def _reserve(self, order: Order, attempt: Attempt) -> Paid | None:
        """Reserve; return why that failed, if it did."""
        try:
            with anyio.fail_after(self._left_s(order)):
                admission = await self._worker.run(lambda: reserve(self._ledger, attempt))
        except RefusedError as refusal:
            reason = _REFUSALS.get(type(refusal), QueryReason.STORE_UNAVAILABLE)
            return Paid(status=QueryStatus.REFUSED, reason=reason)
        except TimeoutError:
            await self._give_up(attempt, UnknownReason.TIMEOUT)
            return Paid(status=QueryStatus.REFUSED, reason=UnknownReason.TIMEOUT)
        except AttemptAbandonedError:
            return Paid(status=QueryStatus.REFUSED, reason=QueryReason.STORE_UNAVAILABLE)
        except Exception:  # noqa: BLE001  # whatever a store raises: nothing will be sent
            # The commit's outcome may be unknown: if the reservation is there, it ends here.
            await self._give_up(attempt, UnknownReason.FAILURE)
            return Paid(status=QueryStatus.REFUSED, reason=QueryReason.STORE_UNAVAILABLE)
        except BaseException:
            await self._give_up(attempt, UnknownReason.CANCELLED)
            raise
        if admission.repeated:
            return Paid(status=QueryStatus.REFUSED, reason=QueryReason.RESERVATION_REUSED)
        return None

    async def _spend(self, order: Order, attempt: Attempt) -> Paid:
        failed = UnknownReason.CANCELLED
        code: str = failed
        try:
            with anyio.fail_after(self._left_s(order)):
                body = await self._send(order, attempt)
                answer = _read(body, order, attempt)
                settled = await self._worker.run(
                    lambda: settle(self._ledger, attempt, answer.usage_tokens)
                )
        except _UnprovableError as unprovable:
            failed, code = unprovable.reason, unprovable.code
        except TimeoutError:
            failed = code = UnknownReason.TIMEOUT
        except ProviderError as error:
            failed, code = UnknownReason.PROVIDER_ERROR, error.reason
        except RefusedError:
            failed = code = UnknownReason.LEASE_LOST
        except Exception:  # noqa: BLE001  # a store or an adapter that fails keeps the charge
            failed = code = UnknownReason.FAILURE
        except BaseException:
            await self._give_up(attempt, UnknownReason.CANCELLED)
            raise
        else:
            return Paid(
                status=QueryStatus.PREPARED,
                reason=QueryReason.PREPARED,
                reservation_id=attempt.reservation_id,
                charged_quanta=settled.charged_quanta,
                vectors=answer.vectors,
            )
        await self._give_up(attempt, failed)
        return Paid(
            status=QueryStatus.UNKNOWN,
            reason=code,
            reservation_id=attempt.reservation_id,
            charged_quanta=attempt.complete_charge,
        )

    async def _send(self, order: Order, attempt: Attempt) -> bytes:
        """Send, with a look at admission, context and lease right before and each second."""
        obstacle = await self._worker.run(order.obstacle)
        if obstacle is not None:
            raise _UnprovableError(UnknownReason.WITHDRAWN, obstacle)
        # Somebody may have ended the lease while this process was suspended.
        if not await self._worker.run(lambda: is_pending(self._ledger, attempt)):
            raise _UnprovableError(UnknownReason.LEASE_LOST, UnknownReason.LEASE_LOST)

        async def check() -> str | None:
            if self._lease_left_s(attempt) <= 0:
                return UnknownReason.LEASE_LOST
            return await self._worker.run(order.obstacle)

        async def ask() -> bytes:
            left_s = min(self._left_s(order), self._lease_left_s(attempt))
            if left_s <= 0:
                raise _UnprovableError(UnknownReason.LEASE_LOST, UnknownReason.LEASE_LOST)
            return await self._provider.request(order.texts, timeout_s=left_s)

        try:
            return await watched(ask, check, interval_s=CHECK_INTERVAL_S)
        except StoppedError as stopped:
            lost = stopped.code == UnknownReason.LEASE_LOST
            reason = UnknownReason.LEASE_LOST if lost else UnknownReason.WITHDRAWN
            raise _UnprovableError(reason, stopped.code) from None

    async def _give_up(self, attempt: Attempt, reason: UnknownReason) -> None:
        """Mark the reservation unknown, within three seconds; else the lease does it later."""
        attempt.abandon()
        with anyio.move_on_after(CLEANUP_S, shield=True):
            try:
                await self._worker.run(lambda: mark_unknown(self._ledger, attempt, reason))
            except RemembrancerError:
                return

    def _left_s(self, order: Order) -> float:
        return max(0.0, DEADLINE_S - (self._clock.monotonic() - order.began_s))

    def _lease_left_s(self, attempt: Attempt) -> float:
        return LEASE_S - (self._clock.monotonic() - attempt.lease_began_s)


class _UnprovableError(Exception):
    """Ends the spending of a reservation; never leaves this module."""

    def __init__(self, reason: UnknownReason, code: str) -> None:
        super().__init__(code)
        self.reason = reason
        self.code = code


def _read(body: bytes, order: Order, attempt: Attempt) -> ProviderAnswer:
    space = order.configuration.embedding_tuple
    answer = read_answer(
        body,
        AnswerExpected(
            inputs=len(order.texts),
            dimensions=space.dimensions,
            model=space.model,
            usage_tokens_max=order.configuration.pricing.tokens_bound(attempt.input_bytes),
        ),
    )
    if isinstance(answer, UnusableAnswer):
        raise _UnprovableError(UnknownReason.UNUSABLE_ANSWER, answer.fault)
    return answer
