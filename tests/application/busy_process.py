"""A process that uses one memory file from many threads, until it is done or killed.

Run as ``python -m tests.application.busy_process FILE SEED THREADS STEPS``; each step is one
random call.  A folder in the file's place holds connection strings of PostgreSQL instead.  Every
acknowledged write is told on standard output, one JSON line each, after the call has returned:
what was told must be there, however the process ends.  A batch is told before, too: it must be
there whole or not at all.
"""

import json
import random
import sys
import threading
from pathlib import Path
from typing import Any

from tests.application.house import a_context, a_query, an_entry, open_house, place_in

from remembrancer.composition.facade import Remembrancer
from remembrancer.domain.identity import EntryId, entry_id_for_key

WORDS = ("invoice", "service", "storage", "ledger", "retries", "backup", "alpha")


class Busy:
    """One thread's work."""

    def __init__(self, memory: Remembrancer, seed: str) -> None:
        self._memory = memory
        self._seed = seed
        self._chance = random.Random(seed)  # noqa: S311 -- reproducible, guards nothing
        self._mine: list[EntryId] = []

    def run(self, steps: int) -> None:
        """Make ``steps`` random calls."""
        for step in range(steps):
            self._step(f"{self._seed}.{step}")

    def _step(self, name: str) -> None:
        chosen = self._chance.random()
        if chosen < 0.3 or not self._mine:
            entries = [
                an_entry(self._text(), idempotency_key=f"{name}.{number}")
                for number in range(self._chance.randrange(1, 8))
            ]
            keys = [str(entry.idempotency_key) for entry in entries]
            tell(batch=[str(entry_id_for_key("acme", "ana", key)) for key in keys])
            ids = self._memory.remember_many(entries)
            self._mine += ids
            tell(remembered=[str(one) for one in ids])
        elif chosen < 0.5:
            entry_id = self._chance.choice(self._mine)
            version = self._memory.correct(
                entry_id, text=self._text(), reason="edited", tenant="acme"
            )
            tell(corrected=str(entry_id), version=version)
        elif chosen < 0.65:
            entry_id = self._mine.pop(self._chance.randrange(len(self._mine)))
            self._memory.erase(entry_id, reason="user_request", tenant="acme")
            tell(erased=str(entry_id))
        elif chosen < 0.8:
            found = self._memory.recall(a_query(self._text(), limit=5), a_context())
            assert len({one.entry_id for one in found.entries}) == len(found.entries)
        else:
            session = f"s{self._chance.randrange(4)}"
            pack = self._memory.build_pack(
                session, name, a_query(self._text(), limit=3), a_context(), token_budget=300
            )
            tell(session=session, stage=name, digest=pack.digest)

    def _text(self) -> str:
        words = [self._chance.choice(WORDS) for _ in range(4)]
        return " ".join(["common", *words, str(self._chance.randrange(10**6))])


_telling = threading.Lock()


def tell(**what: Any) -> None:
    """Say that a write was acknowledged, in one write of one line."""
    with _telling:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Work until every thread is done; fail if one fails."""
    path, seed, threads, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    failed: list[BaseException] = []
    place = place_in(Path(path)) if Path(path).is_dir() else Path(path)
    with open_house(place) as house:
        memory = house.memory

        def work(number: int) -> None:
            try:
                Busy(memory, f"{seed}.{number}").run(steps)
            except BaseException as error:
                failed.append(error)
                raise

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
