"""Use case: what owners have spent, by UTC day."""

import re
from collections.abc import Sequence
from datetime import date

from remembrancer.application.ports.ledger_repository import LedgerRepository, SpendOfDay
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.money import UtcDay
from remembrancer.domain.parsed import parsed_name

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
"""The one of many spellings of ISO 8601 that days are stored in."""


class ReadSpend:
    """Adds up the receipts; changes nothing, not even what has expired."""

    def __init__(self, *, ledger: LedgerRepository) -> None:
        self._ledger = ledger

    def __call__(
        self, *, tenant: str, owner: str | None = None, since: str | None = None
    ) -> Sequence[SpendOfDay]:
        """Return the spend of a tenant's owners (or of one) by (owner, day).

        Raises:
            InvalidInputError: a name breaks its bounds, or ``since`` isn't a day such as
                ``2030-01-31``.
        """
        tenant = parsed_name(tenant, field="tenant")
        owner = None if owner is None else parsed_name(owner, field="owner")
        return self._ledger.days(tenant, owner, since=None if since is None else _day(since))


def _day(since: str) -> UtcDay:
    try:
        if _DAY.fullmatch(since):
            return UtcDay(date.fromisoformat(since).isoformat())
    except (TypeError, ValueError):
        pass  # Not text, or a day that no calendar has.
    raise InvalidInputError(field="since", problem="must be a day such as 2030-01-31")
