"""Use case: an operator makes unknown what has expired, before anybody's next admission does."""

from collections.abc import Mapping

from remembrancer.application.ports.ledger_repository import LedgerRepository
from remembrancer.domain.parsed import parsed_name
from remembrancer.domain.reservation import Reservation


class Expire:
    """Takes one decision for each owner; none waits for another."""

    def __init__(self, *, ledger: LedgerRepository) -> None:
        self._ledger = ledger

    def __call__(
        self, *, tenant: str, owner: str | None = None
    ) -> Mapping[str, tuple[Reservation, ...]]:
        """Turn pending reservations whose lease has run out into unknown, at their whole charge.

        Args:
            tenant: Whose installation.
            owner: Whose ledger; None for every owner of the tenant who has something pending.

        Returns:
            What became unknown, by owner; those of whom nothing did are left out.

        Raises:
            InvalidInputError: a name breaks its bounds.
            StoreError: see :meth:`LedgerRepository.decide`; owners before it are done.
        """
        tenant = parsed_name(tenant, field="tenant")
        owners = [parsed_name(owner, field="owner")] if owner is not None else self._busy(tenant)
        expired = {
            one: self._ledger.decide(tenant, one, lambda held: held.ledger.expire(at=held.now))
            for one in owners
        }
        return {one: found for one, found in expired.items() if found}

    def _busy(self, tenant: str) -> list[str]:
        return sorted({day.owner for day in self._ledger.days(tenant) if day.pending})
