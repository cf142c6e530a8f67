"""How long guards take over the worst 64 KiB, and whether that grows faster than the text.

Run with ``python tests/benchmarks/bench_guards.py``.  The bound of design 4.4 is half a second for any
text; a text four times as long may take about four times as long, never sixteen times.
"""

import sys
import time
from base64 import b64encode

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


def main() -> int:
    """Print the slowest texts; exit 1 where a bound is broken."""
    guards = LocalGuards(residency=ResidencyRules(region="eu", allowed=["api.example.com"]))
    quarter, whole = texts(SIZE // 4), texts(SIZE)
    measured = sorted(
        (
            (seconds(guards, text), seconds(guards, quarter[name]), name)
            for name, text in whole.items()
        ),
        reverse=True,
    )
    broken = [
        name
        for long_s, short_s, name in measured
        if long_s > BOUND_S or long_s > GROWTH_MAX * short_s
    ]
    for long_s, short_s, name in measured[:8]:
        print(f"{long_s * 1000:7.1f} ms  x {long_s / short_s:4.1f}  {name!r}")  # noqa: T201  # the table
    print(f"slowest {measured[0][0]:.3f} s of {BOUND_S} s; broken: {broken}")  # noqa: T201  # the table
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
