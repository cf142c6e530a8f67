"""Amounts of spend, what a request may cost at most, and the day it counts for.

Amounts are whole quanta (0.000001 USD).  Prices are exact decimals and every rounding goes up, so
that sums of charges are never less than the bill (seed BSQ: "settlement rounds up to the existing
database quantum").  There is no float in this module, and none may come in.
"""

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, NewType

from pydantic import AfterValidator, Field

from remembrancer.domain.bounds import QUANTA_PER_USD
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.parsed import Parsed

QUANTA_MAX = 10**14 - 1
"""The widest amount of ``numeric(14,6)``: 99,999,999.999999 USD."""
TOKENS_MAX = 10**9
OVERHEAD_TOKENS_MAX = 10**6

UtcDay = NewType("UtcDay", str)
"""A UTC calendar day as ``YYYY-MM-DD``; days compare as their strings do."""

_PRICE = re.compile(r"(0|[1-9][0-9]{0,6})(\.[0-9]{1,12})?")


def _price(value: str) -> str:
    if not _PRICE.fullmatch(value):
        raise ValueError("must be a plain decimal such as 0.02, with at most 12 places")
    # One price, one spelling: 0.020 and 0.02 must have the same digest.
    return value.rstrip("0").rstrip(".") if "." in value else value


Quanta = Annotated[int, Field(ge=0, le=QUANTA_MAX)]
"""A whole number of quanta; strict models refuse ``true``, ``"7"`` and 7.0."""

DecimalUsd = Annotated[str, AfterValidator(_price)]
"""An exact amount of USD as a decimal string."""


def as_utc(at: datetime) -> datetime:
    """Return an aware time in UTC.

    Raises:
        InvalidInputError: it is naive, so nobody can say when it is.
    """
    if at.tzinfo is UTC:
        return at
    if at.tzinfo is None or at.utcoffset() is None:
        raise InvalidInputError(field="at", problem="must be an aware time")
    return at.astimezone(UTC)


def utc_day(at: datetime) -> UtcDay:
    """Return the UTC day of an aware time, wherever the host is."""
    return UtcDay(as_utc(at).date().isoformat())


def quanta_up(usd: Decimal | Fraction | int) -> int:
    """Return an exact, non-negative amount of USD in whole quanta, rounded up.

    Raises:
        InvalidInputError: a float, a bool, not finite, negative, or more than can be stored.
    """
    if isinstance(usd, bool) or not isinstance(usd, Decimal | Fraction | int):
        raise InvalidInputError(field="usd", problem="must be a Decimal, Fraction or int")
    if isinstance(usd, Decimal) and not usd.is_finite():
        raise InvalidInputError(field="usd", problem="must be finite")
    quanta = _ceiling(Fraction(usd) * QUANTA_PER_USD)
    if usd < 0 or quanta > QUANTA_MAX:
        raise InvalidInputError(field="usd", problem=f"must be 0 to {QUANTA_MAX} quanta")
    return quanta


def usd_text(quanta: int) -> str:
    """Return ``quanta`` as USD for people to read, such as ``0.000123``."""
    whole, rest = divmod(quanta, QUANTA_PER_USD)
    return f"{whole}.{rest:06d}"


class Pricing(Parsed):
    """What a provider charges for, and by how much an estimate of tokens may be short.

    The overheads cover what a provider adds to a text before it counts (begin and end marks,
    instructions): they belong to the upper bound, not to the price.
    """

    usd_per_million_tokens: DecimalUsd
    input_overhead_tokens: Annotated[int, Field(ge=0, le=OVERHEAD_TOKENS_MAX)]
    request_overhead_tokens: Annotated[int, Field(ge=0, le=OVERHEAD_TOKENS_MAX)] = 0

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(canonical_json(self.model_dump(mode="json"))).hexdigest()

    def tokens_bound(self, input_bytes: Sequence[int]) -> int:
        """Return the most tokens that texts of these UTF-8 lengths can be counted as.

        A token covers at least one byte in every byte-level vocabulary, so one a byte is the top.

        Raises:
            InvalidInputError: no input, an input without a byte, or more than can be counted.
        """
        if not input_bytes or any(length < 1 for length in input_bytes):
            raise InvalidInputError(
                field="input_bytes", problem="must be one or more, each filled"
            )
        bound = (
            sum(input_bytes)
            + len(input_bytes) * self.input_overhead_tokens
            + self.request_overhead_tokens
        )
        if bound > TOKENS_MAX:
            raise InvalidInputError(field="input_bytes", problem=f"exceed {TOKENS_MAX} tokens")
        return bound

    def complete_charge(self, input_bytes: Sequence[int]) -> int:
        """Return the quanta to reserve for one request: nothing it can cost is more.

        Raises:
            InvalidInputError: as :meth:`tokens_bound`, or more than can be stored.
        """
        return self._charge(self.tokens_bound(input_bytes))

    def settled_charge(self, usage_tokens: int, input_bytes: Sequence[int]) -> int:
        """Return the quanta that a validated usage costs; at least 1, never above the complete.

        Raises:
            InvalidInputError: the usage isn't a whole number from 1 to the bound.
        """
        bound = self.tokens_bound(input_bytes)
        if type(usage_tokens) is not int or not 1 <= usage_tokens <= bound:
            raise InvalidInputError(field="usage_tokens", problem=f"must be 1 to {bound}")
        return self._charge(usage_tokens)

    def _charge(self, tokens: int) -> int:
        per_token_usd = Fraction(self.usd_per_million_tokens) / 1_000_000
        return max(1, quanta_up(per_token_usd * tokens))


def _ceiling(amount: Fraction) -> int:
    return -(-amount.numerator // amount.denominator)
