"""The thread that carries entries to an index kept elsewhere, as long as a memory is open."""

import os
from collections.abc import Callable
from threading import Event, Thread
from typing import Protocol
from weakref import ref

from remembrancer.application.projection import Projected
from remembrancer.domain.errors import RemembrancerError

INTERVAL_S = 1.0
"""How often it looks what other processes have written; what this one writes wakes it."""
BACK_OFF_MAX_S = 30.0
"""The longest it waits after failures in a row, each twice as long as the one before."""
CATCH_UP_S = 5.0
"""The longest that closing a memory waits for what has still to be carried."""


class Carries(Protocol):
    """What it runs; :class:`~remembrancer.application.projection.Projection`."""

    def waits(self) -> bool:
        """Say whether there is anything to carry."""
        ...

    def __call__(self, *, go_on: Callable[[], bool]) -> Projected:
        """Carry, until there is nothing more or ``go_on`` says no."""
        ...


class Carrier:
    """Runs a projection; in forked children too."""

    def __init__(self, projection: Carries, *, monotonic: Callable[[], float]) -> None:
        self._projection = projection
        self._monotonic = monotonic
        self._begin_anew()

    def start(self) -> None:
        """Begin to carry."""
        self._begin()
        if hasattr(os, "register_at_fork"):
            carrier = ref(self)  # What was registered stays so for ever; the carrier must not.
            os.register_at_fork(after_in_child=lambda: _again(carrier()))

    def wake(self) -> None:
        """Say that something was written."""
        self._woken.set()

    def stop(self) -> None:
        """Carry no more, once what waits has been carried or five seconds are over.

        Where nothing was carried lately, as the index doesn't answer, it isn't tried again.
        """
        self._until = self._monotonic() + CATCH_UP_S
        self._stopped.set()
        self._woken.set()
        if self._thread is not None:
            # A request may be out for longer; its thread then ends without us.
            self._thread.join(CATCH_UP_S + INTERVAL_S)

    def restart(self) -> None:
        """Begin again, in a child that has none of its parent's threads."""
        if self._thread is not None and not self._stopped.is_set():
            self._begin_anew()
            self._begin()

    def _begin_anew(self) -> None:
        self._stopped, self._woken = Event(), Event()
        self._until = 0.0
        self._thread: Thread | None = None

    def _begin(self) -> None:
        self._thread = Thread(target=self._run, name="remembrancer-projection", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        wait_s = 0.0
        while not self._stopped.is_set():
            self._woken.wait(wait_s)
            self._woken.clear()
            if self._carried(self._goes_on):
                wait_s = INTERVAL_S
            else:
                wait_s = min(2 * max(wait_s, INTERVAL_S), BACK_OFF_MAX_S)
                # Being woken by each write doesn't make it answer sooner.
                self._stopped.wait(wait_s)
        if wait_s <= INTERVAL_S:
            self._carried(lambda: self._monotonic() < self._until)

    def _goes_on(self) -> bool:
        return not self._stopped.is_set()

    def _carried(self, go_on: Callable[[], bool]) -> bool:
        try:
            if self._projection.waits():
                self._projection(go_on=go_on)
        except RemembrancerError:
            return False  # `status` and `project` say why.
        return True


def _again(carrier: Carrier | None) -> None:
    if carrier is not None:
        carrier.restart()
