"""What a gate's reasons mean, in words that say what to do; the codes stand beside them."""

from collections.abc import Iterable

from remembrancer.composition.gate_checks.template import demands_on
from remembrancer.domain.gate import GATES, Gate
from remembrancer.domain.release import GateProblem, GateReason

_WORDS = {
    GateReason.NO_CONFIGURATION: "configure a provider first",
    GateReason.NO_EVIDENCE: "{run}",
    GateReason.OTHER_CONFIGURATION: "the evidence is about other settings; {run}",
    GateReason.OTHER_MECHANISM_VERSION: "the evidence is about another release; {run}",
    GateReason.IN_THE_FUTURE: "the evidence is dated later than now; see to the clocks",
    GateReason.MISSING_FIGURE: "the evidence doesn't state it; {run}",
    GateReason.FIGURE_OUT_OF_BOUNDS: "must be {bounds}",
}


def in_words(gate: Gate, problems: Iterable[GateProblem]) -> str:
    """Return each problem's code, the figure it is about, and what it means."""
    return ", ".join(f"{problem}: {_words(gate, problem)}" for problem in problems)


def _words(gate: Gate, problem: GateProblem) -> str:
    run = "run `remembrancer gates run`"
    if GATES[gate].from_outside:
        run = f"see `remembrancer gates template {gate.value}`"
    return _WORDS[problem.reason].format(run=run, bounds=_bounds(gate, problem.figure))


def _bounds(gate: Gate, figure: str | None) -> str:
    [words] = [one for one in demands_on(gate) if one.split(" ", 1)[0] == figure] or [""]
    return words.partition(" ")[2]
