import ast
import inspect
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain import money
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.money import QUANTA_MAX, Pricing, as_utc, quanta_up, usd_text, utc_day

ADA = Pricing(usd_per_million_tokens="0.02", input_overhead_tokens=2, request_overhead_tokens=3)
prices = st.decimals(min_value=0, max_value=1000, places=6).map(lambda price: f"{price:f}")
lengths = st.lists(st.integers(min_value=1, max_value=5000), min_size=1, max_size=4)


def test_no_float_is_written_in_the_module() -> None:
    tree = ast.parse(inspect.getsource(money))

    floats = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.Constant) and isinstance(node.value, float))
        or (isinstance(node, ast.Name) and node.id == "float")
        or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div))
    ]
    # The one division is of a Fraction, which stays exact.
    assert [ast.unparse(node) for node in floats] == [
        "Fraction(self.usd_per_million_tokens) / 1000000"
    ]


@pytest.mark.parametrize(
    ("usd", "quanta"),
    [
        (0, 0),
        (1, 1_000_000),
        (Decimal("0.000001"), 1),
        (Decimal("0.0000001"), 1),
        (Decimal("0.0000010000000000000000000001"), 2),
        (Fraction(1, 3), 333_334),
        (Decimal("99999999.999999"), QUANTA_MAX),
    ],
)
def test_amounts_round_up_to_whole_quanta(usd: Decimal | Fraction | int, quanta: int) -> None:
    assert quanta_up(usd) == quanta


@pytest.mark.parametrize(
    "usd",
    [0.1, True, "1", None, Decimal("NaN"), Decimal("Infinity"), -1, Decimal("-0.0000001"), 10**8],
)
def test_what_is_no_exact_amount_is_refused(usd: Any) -> None:
    with pytest.raises(InvalidInputError):
        quanta_up(usd)


def test_ten_thousand_requests_of_a_third_of_a_quantum_cost_ten_thousand_quanta() -> None:
    pricing = Pricing(usd_per_million_tokens="0.1", input_overhead_tokens=0)

    charged = [pricing.settled_charge(3, [64]) for _ in range(10_000)]

    assert sum(charged) == 10_000
    assert {type(one) for one in charged} == {int}


def test_complete_charge_counts_a_token_a_byte_and_the_overheads() -> None:
    assert ADA.tokens_bound([100, 50]) == 100 + 50 + 2 * 2 + 3
    assert ADA.complete_charge([100, 50]) == 4  # 157 tokens at 0.02 quanta: 3.14


@given(price=prices, input_bytes=lengths, data=st.data())
def test_a_settled_charge_lies_between_one_and_the_complete(
    price: str, input_bytes: list[int], data: st.DataObject
) -> None:
    pricing = Pricing(usd_per_million_tokens=price, input_overhead_tokens=8)
    usage = data.draw(st.integers(min_value=1, max_value=pricing.tokens_bound(input_bytes)))

    charged = pricing.settled_charge(usage, input_bytes)

    assert 1 <= charged <= pricing.complete_charge(input_bytes)
    assert charged >= Fraction(price) * usage


@pytest.mark.parametrize("usage", [0, -5, 160, True, "7", None, 7.0, float("nan")])
def test_usage_that_is_no_count_within_the_bound_is_refused(usage: Any) -> None:
    with pytest.raises(InvalidInputError):
        ADA.settled_charge(usage, [100, 50])


@pytest.mark.parametrize("input_bytes", [[], [0], [5, 0], [-1], [10**9 + 1]])
def test_a_request_without_text_or_without_end_has_no_charge(input_bytes: list[int]) -> None:
    with pytest.raises(InvalidInputError):
        ADA.complete_charge(input_bytes)


@pytest.mark.parametrize("spelling", ["0.02", "0.020", "0.0200000"])
def test_one_price_has_one_digest_however_it_is_spelt(spelling: str) -> None:
    pricing = Pricing(
        usd_per_million_tokens=spelling, input_overhead_tokens=2, request_overhead_tokens=3
    )

    assert pricing.digest == ADA.digest


@pytest.mark.parametrize(
    "price", ["", "-1", "+1", "1e-6", "NaN", "inf", ".5", "5.", "01", "1_0", "0.0000000000001", 1]
)
def test_a_price_that_is_no_plain_decimal_is_refused(price: Any) -> None:
    with pytest.raises(InvalidInputError):
        Pricing(usd_per_million_tokens=price, input_overhead_tokens=0)


@pytest.mark.parametrize("change", ["usd_per_million_tokens", "input_overhead_tokens"])
def test_another_price_has_another_digest(change: str) -> None:
    value: Any = "0.03" if change == "usd_per_million_tokens" else 9

    assert ADA.model_copy(update={change: value}).digest != ADA.digest


@pytest.mark.parametrize("hours", [9, -8, 14], ids=["Tokyo", "Los Angeles", "Kiritimati"])
def test_the_day_is_utc_wherever_the_host_is(hours: int) -> None:
    here = timezone(timedelta(hours=hours))
    before = datetime(2030, 6, 30, 23, 59, 59, 900_000, tzinfo=UTC)

    assert utc_day(before.astimezone(here)) == "2030-06-30"
    assert utc_day((before + timedelta(seconds=0.6)).astimezone(here)) == "2030-07-01"


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        as_utc(datetime(2030, 1, 1))  # noqa: DTZ001  # the point of the test


def test_quanta_are_shown_as_exact_usd() -> None:
    assert [usd_text(quanta) for quanta in (0, 1, 1_000_000, 12_345_678)] == [
        "0.000000",
        "0.000001",
        "1.000000",
        "12.345678",
    ]
