"""What happens while a request is out, and how its reservation stands afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio
from tests.application.house import a_context, a_query
from tests.application.laboratory import Laboratory

from remembrancer.application.prepare_queries import PreparationReport
from remembrancer.domain.recall import RecallContext
from remembrancer.domain.reservation import ReservationState, UnknownReason


def reasons(report: PreparationReport) -> list[tuple[str, str]]:
    return [(outcome.status.value, outcome.reason) for outcome in report.outcomes]


def state(lab: Laboratory) -> tuple[ReservationState, UnknownReason | None, bool]:
    """Return how the only reservation stands, and whether its charge is complete."""
    one = lab.reservation
    return one.state, one.unknown_reason, one.charged_quanta == one.reserved_quanta


def finds(lab: Laboratory, context: RecallContext | None = None) -> bool:
    return lab.prepared.lookup(a_query(), context or a_context()) is not None


async def never(_: Sequence[str]) -> bytes:
    await anyio.sleep_forever()
    raise AssertionError


@dataclass
class Meanwhile:
    """Something that happens while the request is out."""

    lab: Laboratory
    at_s: float
    deed: Callable[[], object]
    answered_s: float | None = field(default=None, init=False)

    async def __call__(self) -> PreparationReport:
        reports: list[PreparationReport] = []

        async def prepare() -> None:
            reports.append(await self.lab.prepared_by(a_query()))
            self.answered_s = self.lab.clock.monotonic()

        async with anyio.create_task_group() as group:
            group.start_soon(prepare)
            await anyio.sleep(self.at_s)
            self.deed()
        return reports[0]


def meanwhile(
    lab: Laboratory, at_s: float, deed: Callable[[], object]
) -> tuple[PreparationReport, float]:
    """Prepare, do something at a time, and return the report and when it came."""
    work = Meanwhile(lab, at_s, deed)
    report = lab.run(work)
    assert work.answered_s is not None
    return report, work.answered_s
