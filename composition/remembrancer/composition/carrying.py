"""The part of the facade that carries entries to an index kept elsewhere."""

import time
from typing import TYPE_CHECKING

from remembrancer.application.remember import Progress
from remembrancer.composition.spending import Spending
from remembrancer.composition.twin import async_twin

if TYPE_CHECKING:
    from remembrancer.application.projection import Projected

BUSY_INTERVAL_S = 0.05


class Carrying(Spending):
    """What is carried over, and how far."""

    def project(self, *, progress: Progress | None = None) -> "Projected":
        """Carry all that waits to the index that is kept elsewhere, now; return how it stands.

        A thread does so by itself while the memory is open; this is for whoever wants to see it
        done, and so waits for whoever carries at present.  Where the store keeps its vectors
        itself there is nothing to carry.

        Raises:
            StoreUnavailableError: the index doesn't answer; what was acknowledged is recorded.
        """
        projection = self._parts().projection()
        wanted = projection.standing().end
        stands = projection(progress=progress)
        while stands.busy and stands.index is not None and stands.index.position < wanted:
            time.sleep(BUSY_INTERVAL_S)  # Its claim ends by itself, should it have died.
            stands = projection(progress=progress)
        return stands

    aproject = async_twin(project)

    def _left(self) -> None:
        """Wake who carries: something was written."""
        carrier = self._parts().carrier()
        if carrier is not None:
            carrier.wake()
