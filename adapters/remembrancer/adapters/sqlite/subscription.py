"""Following the log as it grows."""

import threading
from collections.abc import Sequence

from eventsourcing.persistence import ApplicationRecorder, ListenNotifySubscription
from typing_extensions import override

POLL_S = 0.1
"""How often a subscription looks for events of other processes."""


class SqliteSubscription(ListenNotifySubscription[ApplicationRecorder]):
    """Follows the log: this process's commits at once, others' within :data:`POLL_S`."""

    def __init__(
        self,
        *,
        recorder: ApplicationRecorder,
        gt: int | None,
        topics: Sequence[str],
        listening: set[threading.Event],
    ) -> None:
        """Follow ``recorder``, which sets every event in ``listening`` after a commit."""
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._listening = listening
        listening.add(self._has_been_notified)

    @override
    def stop(self) -> None:
        super().stop()
        self._listening.discard(self._has_been_notified)

    @override
    def _loop_on_pull(self) -> None:
        try:
            while not self._has_been_stopped:
                self._pull()
                self._has_been_notified.wait(POLL_S)
        except BaseException as error:  # noqa: BLE001 - raised again where the caller iterates
            self._thread_error = self._thread_error or error
            self.stop()
