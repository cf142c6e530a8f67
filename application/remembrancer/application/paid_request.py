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
    is_pending,
    mark_unknown,
    reserve,
    settle,
)
from remembrancer.application.watched import CHECK_FAILED, Stopped, watched
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
from remembrancer.domain.reservation import (
    Reservation,
    ReservationAnswer,
    ReservationKind,
    ReservationState,
    UnknownReason,
)
from remembrancer.domain.spend_errors import (
    OverMoneyCeilingError,
    OverRequestCeilingError,
    QueryPendingError,
    ReservationReusedError,
    SpendRefusedError,
)
from remembrancer.domain.vector import Vector

_REFUSALS: dict[type[RemembrancerError], QueryReason] = {
    QueryPendingError: QueryReason.QUERY_PENDING,
    OverRequestCeilingError: QueryReason.OVER_REQUEST_CEILING,
    OverMoneyCeilingError: QueryReason.OVER_MONEY_CEILING,
    ReservationReusedError: QueryReason.RESERVATION_REUSED,
}

_REASONS: dict[str, UnknownReason] = {
    UnknownReason.LEASE_LOST: UnknownReason.LEASE_LOST,
    UnknownReason.TIMEOUT: UnknownReason.TIMEOUT,
    CHECK_FAILED: UnknownReason.FAILURE,
}
"""What the ledger records for a code; every other one says that admission or context is gone."""

_INTERRUPTIONS_MAX = 16
"""Cancellations that giving up withstands; one more, and the lease does it."""

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
    """``prepared``, ``refused`` (nothing was sent), ``unknown`` (it may have been), or ``dropped``
    (settled, but too late to be used)."""
    reason: str
    reservation_id: UUID | None = None
    """Of the reservation that was made, or that may have been."""
    charged_quanta: int = 0
    """What it counts for; the complete charge where the store doesn't say."""
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
        try:
            attempt = self._attempt(order)
        except Exception:  # noqa: BLE001  # nothing was begun
            return Paid(status=QueryStatus.REFUSED, reason=UnknownReason.FAILURE)
        refused = await self._reserve(order, attempt)
        return refused or await self._spend(order, attempt)

    def _attempt(self, order: Order) -> Attempt:
        return Attempt(
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

    async def _reserve(self, order: Order, attempt: Attempt) -> Paid | None:
        """Reserve; return why that failed, if it did."""
        failed, code = UnknownReason.FAILURE, QueryReason.STORE_UNAVAILABLE.value
        try:
            with anyio.fail_after(self._left_s(order)):
                admission = await self._worker.run(lambda: self._reserved(attempt))
        except _UnreadyError as unready:
            return Paid(status=QueryStatus.REFUSED, reason=unready.code)
        except RefusedError as refusal:
            reason = _REFUSALS.get(type(refusal), QueryReason.STORE_UNAVAILABLE)
            return Paid(status=QueryStatus.REFUSED, reason=reason)
        except TimeoutError:
            failed = UnknownReason.TIMEOUT
            code = failed.value
        except Exception:  # noqa: BLE001, S110  # whatever a store raises: nothing will be sent
            pass
        except BaseException:
            await self._give_up(attempt, UnknownReason.CANCELLED)
            raise
        else:
            if admission is None or admission.repeated:
                return Paid(status=QueryStatus.REFUSED, reason=QueryReason.RESERVATION_REUSED)
            return None
        # The commit's outcome may be unknown: if the reservation is there, it ends here.
        ended = await self._give_up(attempt, failed)
        return Paid(
            status=QueryStatus.REFUSED,
            reason=code,
            reservation_id=attempt.reservation_id if ended.charged_quanta else None,
            charged_quanta=ended.charged_quanta,
        )

    def _reserved(self, attempt: Attempt) -> ReservationAnswer | None:
        """Reserve, if the provider could send at all; blocking."""
        code = self._provider.unready()
        if code is not None:
            raise _UnreadyError(code)
        return reserve(self._ledger, attempt)

    async def _spend(self, order: Order, attempt: Attempt) -> Paid:
        failed = UnknownReason.FAILURE
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
        except SpendRefusedError:
            failed = code = UnknownReason.LEASE_LOST
        except Exception:  # noqa: BLE001, S110  # a store or an adapter that fails keeps the charge
            pass
        except BaseException as interruption:  # noqa: BLE001  # raised again
            await self._give_up(attempt, UnknownReason.CANCELLED)
            # Without the frames below: they have the texts in variables, which some reports print.
            raise interruption.with_traceback(None)  # noqa: B904  # it is the same one
        else:
            return Paid(
                status=QueryStatus.PREPARED,
                reason=QueryReason.PREPARED,
                reservation_id=attempt.reservation_id,
                charged_quanta=settled.charged_quanta,
                vectors=answer.vectors,
            )
        ended = await self._give_up(attempt, failed)
        return Paid(
            status=QueryStatus.DROPPED if ended.is_settled else QueryStatus.UNKNOWN,
            reason=code,
            reservation_id=attempt.reservation_id,
            charged_quanta=ended.charged_quanta or attempt.complete_charge,
        )

    async def _send(self, order: Order, attempt: Attempt) -> bytes:
        """Send, with a look at admission, context and lease right before and while it is out."""

        async def check() -> str | None:
            if self._lease_left_s(attempt) <= 0:
                return UnknownReason.LEASE_LOST
            return await self._worker.run(lambda: self._hindrance(order, attempt))

        async def ask() -> bytes:
            # Once more and with nothing in between: the process may have been suspended.
            left_s = min(self._left_s(order), self._lease_left_s(attempt))
            if left_s <= 0:
                raise _UnprovableError(UnknownReason.TIMEOUT)
            return await self._provider.request(order.texts, timeout_s=left_s)

        code = await check()
        if code is not None:
            raise _UnprovableError(code)
        body = await watched(ask, check, interval_s=CHECK_INTERVAL_S)
        if isinstance(body, Stopped):
            raise _UnprovableError(body.code)
        return body

    def _hindrance(self, order: Order, attempt: Attempt) -> str | None:
        """Say why the request may not be out; blocking."""
        obstacle = order.obstacle()
        if obstacle is not None:
            return obstacle
        # Somebody else may have ended the lease.
        return None if is_pending(self._ledger, attempt) else UnknownReason.LEASE_LOST

    async def _give_up(self, attempt: Attempt, reason: UnknownReason) -> "_Ended":
        """Mark the reservation unknown, within three seconds; else the lease does it later."""
        attempt.abandon()
        # As long as the store doesn't say otherwise, all of it counts.
        ended = _Ended(charged_quanta=attempt.complete_charge)
        interrupted: BaseException | None = None
        with anyio.move_on_after(CLEANUP_S, shield=True) as scope:
            for _ in range(_INTERRUPTIONS_MAX):
                try:
                    known = await self._worker.run(
                        lambda: mark_unknown(self._ledger, attempt, reason)
                    )
                except anyio.get_cancelled_exc_class() as cancelled:
                    if scope.cancel_called:
                        raise
                    # A second cancel of asyncio's own goes through shields, and may have come
                    # before the call had begun.  Marking again changes nothing.
                    interrupted = cancelled
                    continue
                except Exception:  # noqa: BLE001, S110  # the lease will end it
                    pass
                else:
                    ended = _Ended.of(known)
                break
        if interrupted is not None:
            raise interrupted
        return ended

    def _left_s(self, order: Order) -> float:
        return max(0.0, DEADLINE_S - (self._clock.monotonic() - order.began_s))

    def _lease_left_s(self, attempt: Attempt) -> float:
        return LEASE_S - (self._clock.monotonic() - attempt.lease_began_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """How an attempt that was given up stands in the ledger."""

    charged_quanta: int
    """0 where nothing was reserved."""
    is_settled: bool = False
    """The settlement had been committed, although nobody was told."""

    @classmethod
    def of(cls, known: Reservation | None) -> "_Ended":
        if known is None:
            return cls(charged_quanta=0)
        settled = known.state is ReservationState.SETTLED
        return cls(charged_quanta=known.charged_quanta, is_settled=settled)


class _UnreadyError(Exception):
    """Ends an attempt before anything was reserved; never leaves this module."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _UnprovableError(Exception):
    """Ends the spending of a reservation; never leaves this module."""

    def __init__(self, code: str, reason: UnknownReason | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.reason = reason or _REASONS.get(code, UnknownReason.WITHDRAWN)


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
        raise _UnprovableError(answer.fault, UnknownReason.UNUSABLE_ANSWER)
    return answer
