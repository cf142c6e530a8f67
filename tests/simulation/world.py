"""A simulated world: one store, some hosts over it, a provider, and what must be true of it all.

Everything runs in one thread, and every choice comes from the seed: the same seed gives the same
run, to the byte.  What is wrong is put down, not raised: the product catches much of what is
raised inside it.
"""

import random
from collections import Counter
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.adapters.failing_disk import FailingFileSystem
from tests.application.laboratory import SECRET
from tests.simulation import vocabulary
from tests.simulation.books import Books
from tests.simulation.host import Host, is_true_vector
from tests.simulation.provider import Request
from tests.simulation.soundness import Soundness
from tests.simulation.story import HOSTS
from tests.simulation.trouble import CURRENT, Undertaking
from tests.simulation.virtual_time import MachineClock, Time, chance_of

from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.application.cache_contexts import Surface
from remembrancer.composition.settings import StoreSettings
from remembrancer.composition.store import Store, open_store
from remembrancer.domain.eligibility import canonical_query_text
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.release import AdmittedConfiguration
from remembrancer.domain.vector import Vector

if TYPE_CHECKING:
    from remembrancer.domain.identity import EntryId

STOPPED_WITHIN_S = 1.0
"""How long a request may be out after its admission was withdrawn."""
BUSY_TIMEOUT_S = 0.0005
"""Less than a look at the lock takes: a locked store is told at once, without real waiting."""


class World:
    """Store, hosts, clocks, and the books."""

    def __init__(self, seed: int, *, folder: Path | None, disk: FailingFileSystem | None) -> None:
        self.seed = seed
        self.folder = folder
        self.disk = disk
        self.secret = SECRET
        self.time = Time()
        self.store_clock = MachineClock(self.time)
        self.lines: list[str] = []
        self.violations: list[str] = []
        self.seen: Counter[str] = Counter()
        """How often each thing happened: what a run has reached."""
        chance = chance_of("world", seed)
        self.embeds_here = chance.random() < 0.25
        """Whether entries are embedded in the process, instead of by the provider."""
        self.key_is_gone = False
        self.key_went_s = 0.0
        self.calm = False
        """True once nothing goes wrong any more."""
        self.store_is_troubled = False
        self.prepared: list[tuple[RecallQuery, RecallContext]] = []
        """What came into a cache, in any process."""
        self.asked: list[tuple[RecallQuery, RecallContext]] = []
        self.known: list[EntryId] = []
        self.packs: dict[tuple[str, str, str, int], tuple[str, str]] = {}
        """By tenant, session, stage and number: text and digest."""
        self.selections: dict[UUID, list[str]] = {}
        self.undertaken: list[Undertaking] = []
        self.books = Books(self.complain)
        self.admitted: AdmittedConfiguration | None = None
        self.withdrawn_at_s = self.stood_still_at_s = -1e9
        self.withdrawals = 0
        self.clock_set_at_s = -1e9
        self.furthest_off = timedelta(0)
        """The most that the store's clock was ever ahead."""
        self.under_way: list[Undertaking] = []
        self.requests: list[Request] = []
        self._resources = ExitStack()
        self._shared: Store | None = None
        self._lives = [0] * HOSTS
        self.last_admitted = vocabulary.admitted_by(chance)
        self.admit(self.last_admitted)
        self.hosts = [self._begun(number) for number in range(HOSTS)]
        self.soundness = Soundness(self)

    def close(self) -> None:
        """Give everything back."""
        for host in self.hosts:
            host.close()
        self._resources.close()

    # -- What is put down --------------------------------------------------

    def note(self, line: str) -> None:
        """Put a line into the record of the run."""
        self.lines.append(f"{self.time.elapsed():.6f} {line}")

    def complain(self, rule: str, what: str) -> None:
        """Put down that a rule was broken."""
        self.violations.append(f"{rule}: {what}")

    # -- The store ---------------------------------------------------------

    def opened_store(self) -> AbstractContextManager[Store]:
        """Return the store for one process."""
        if self.folder is None:
            if self._shared is None:
                place = StoreSettings(backend="memory")
                self._shared = self._resources.enter_context(self._opened(place))
            return nullcontext(self._shared)
        path = self.folder / "memory.db"
        return self._opened(StoreSettings(path=path, busy_timeout_s=BUSY_TIMEOUT_S))

    @property
    def store(self) -> Store:
        """The store as nobody's faults touch it."""
        if self._shared is None:
            assert self.folder is not None
            path = self.folder / "memory.db"
            self._shared = self._resources.enter_context(self._opened(StoreSettings(path=path)))
        return self._shared

    def _opened(self, place: StoreSettings) -> AbstractContextManager[Store]:
        return open_store(place, clock=self.store_clock, randomness=SystemRandomness())

    # -- Hosts -------------------------------------------------------------

    def _begun(self, number: int) -> Host:
        self._lives[number] += 1
        host = Host(self, number, self._lives[number], self.admitted or self.last_admitted)
        if self.folder is None:  # Processes over one file share its machine's clock.
            skew = chance_of("skew", self.seed, number).choice((0, 0, 3, -40, 7_200, -86_000))
            host.machine.off = timedelta(seconds=skew)
        return host

    def restart(self, host: Host) -> Host:
        """Kill a process, if it still lives, and begin the next in its place."""
        number = self.hosts.index(host)
        host.kill()
        host.close()
        self.disturb(host)
        self.hosts[number] = self._begun(number)
        return self.hosts[number]

    def disturb(self, host: Host | None = None) -> None:
        """Put down that what is under way (of one host) isn't undisturbed any more."""
        for one in self.under_way:
            if host is None or one.host is host:
                one.touched = True

    # -- What happens to everybody -----------------------------------------

    def suspend(self, seconds: float) -> None:
        """Stop the machine for a while."""
        self.note(f"    the machine is suspended for {seconds} s")
        self.seen["suspended"] += 1
        self.disturb()
        self.time.stop_all(seconds)
        self.stood_still_at_s = self.time.elapsed()

    def set_store_clock(self, chance: random.Random) -> None:
        """Set the store's time of day, forward or back."""
        by_s = chance.choice((-90_000, -3_600, -20, -2, 2, 14, 16, 3_600))
        self.note(f"    the store's clock is set by {by_s} s")
        self.seen["clock_back" if by_s < 0 else "clock_forward"] += 1
        self.store_clock.off += timedelta(seconds=by_s)
        self.furthest_off = max(self.furthest_off, self.store_clock.off)
        self.clock_set_at_s = self.time.elapsed()
        self.disturb()

    def admit(self, admitted: AdmittedConfiguration | None) -> None:
        """Admit another configuration, or none."""
        if admitted is not None:
            # Of two that are the same to the digest, the product knows one.
            admitted = self.books.configurations.setdefault(admitted.digest, admitted)
            self.last_admitted = admitted
        if self.admitted is not None and admitted != self.admitted:
            self.withdrawn_at_s = self.time.elapsed()
            self.withdrawals += 1
            self.disturb()
        self.admitted = admitted

    def end_ghosts(self, *, all_of_them: bool = False) -> None:
        """Let abandoned threads come to their ends whose time it is."""
        now_s = self.time.elapsed()
        for host in list(self.hosts):
            due = [one for one in host.ghosts if all_of_them or one[0] <= now_s]
            host.ghosts = [one for one in host.ghosts if one not in due]
            for _, ghost in due:
                ghost()

    def until_midnight(self, before_s: float) -> float:
        """Return the seconds until ``before_s`` before the next midnight of the store's clock."""
        now = self.store_clock.now()
        midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        return max(0.0, (midnight - now).total_seconds() - before_s)

    def store_day(self) -> str:
        """Return the day on which the store would admit now."""
        return self.store_clock.now().strftime("%Y-%m-%d")

    @contextmanager
    def locked(self) -> Generator[None]:
        """Let another process hold the store's lock (a real one)."""
        with self.store.transactions.begin():
            yield

    # -- What is looked at when it happens ---------------------------------

    def sent(self, request: Request, timeout_s: float) -> None:
        """See that a request may leave."""
        self.soundness.catch_up()
        self.requests.append(request)
        self.seen["request"] += 1
        recently = self.time.elapsed() - self.clock_set_at_s < 20.0
        self.books.requested(request, clock_was_set=recently)
        if not 0 < timeout_s <= 10.0:
            self.complain("deadline", f"{request} may take {timeout_s} s")
        for text in request.texts:
            if vocabulary.SECRET_WORD in text or vocabulary.CREDENTIAL in text:
                self.complain("only_what_may_leave", f"{request}")
            if len(text.encode()) > 4_096 and text.startswith("["):
                self.complain("only_what_may_leave", f"{request}: too long")
        undertaking = CURRENT.get()
        assert undertaking is not None
        if undertaking.queries:
            self._check_none_twice(request, undertaking)
        # It is looked at right before; only what happens at that very moment can be missed.
        just_now = (
            self.time.elapsed() <= self.withdrawn_at_s
            and undertaking.withdrawals < self.withdrawals
        )
        if request.host.admitted != self.admitted and not just_now:
            self.complain("admission_before_sending", f"{request}")

    def ended(self, request: Request, undertaking: Undertaking) -> None:
        """See that a request was stopped soon after its admission was gone."""
        request.ended_s = now_s = self.time.elapsed()
        host = request.host
        stood_still_at_s = max(host.frozen_until_s, self.stood_still_at_s)
        undisturbed = not (undertaking.suffered or host.dead)
        if host.admitted == self.admitted or stood_still_at_s >= request.arrived_s:
            return
        out_s = now_s - max(request.arrived_s, self.withdrawn_at_s)
        if undisturbed and out_s > STOPPED_WITHIN_S:
            self.complain("stopped_in_time", f"{request}")

    def _check_none_twice(self, request: Request, undertaking: Undertaking) -> None:
        context = undertaking.context
        assert context is not None
        host = request.host
        # One that is prepared in another task meanwhile may come too late to be noticed.
        fresh = Counter(
            canonical_query_text(one)
            for one in set(undertaking.queries)
            if not host.is_live(one, context) or host.cached[one, context] >= undertaking.began_s
        )
        if not Counter(request.texts) <= fresh:
            self.complain("nothing_twice", f"{request}: {fresh}")

    def inserted(
        self, host: Host, surface: Surface, generation: int, pairs: list[tuple[bytes, Vector]]
    ) -> None:
        """See that vectors may enter a cache."""
        self.soundness.catch_up()
        self.seen["cached"] += len(pairs)
        undertaking = CURRENT.get()
        assert undertaking is not None
        place = f"{undertaking.name} for {surface} {generation}"
        known = self.books.surfaces[surface.tenant, surface.owner, surface.surface]
        own = [id_ for id_ in undertaking.reservations if id_ in known.prepared]
        if [known.prepared[id_] for id_ in own] != [generation]:
            self.complain("cached_after_record", f"{place}: {known}")
        if any(self.books.reservations[id_].state != "settled" for id_ in own):
            self.complain("cached_after_settlement", place)
        context = undertaking.context
        assert context is not None
        by_key = {host.lookup.keys.key(one, context): one for one in undertaking.queries[::-1]}
        for key, vector in pairs:
            query = by_key.get(key)
            if query is None or not is_true_vector(query, vector):
                self.complain("vector_of_its_text", place)
            else:
                host.cached[query, context] = self.time.elapsed()
                self.prepared.append((query, context))

    def looked_up(
        self, host: Host, query: RecallQuery, context: RecallContext, found: Vector
    ) -> None:
        """See that a hit was earned: this query, this context, not too old, still admitted."""
        self.seen["hit"] += 1
        if (query, context) not in host.cached:
            self.complain("hit_of_this_query", f"{host.name}: {query!r} {context!r}")
        elif not host.is_live(query, context):
            self.complain("hit_within_lifetime", f"{host.name}: {query!r}")
        if not is_true_vector(query, found):
            self.complain("vector_of_its_text", f"{host.name}: {query!r}")

    def reservations_of(self, ids: list[UUID]) -> dict[UUID, Any]:
        """Return what the books say of these reservations."""
        self.soundness.catch_up()
        return {id_: self.books.reservations[id_] for id_ in ids if id_ in self.books.reservations}
