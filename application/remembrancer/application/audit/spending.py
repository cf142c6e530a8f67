"""What an owner's ledger must keep to (seed BSQ; design 4.2); :mod:`.reservations` checks it."""

from typing import Final

from remembrancer.application.audit.finding import Invariant

BEGINNING = Invariant(
    name="reservation-first",
    sentence="Whatever is settled, given up or reconciled was reserved before, by a committed "
    "admission of its own; an id is admitted once.",
    source="seed BSQ; design 4.2, rules 2 to 4",
)
ONE_PENDING = Invariant(
    name="one-pending-query",
    sentence="At every position an owner has at most one pending query reservation.",
    source="seed BSQ; design 4.2, rule 1",
)
EXPIRY_FIRST = Invariant(
    name="expired-becomes-unknown-first",
    sentence="Before an admission or a reconciliation every reservation whose lease has run out "
    "has become unknown.",
    source="seed BSQ; design 4.2, rule 1",
)
CEILINGS = Invariant(
    name="within-ceilings",
    sentence="Money and requests of the UTC day, pending and unknown included, stay within the "
    "ceilings recorded at each admission.",
    source="seed BSQ; design 4.2, rules 1 and 5",
)
TOTALS = Invariant(
    name="totals-add-up",
    sentence="The totals that an admission records are those of the events before it.",
    source="design 4.2",
)
LEASE = Invariant(
    name="lease-and-day",
    sentence="A lease and a query's deadline have the mechanism's length; a reservation keeps the "
    "UTC day of its admission; indexing events have neither kind nor deadline.",
    source="seed BSQ; design 4.2, rules 3, 6 and 7",
)
SETTLEMENT = Invariant(
    name="settlement-within-reservation",
    sentence="A reservation is settled once, while it is pending and its lease runs, by usage of "
    "at least one token, at a charge of 1 to what was reserved.",
    source="seed BSQ; design 4.2, rules 3 and 4",
)
UNKNOWN = Invariant(
    name="unknown-keeps-charge",
    sentence="A reservation becomes unknown once, from pending, for a known reason, and keeps its "
    "complete charge; nothing settles it afterwards.",
    source="seed BSQ; design 4.2, rule 4",
)
RECONCILED = Invariant(
    name="reconciled-with-evidence",
    sentence="Only an unknown charge is reconciled, once, to less than it was and no less than "
    "the evidence states.",
    source="design 4.2; adr/0010",
)
INVARIANTS: Final = (
    *(BEGINNING, ONE_PENDING, EXPIRY_FIRST, CEILINGS, TOTALS, LEASE, SETTLEMENT, UNKNOWN),
    RECONCILED,
)
