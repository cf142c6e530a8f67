"""Refusals of the reservation ledger and of the cache context.

They stand in the tree of :mod:`remembrancer.domain.errors`, under ``RefusedError``.  Amounts are
quanta, days UTC.  None of them names a question or a text, as no ledger knows one.
"""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from remembrancer.domain.errors import RefusedError, Retry


class SpendRefusedError(RefusedError):
    """The ledger said no; nothing may be sent, and no charge changed."""


class OverMoneyCeilingError(SpendRefusedError):
    """The complete charge doesn't fit what is left of the UTC day's money."""

    retry: ClassVar[Retry] = Retry.LATER

    def __init__(
        self, *, day: str, asked_quanta: int, used_quanta: int, ceiling_quanta: int
    ) -> None:
        super().__init__(
            f"{asked_quanta} quanta asked for, {used_quanta} of {ceiling_quanta} are used on "
            f"{day} (UTC); ask for less, wait for the next day, or admit a higher ceiling"
        )
        self.day = day
        self.asked_quanta = asked_quanta
        self.used_quanta = used_quanta
        self.ceiling_quanta = ceiling_quanta


class OverRequestCeilingError(SpendRefusedError):
    """The UTC day's requests are used up."""

    retry: ClassVar[Retry] = Retry.LATER

    def __init__(self, *, day: str, used_requests: int, ceiling_requests: int) -> None:
        super().__init__(
            f"{used_requests} of {ceiling_requests} requests are used on {day} (UTC); wait for "
            "the next day, or admit a higher ceiling"
        )
        self.day = day
        self.used_requests = used_requests
        self.ceiling_requests = ceiling_requests


class QueryPendingError(SpendRefusedError):
    """Another query reservation of this owner is pending; one at a time."""

    retry: ClassVar[Retry] = Retry.LATER

    def __init__(self, *, reservation_id: UUID, expires_at: datetime) -> None:
        super().__init__(
            f"query reservation {reservation_id} is pending until {expires_at.isoformat()} at the "
            "latest; try again when it has ended"
        )
        self.reservation_id = reservation_id
        self.expires_at = expires_at


class ReservationReusedError(SpendRefusedError):
    """A reservation id stands for one request, once and for all."""

    def __init__(self, reservation_id: UUID) -> None:
        super().__init__(
            f"reservation {reservation_id} stands for another request; draw a new id for this one"
        )
        self.reservation_id = reservation_id


class ReservationNotPendingError(SpendRefusedError):
    """The reservation was never admitted here, or has ended otherwise."""

    def __init__(self, *, reservation_id: UUID, state: str) -> None:
        super().__init__(f"reservation {reservation_id} is {state}, not pending")
        self.reservation_id = reservation_id
        self.state = state
        """As :class:`ReservationState`; ``absent`` if it was never admitted."""


class ReservationUnknownError(SpendRefusedError):
    """Too late to settle: the reservation is unknown, or its lease has run out."""

    def __init__(self, *, reservation_id: UUID, charged_quanta: int) -> None:
        super().__init__(
            f"reservation {reservation_id} can't be settled any more and keeps its "
            f"{charged_quanta} quanta; an operator may reconcile it with evidence"
        )
        self.reservation_id = reservation_id
        self.charged_quanta = charged_quanta


class ChargeNotLoweredError(SpendRefusedError):
    """A settlement can't raise a charge, a reconciliation must lower it; neither is free."""

    def __init__(
        self, *, reservation_id: UUID, asked_quanta: int, charged_quanta: int, least_quanta: int
    ) -> None:
        super().__init__(
            f"reservation {reservation_id} is charged {charged_quanta} quanta and can't become "
            f"{asked_quanta}; the least that is proved is {least_quanta}"
        )
        self.reservation_id = reservation_id
        self.asked_quanta = asked_quanta
        self.charged_quanta = charged_quanta
        self.least_quanta = least_quanta


class ReservationNotUnknownError(SpendRefusedError):
    """Only an unknown charge can be reconciled, and only once."""

    def __init__(self, *, reservation_id: UUID, state: str) -> None:
        super().__init__(f"reservation {reservation_id} is {state}, not unknown")
        self.reservation_id = reservation_id
        self.state = state


class NoSuchReservationError(RefusedError):
    """This owner's ledger never admitted such a reservation."""

    def __init__(self, reservation_id: UUID) -> None:
        super().__init__(
            f"reservation {reservation_id} is unknown here; check the id, the tenant and the owner"
        )
        self.reservation_id = reservation_id


class StaleGenerationError(RefusedError):
    """The cache context has changed, or was withdrawn, since the work began."""

    retry: ClassVar[Retry] = Retry.RELOAD

    def __init__(self, *, begun: int, current: int) -> None:
        super().__init__(
            f"the work began in cache generation {begun}, now it is {current}; prepare again"
        )
        self.begun = begun
        self.current = current
