"""Following the log as it grows."""

from collections.abc import Sequence

from eventsourcing.persistence import ApplicationRecorder, ListenNotifySubscription
from typing_extensions import override

from remembrancer.adapters.postgres.database import Database
from remembrancer.domain.errors import StoreForbiddenError, StoreUnavailableError

POLL_S = 1.0
"""How often a subscription looks for events that nobody told it of."""


class PostgresSubscription(ListenNotifySubscription[ApplicationRecorder]):
    """Follows the log: told by the server, and looking by itself from time to time.

    It sees what the thread saw that subscribed.
    """

    def __init__(
        self,
        *,
        recorder: ApplicationRecorder,
        database: Database,
        gt: int | None,
        topics: Sequence[str],
    ) -> None:
        """Follow ``recorder``, behind position ``gt``."""
        self._database = database
        self._whose = database.whose  # Before the thread begins.
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        database.bell.follow(self._has_been_notified)

    @override
    def stop(self) -> None:
        super().stop()
        self._database.bell.leave(self._has_been_notified)

    @override
    def _loop_on_pull(self) -> None:
        try:
            with self._database.acting_as(self._whose):
                while not self._has_been_stopped:
                    self._pull_if_available()
                    self._has_been_notified.wait(POLL_S)
        except BaseException as error:  # noqa: BLE001 - raised again where the caller iterates
            self._thread_error = self._thread_error or error
            self.stop()

    def _pull_if_available(self) -> None:
        """Read on, or later: nothing is lost by a server that is away for a while."""
        try:
            self._pull()
        except StoreUnavailableError as error:
            if isinstance(error, StoreForbiddenError):
                raise
