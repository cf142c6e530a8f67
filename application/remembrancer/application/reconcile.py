"""Use case: an operator lowers an unknown charge, with evidence (design 4.2).

Never automatic, never below what the evidence states, and on the day of admission.  The ledger
records the digest of the evidence and who vouches for it.
"""

from uuid import UUID

from remembrancer.application.ports.ledger_repository import LedgerRepository
from remembrancer.domain.parsed import parsed_name
from remembrancer.domain.reconciliation import reconciliation_evidence
from remembrancer.domain.reservation import Reservation


class Reconcile:
    """Decides on one reservation, under its owner's lock."""

    def __init__(self, *, ledger: LedgerRepository) -> None:
        self._ledger = ledger

    def __call__(
        self,
        reservation_id: UUID,
        *,
        tenant: str,
        owner: str,
        charged_quanta: int,
        document: bytes,
        by: str,
    ) -> Reservation:
        """Lower the charge to ``charged_quanta``; the same again records nothing.

        Args:
            reservation_id: The reservation, of (tenant, owner).
            tenant: Whose installation.
            owner: Whose ledger.
            charged_quanta: The new charge; at least what the document states, less than it was.
            document: A file as :mod:`remembrancer.domain.reconciliation` defines it.
            by: Who vouches for the document.

        Raises:
            InvalidInputError: the document can't be read as one, or is about another reservation.
            ReservationNotUnknownError: absent, pending, settled, or reconciled otherwise.
            ChargeNotLoweredError: not lower than it was, or lower than the document states.
            StoreError: see :meth:`LedgerRepository.decide`.
        """
        evidence = reconciliation_evidence(document, reservation_id=reservation_id, by=by)
        return self._ledger.decide(
            parsed_name(tenant, field="tenant"),
            parsed_name(owner, field="owner"),
            lambda held: held.ledger.reconcile(
                reservation_id,
                charged_quanta=charged_quanta,
                evidence=evidence,
                earlier=held.find(reservation_id),
                at=held.now,
            ),
            about=reservation_id,
        )
