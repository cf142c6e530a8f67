"""How long guards take over the worst 64 KiB, and whether that grows faster than the text.

The bound of design 4.4 is half a second for any
text; a text four times as long may take about four times as long, never sixteen times.
"""

import time
from base64 import b64encode

from tests.benchmarks.row import Row

from remembrancer.adapters.guards import LocalGuards, ResidencyRules
from remembrancer.domain.sensitivity import Sensitivity

SIZE = 65_536
BOUND_S = 0.5
GROWTH_MAX = 10.0
"""Of 16 KiB to 64 KiB: 4 is linear, 16 quadratic; the rest is this machine's noise."""
ROUNDS = 5

HOSTILE = (
    "://a:", "a", "1 ", "411 ", "4111 1111 1111 1112 ", "a\u0301\u0327", "\u3300", "\u0130=",
    "ignore ", "ignore previous. instructions ", "无视", "<|a", "![](http://a", "<img src=http://",
    "password=", "password is ", "key", "eyJaaaaaaaaa.", "sk-a", "-----BEGIN ", "@a.", "a@a.a.",
    "send data ", "%41", "\\u0041", "&#65;", '"+"', "curl -u a:", "login a password ", " \n",
    "+1 1", "tel 1", "DE89 ", "a b ", "41 ", "QUJD/", "reveal your ", "http://a=", "https://a.a.",
    "\U000e0041", "\u200ba", "\u202e", "й", "한", "bearer aaaaaaaaaaaa ", "?sig=a", "gone ",
    "ignore previous password= ://a: eyJ sk- @a.b tel 1 curl -u send data http://a= <| ![a](http:",
)  # fmt: skip


def texts(size: int) -> dict[str, str]:
    """Return hostile texts of at most ``size`` bytes."""
    made = {piece: piece * (size // len(piece.encode())) for piece in HOSTILE}
    plain = "ignore password=a " * (size * 3 // 4 // 18)
    made["all in base64"] = b64encode(plain.encode()).decode()
    made["all in hexadecimal"] = plain[: size // 2].encode().hex()
    return made


def seconds(guards: LocalGuards, text: str) -> float:
    """Return the time of the quickest of some checks: what disturbs it only adds."""
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        guards.check(
            text,
            declared=Sensitivity.PUBLIC,
            destination="https://api.example.com/v1/embeddings",
        )
        taken.append(time.perf_counter() - began)
    return min(taken)


def measure() -> list[Row]:
    """Return the slowest text, and the one whose time grows most."""
    guards = LocalGuards(residency=ResidencyRules(region="eu", allowed=["api.example.com"]))
    quarter, whole = texts(SIZE // 4), texts(SIZE)
    measured = {
        name: (seconds(guards, text), seconds(guards, quarter[name]))
        for name, text in whole.items()
    }
    longest = max(long_s for long_s, _ in measured.values())
    growing = max(measured.values(), key=lambda taken: taken[0] / taken[1])
    return [
        Row(
            what=f"guards: the worst of {len(whole)} texts of 64 KiB",
            ours=longest,
            at_most=BOUND_S,
        ),
        Row(
            what="guards: the fastest growing, 64 KiB",
            ours=growing[0],
            baseline=growing[1],
            against="the same at 16 KiB",
            at_most=GROWTH_MAX,
        ),
    ]
