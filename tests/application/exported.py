"""A life worth exporting, and exports as lists of lines that a test can alter."""

import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.application.house import (
    House,
    a_context,
    a_query,
    an_entry,
    open_house,
    postgres_place,
    replay_of,
)

from remembrancer.application.cache_contexts import CacheContexts, Surface
from remembrancer.application.export import Exported, ExportRequest
from remembrancer.application.ports.archive import WHOLE, ArchivedEvent
from remembrancer.application.restore import Restored
from remembrancer.contracts.clock import NOON, FixedClock
from remembrancer.contracts.spending import (
    FIRST_ID,
    QUERY,
    SECOND_ID,
    THIRD_ID,
    Spender,
)
from remembrancer.domain import ContextItem, ContextPack, RecallKind
from remembrancer.domain.canonical_json import canonical_json

if TYPE_CHECKING:
    from remembrancer.composition.settings import StoreSettings

KINDS = ("memory", "sqlite", "postgres")
"""Stores that exports go between; a further kind is opened in :func:`store_of`."""
RULES = ContextItem(layer=0, id="rules", text="Answer from the sources.", required=True)
MINUTE = timedelta(minutes=1)


@contextmanager
def store_of(kind: str, folder: Path) -> Generator[House]:
    """Open an empty memory of this kind."""
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        place: Path | StoreSettings | None = folder / "memory.db"
        if kind == "memory":
            place = None
        elif kind == "postgres":
            place = stack.enter_context(postgres_place(folder))
        yield stack.enter_context(open_house(place, clock=FixedClock(NOON)))


def live(house: House) -> None:
    """Let everything happen that is recorded: to two owners, and to one of another tenant."""
    memory, clock = house.memory, house.clock
    kept, corrected, erased = memory.remember_many(
        [an_entry("invoice one", subjects=["ana"], metadata={"path": "a.md"}),
         an_entry("invoice two"), an_entry("invoice three")]
    )  # fmt: skip
    memory.remember(an_entry("invoice of ben's", owner="ben"))
    memory.remember(an_entry("invoice abroad", tenant="acme-corp"))
    clock.advance(MINUTE)
    memory.correct(corrected, text="invoice two, corrected", reason="Ana told me")
    for session in ("s", "gone"):
        memory.build_pack(
            session, "plan", a_query(), a_context(), items=[RULES], token_budget=2_000
        )
    memory.build_pack("s", "plan", a_query(), a_context(), token_budget=2_000)
    memory.erase(erased, reason="requested")
    memory.erase_session("gone", tenant="acme")
    clock.advance(MINUTE)
    memory.correct(kept, scope="project/beta", reason="moved")
    spender = Spender(house.store.ledger)
    contexts = CacheContexts(
        log=house.store.log, transactions=house.store.transactions, clock=clock
    )
    surface = Surface(tenant="acme", owner="ana", surface="ide")
    contexts.bind(surface, context_digest="a" * 64, configuration_digest="0" * 64)
    spender.admit(FIRST_ID, kind=QUERY, charge=10)
    spender.settle(FIRST_ID, charge=3, usage=7)
    contexts.record_prepared(surface, 1, reservation_id=FIRST_ID, vectors=2)
    spender.admit(SECOND_ID, charge=20)
    spender.lose(SECOND_ID)
    spender.reconcile(SECOND_ID, charge=5)
    Spender(house.store.ledger, owner="ben").admit(THIRD_ID, charge=30)
    contexts.withdraw(surface, reason="evidence_revoked")


@dataclass(slots=True)
class Lines:
    """An export's lines, read again and again, altered or not."""

    data: list[bytes]
    told: Exported | None = None

    @contextmanager
    def open(self) -> Generator[Iterator[bytes]]:
        """Open it at its beginning."""
        yield iter(self.data)

    def parsed(self) -> list[dict[str, Any]]:
        """Return what the lines say."""
        return [json.loads(line) for line in self.data]

    def altered(self, change: Callable[[list[dict[str, Any]]], object]) -> "Lines":
        """Return another export whose lines and last line agree: a forger's, not an accident."""
        said = self.parsed()
        change(said)
        *rest, end = said
        before = [canonical_json(one) + b"\n" for one in rest]
        sha256 = hashlib.sha256(b"".join(before)).hexdigest()
        end |= {"lines": len(before), "sha256": sha256}
        return Lines([*before, canonical_json(end) + b"\n"])


def exported(house: House, **request: Any) -> Lines:
    """Export a memory, or a part of it."""
    lines: list[bytes] = []
    told = house.container.export()(ExportRequest(**request), lines.append)
    return Lines(lines, told)


def restored(house: House, lines: Lines, **options: Any) -> Restored:
    """Restore an export."""
    return house.container.restore()(lines.open, **options)


def recorded(house: House) -> list[ArchivedEvent]:
    """Return every event as it is recorded, but for its position."""
    with house.store.transactions.over_all_tenants(), house.store.transactions.snapshot():
        return [replace(one, position=0) for one in house.store.archive.events(WHOLE)]


def replayed(house: House, number: int) -> ContextPack:
    """Replay a pack of the session that is left."""
    return house.memory.replay("s", "plan", **replay_of(), pack_number=number)


def found_by_words(house: House, *, kind: RecallKind = RecallKind.DELIBERATE) -> Sequence[str]:
    """Return Ana's texts that are about invoices, as keyword search finds them, sorted."""
    as_of = NOON if kind is RecallKind.HISTORICAL else None
    query = a_query("invoice", kind=kind, as_of=as_of, candidate_selection="legacy")
    return sorted(one.text for one in house.memory.recall(query, a_context()).entries)


def words_of(house: House) -> int:
    """Return how many versions the keyword index has, over all tenants."""
    with house.store.transactions.over_all_tenants():
        return house.store.sparse.count()
