"""One real process beside a provider on this machine, and what came of its questions."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from tests.application.house import a_query
from tests.application.real_process import RealProcess, loopback_configuration, open_process

from remembrancer.contracts.loopback_provider import Behaviour, LoopbackProvider
from remembrancer.domain.reservation import Reservation, ReservationState


@contextmanager
def process(
    folder: Path, *behaviours: Behaviour, **changes: Any
) -> Generator[tuple[RealProcess, LoopbackProvider]]:
    with LoopbackProvider(*behaviours) as server:
        configuration = loopback_configuration(server.url, **changes)
        with open_process(folder / "memory.db", server.url, configuration) as one:
            yield one, server


def outcome(one: RealProcess, *questions: str) -> list[tuple[str, str]]:
    queries = [a_query(question) for question in questions or ("invoice",)]
    report = anyio.run(one.prepare, queries)
    return [(each.status.value, each.reason) for each in report.outcomes]


def complete(reservation: Reservation) -> bool:
    return (
        reservation.state is ReservationState.UNKNOWN
        and reservation.charged_quanta == reservation.reserved_quanta
    )
