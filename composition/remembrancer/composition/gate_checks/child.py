"""A process that a check starts and may kill: ``python -m ...gate_checks.child``.

It reads one line of JSON, then works on the check's scratch store with the production wiring.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
from typing_extensions import override

from remembrancer.application.ports.ledger_repository import LedgerRepository
from remembrancer.composition.gate_checks.counting_provider import CountingProvider
from remembrancer.composition.gate_checks.rehearsal import TENANT, Rehearsal, asked, query
from remembrancer.composition.preparation import Admission, Preparation
from remembrancer.composition.settings import Settings
from remembrancer.domain.release import AdmittedConfiguration

COMMITTED = "committed"
READY = "ready"
HOLD_S = 0.02
"""For how long a raced request stays out, so that the others meet it."""


class HaltingAdmission(Admission):
    """Stands still for ever once a reservation is committed: between commit and send."""

    def __init__(self, admission: Admission, ledger: LedgerRepository, owner: str) -> None:
        self._admission = admission
        self._ledger = ledger
        self._owner = owner

    @override
    def admitted(self) -> AdmittedConfiguration:
        if any(day.pending for day in self._ledger.days(TENANT, self._owner)):
            _say(COMMITTED)
            threading.Event().wait()
        return self._admission.admitted()

    @override
    def withdraw(self) -> None:
        self._admission.withdraw()


def reserve_and_halt(rehearsal: Rehearsal, order: dict[str, Any]) -> None:
    """Reserve one query, say so, and wait to be killed; whatever is sent leaves a mark."""
    owner = order["owner"]
    provider = CountingProvider(rehearsal.configuration)
    provider.arrived = _marking(Path(order["marks"]), owner)
    with rehearsal.store(order["store"]) as store:
        halting = HaltingAdmission(rehearsal.admission(), store.ledger, owner)
        preparation = rehearsal.preparation(store, provider, admission=halting)
        asked(preparation, owner, query(owner, "Which rule binds this release?"))


def race(rehearsal: Rehearsal, order: dict[str, Any]) -> None:
    """Let threads ask at once, round by round, each round when the check says so."""
    provider = CountingProvider(rehearsal.configuration)

    async def slow(texts: Sequence[str]) -> bytes:
        await anyio.sleep(HOLD_S)
        return await provider.greedy(texts)

    provider.behaviour = slow
    questions = [
        f"Which rule binds process {order['number']}, thread {number:02d}?"
        for number in range(order["threads"])
    ]
    with rehearsal.store(order["store"]) as store:
        preparation = rehearsal.preparation(store, provider)
        for owner in order["owners"]:
            provider.arrived = _marking(Path(order["marks"]), owner)
            _say(json.dumps(_round(preparation, owner, questions)))


def _round(preparation: Preparation, owner: str, questions: Sequence[str]) -> list[str]:
    """Ask all questions at the same moment; return the reasons."""
    together = threading.Barrier(len(questions) + 1)
    reasons: list[str] = []

    def ask(question: str) -> None:
        together.wait()
        report = asked(preparation, owner, query(owner, question))
        reasons.extend(outcome.reason for outcome in report.outcomes)

    threads = [threading.Thread(target=ask, args=(question,)) for question in questions]
    for thread in threads:
        thread.start()
    _say(READY)
    sys.stdin.readline()
    together.wait()
    for thread in threads:
        thread.join()
    return reasons


def _marking(marks: Path, owner: str) -> Callable[[Sequence[str]], None]:
    def mark(_: Sequence[str]) -> None:
        handle = os.open(marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{owner}\n".encode())
        os.close(handle)

    return mark


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def main() -> None:
    """Do what the first line of standard input says."""
    order = json.loads(sys.stdin.readline())
    rehearsal = Rehearsal.of(Settings.parse(order["settings"]), Path(order["folder"]))
    {"halt": reserve_and_halt, "race": race}[order["what"]](rehearsal, order)


if __name__ == "__main__":
    main()
