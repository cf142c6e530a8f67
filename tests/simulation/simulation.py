"""One run of a story in a simulated world, and how a failing one is made short."""

import hashlib
import random
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import anyio
import anyio.lowlevel
import apsw
from tests.adapters.failing_disk import failing_disk
from tests.simulation import vocabulary
from tests.simulation.deeds import Deeds, undertaking_for_calm
from tests.simulation.host import Host
from tests.simulation.preparing import Preparing
from tests.simulation.story import Deed, Step, story
from tests.simulation.trouble import CURRENT, Undertaking
from tests.simulation.virtual_time import chance_of, seeded_scheduler
from tests.simulation.world import World

from remembrancer.application import remote_indexing

AUDIT_EVERY = 10
"""Steps from one audit by the product's own auditor to the next; the books look at every one."""
LENGTH = 60
"""Steps of a story, unless somebody says otherwise."""
CUTS_MAX = 60
"""How many shorter stories are tried, so that shortening ends."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # a folder of its own is made in it
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Run:
    """What a story came to."""

    seed: int
    steps: tuple[Step, ...]
    violations: tuple[str, ...]
    """Which rules were broken; empty where all held."""
    after: int
    """How many steps had begun when the first of them was."""
    digest: str
    """Over every line of the record and every stored event, byte for byte."""
    seen: Counter[str] = field(compare=False)
    lines: tuple[str, ...] = field(compare=False, repr=False)


def simulate(seed: int, *, on_file: bool = False, steps: Sequence[Step] | None = None) -> Run:
    """Run a story, the seed's unless steps are given, to its end or until a rule breaks."""
    told = tuple(story(seed, LENGTH) if steps is None else steps)
    with ExitStack() as stack:
        folder = disk = None
        if on_file:
            # In memory where there is such a place: what the disk keeps is for other tests.
            place = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=place)))
            disk = stack.enter_context(failing_disk())
        world = World(seed, folder=folder, disk=disk)
        stack.callback(world.close)
        stack.enter_context(seeded_scheduler(seed))
        stack.enter_context(_blocking_in(world))
        telling = _Telling(world, told)
        anyio.run(telling.run, backend="trio", backend_options={"clock": world.time.loop})
        record = hashlib.sha256("\n".join(world.lines).encode())
        record.update(world.soundness.digest.digest())
        return Run(
            seed=seed,
            steps=told,
            violations=tuple(world.violations),
            after=telling.begun,
            digest=record.hexdigest(),
            seen=world.seen,
            lines=tuple(world.lines),
        )


def shortened(run: Run, *, on_file: bool = False) -> Run:
    """Return the same failure by fewer steps: a prefix first, then single steps cut out."""
    rule = run.violations[0].partition(":")[0]

    def fails(steps: Sequence[Step]) -> Run | None:
        again = simulate(run.seed, on_file=on_file, steps=steps)
        broken = {one.partition(":")[0] for one in again.violations}
        return again if rule in broken else None

    best = fails(run.steps[: run.after]) or run
    left = CUTS_MAX
    size = max(1, len(best.steps) // 2)
    while left > 0:
        start = 0
        while start < len(best.steps) and left > 0:
            left -= 1
            shorter = fails(best.steps[:start] + best.steps[start + size :])
            if shorter is None:
                start += size
            else:
                best = shorter
        if size == 1:
            break
        size //= 2
    return best


class _Telling:
    """Tells a story step by step, and looks at the world after each."""

    def __init__(self, world: World, steps: Sequence[Step]) -> None:
        self._world = world
        self._steps = steps
        self._deeds = Deeds(world)
        self._preparing = Preparing(world)
        self._trouble = ExitStack()
        self._trouble_ends = 0
        self.begun = 0

    async def run(self) -> None:
        world = self._world
        async with anyio.create_task_group() as group:
            for step in self._steps:
                await anyio.sleep(
                    world.until_midnight(step.gap_s) if step.to_midnight else step.gap_s
                )
                self.begun += 1
                world.end_ghosts()
                if self.begun > self._trouble_ends:
                    self._end_trouble()
                world.note(f"step {step}")
                self._begin(step, group)
                await anyio.lowlevel.checkpoint()
                world.soundness.check(audit=self.begun % AUDIT_EVERY == 0)
                if world.violations:
                    group.cancel_scope.cancel()
                    break
            self._end_trouble()
        if not world.violations:
            await self._calm()

    def _begin(self, step: Step, group: Any) -> None:
        world = self._world
        chance = chance_of("deed", step.seed)
        host = world.hosts[step.host]
        if host.dead:
            host = world.restart(host)
        world.seen[f"deed {step.deed}"] += 1
        name = str(step.number)
        match step.deed:
            case Deed.PREPARE:
                group.start_soon(self._prepare, host, chance, step)
            case Deed.RECONFIGURE:
                group.start_soon(self._reconfigure, chance)
            case Deed.WITHDRAW:
                group.start_soon(self._withdraw, chance)
            case Deed.KILL:
                host.kill()
                world.disturb(host)
            case Deed.FREEZE:
                host.freeze(chance.choice((0.7, 2.0, 9.0, 16.0, 40.0)))
            case Deed.SET_CLOCK:
                world.set_store_clock(chance)
            case Deed.DISK:
                self._begin_trouble(chance)
            case _:
                self._deeds.do(step.deed, host, chance, name, troubled=step.troubled)

    async def _prepare(self, host: Host, chance: random.Random, step: Step) -> None:
        await self._preparing.prepare(host, chance, str(step.number), troubled=step.troubled)

    # -- What happens to everybody -----------------------------------------

    def _begin_trouble(self, chance: random.Random) -> None:
        """Let the disk be full, or the store be locked, for some steps.  Real ones, on a file."""
        world = self._world
        self._end_trouble()
        self._trouble_ends = self.begun + chance.choice((1, 2, 4))
        world.disturb()
        if world.disk is None:
            return
        world.store_is_troubled = True
        if chance.random() < 0.5:
            world.note("    the disk is full")
            world.seen["disk full"] += 1
            world.disk.fail_after(chance.choice((0, 1, 3, 9)), apsw.FullError)
        else:
            world.note("    the store is locked")
            world.seen["locked"] += 1
            self._trouble.enter_context(world.locked())

    def _end_trouble(self) -> None:
        world = self._world
        if world.disk is not None:
            world.disk.recover()
        self._trouble.close()
        world.store_is_troubled = False

    async def _reconfigure(self, chance: random.Random) -> None:
        """Change price, ceilings or model: hosts notice within half a second, and begin anew."""
        self._world.admit(vocabulary.admitted_by(chance))
        await self._noticed(chance)

    async def _withdraw(self, chance: random.Random) -> None:
        """Take the admission (or the key) away for a while."""
        world = self._world
        if chance.random() < 0.3:
            world.key_is_gone, world.key_went_s = True, world.time.elapsed()
            world.note("    the key is gone")
            world.disturb()
            await anyio.sleep(chance.choice((1.0, 20.0)))
            world.key_is_gone = False
            world.disturb()
            return
        world.admit(None)
        await self._noticed(chance)
        await anyio.sleep(chance.choice((0.0, 3.0, 30.0)))
        if world.admitted is None:
            world.admit(world.last_admitted)
        await self._noticed(chance)

    async def _noticed(self, chance: random.Random) -> None:
        """Do what each host's watch does, and begin hosts of the new configuration."""
        world = self._world
        world.note(f"    admitted: {world.admitted and world.admitted.digest[:8]}")
        await anyio.sleep(chance.uniform(0.0, 0.5))
        for host in list(world.hosts):
            if host.dead or host.admitted == world.admitted:
                continue
            token = CURRENT.set(None)
            host.withdraw()
            CURRENT.reset(token)
        await anyio.sleep(chance.choice((0.2, 2.0, 6.0)))
        for host in list(world.hosts):
            if world.admitted is not None and host.lookup.is_withdrawn:
                world.restart(host)

    # -- The end -----------------------------------------------------------

    async def _calm(self) -> None:
        """When all trouble is over, everything works again, and nothing is left behind."""
        world = self._world
        world.note("calm")
        world.admit(world.last_admitted)
        world.key_is_gone = False
        world.end_ghosts(all_of_them=True)
        for host in list(world.hosts):
            world.restart(host)
        # A lease ends on the store's clock: one that was set back reaches its end later.
        world.store_clock.off = world.furthest_off
        await anyio.sleep(20.0)
        world.calm = True
        for number, (tenant, owner) in enumerate(vocabulary.OWNERS):
            host = world.hosts[number % len(world.hosts)]
            await self._one_more(host, tenant, owner)
        for number, key in enumerate(world.packs):
            undertaking = undertaking_for_calm(world.hosts[0], f"replay.{number} replay")
            token = CURRENT.set(undertaking)
            self._deeds.replay(world.hosts[0], undertaking, key)
            CURRENT.reset(token)
        world.soundness.check(audit=True)
        self._check_reports()

    async def _one_more(self, host: Host, tenant: str, owner: str) -> None:
        world = self._world
        before = world.books.day(tenant, owner, world.store_day())
        undertaking = Undertaking(
            name=f"calm.{tenant}.{owner} prepare", host=host, chance=chance_of("calm", tenant)
        )
        chance = chance_of("calm", world.seed, tenant, owner)
        query = vocabulary.query_by(chance, tenant, owner).model_copy(
            update={"question": f"What is new, {tenant} {owner}?", "owner": owner}
        )
        context = vocabulary.context_by(chance_of("plain"), "cli")
        await self._preparing.carry_out(undertaking, tenant, owner, (query,), context)
        report = undertaking.report
        reason = report.outcomes[0].reason if report else "nothing"
        world.seen[f"calm {reason}"] += 1
        if reason not in {"prepared", "kind", "over_request_ceiling", "over_money_ceiling"}:
            world.complain("works_again", f"{tenant} {owner}: {reason}, {before}")
        world.soundness.catch_up()
        left = [one for _, one in world.books.pending(tenant, owner)]
        if left and reason != "kind":
            world.complain("nothing_left_pending", f"{tenant} {owner}: {left}")

    def _check_reports(self) -> None:
        """No charge came after a report that didn't tell of it."""
        world = self._world
        for one in world.undertaken:
            if one.report is None:
                continue
            known = world.reservations_of(one.reservations)
            charged = sum(entry.charged for entry in known.values())
            if charged > one.report.charged_quanta:
                world.complain("report_of_charges", f"{one.name}: {charged} in the end")


@contextmanager
def _blocking_in(world: World) -> Generator[None]:
    """Let the product's blocking calls wait in virtual time: in a loop of their own.

    In another thread, as a thread has one loop at most; this one waits for it, so that there is
    still one thing that runs.
    """

    def run_blocking(work: Callable[[], Awaitable[_Result]]) -> _Result:
        async def main() -> _Result:
            return await work()

        came: list[Any] = []

        def run() -> None:
            CURRENT.set(undertaking)
            try:
                options = {"clock": clock}
                came.append((anyio.run(main, backend="trio", backend_options=options), None))
            except BaseException as error:  # noqa: BLE001  # raised below, in the caller's thread
                came.append((None, error))

        undertaking = CURRENT.get()
        began_s = world.time.elapsed()
        with world.time.inner_loop() as clock:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        if world.time.elapsed() > began_s:
            world.disturb()  # Everybody else stood still meanwhile.
            world.stood_still_at_s = world.time.elapsed()
        [(result, error)] = came
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]  # what work returned

    with mock.patch.object(remote_indexing, "run_blocking", run_blocking):
        yield
