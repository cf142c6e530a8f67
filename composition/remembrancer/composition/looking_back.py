"""The part of the facade that tells what was recorded, and takes it elsewhere.

What is here loads its parts when it is called: a memory at work needs none of them.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from remembrancer.composition.arguments import entry_id_of, instance
from remembrancer.composition.twin import async_twin
from remembrancer.domain.sensitivity import Sensitivity

if TYPE_CHECKING:
    from remembrancer.application.explain import Explanation
    from remembrancer.application.explain_reservation import ReservationExplained
    from remembrancer.application.export import Exported
    from remembrancer.application.history import EntryHistory
    from remembrancer.application.remember import Progress
    from remembrancer.application.restore import Restored
    from remembrancer.application.timeline import Timeline
    from remembrancer.composition.container import Container

PAGE = 100
"""Events of a timeline by default."""


class LookingBack:
    """Why it was so, what happened, and all of it as a file."""

    # -- Looking: nothing is written ---------------------------------------

    def explain(self, session: str, stage: str, *, tenant: str) -> "Explanation":
        """Tell what a stage got and why, what was left out, and what has changed since.

        Raises:
            UnknownSelectionError: nothing was selected for the stage in this tenant.
        """
        return self._parts().explain()(session, stage, tenant=tenant)

    def explain_reservation(
        self, reservation_id: UUID, *, tenant: str, owner: str
    ) -> "ReservationExplained":
        """Tell the life of a reservation, its cost, and what it was for.

        Raises:
            NoSuchReservationError: this owner's ledger never admitted it.
        """
        return self._parts().explain_reservation()(
            instance(reservation_id, UUID, field="reservation_id"), tenant=tenant, owner=owner
        )

    def history(  # an entry, whose, and who reads
        self,
        entry_id: UUID | str,
        *,
        tenant: str,
        owner: str | None = None,
        principal: str | None = None,
        scopes: Sequence[str] | None = None,
        read_ceiling: Sensitivity | None = None,
    ) -> "EntryHistory":
        """Tell the versions of an entry, its corrections and its erasure.

        Texts are shown to a reader, who is named by ``principal``, ``scopes`` and
        ``read_ceiling`` together; without one there are none.

        Raises:
            UnknownEntryError: there never was such an entry, or it is another's.
            InvalidInputError: the reader is named in part only.
        """
        from remembrancer.application.replay import Reader  # noqa: PLC0415  # see the module

        given = {"principal": principal, "scopes": scopes, "read_ceiling": read_ceiling}
        named = {name: value for name, value in given.items() if value is not None}
        reader = Reader.parse({"tenant": tenant, **named}) if named else None
        return self._parts().history()(
            entry_id_of(entry_id), tenant=tenant, owner=owner, reader=reader
        )

    def timeline(
        self,
        *,
        tenant: str,
        owner: str | None = None,
        session: str | None = None,
        after: int = 0,
        limit: int = PAGE,
        newest: bool = False,
    ) -> "Timeline":
        """Tell what happened to an owner or in a session, oldest first, a page at a time.

        ``after`` is where an earlier page had ended (``next_after``); ``newest`` gives the last
        events instead of the first.

        Raises:
            InvalidInputError: neither is named, or a bound is broken.
        """
        return self._parts().timeline()(
            tenant=tenant, owner=owner, session=session, after=after, limit=limit, newest=newest
        )

    # -- Taking it elsewhere -----------------------------------------------

    def export(
        self,
        to: str | Path,
        *,
        tenant: str | None = None,
        owner: str | None = None,
        stream: UUID | None = None,
        originals: bool | None = None,
        progress: "Progress | None" = None,
    ) -> "Exported":
        """Write everything, or what one tenant, owner or stream has, to a new file.

        The file is for its owner's eyes only; a name that ends in ``.gz`` packs it.
        ``originals`` says whether texts, salts, the host's items and sessions' keys go with the
        events; left out, they go with everything, and with no part.

        Raises:
            InvalidInputError: the file is there already, or nothing was recorded for the part.
            MalformedRecordError: an event isn't what was recorded; audit the store.
            StoreFullError: no room; no file is left behind.
        """
        from remembrancer.application.export import ExportRequest  # noqa: PLC0415  # as above
        from remembrancer.composition.export_file import created  # noqa: PLC0415  # as above

        request = ExportRequest.parse(
            {"tenant": tenant, "owner": owner, "stream": stream, "originals": originals}
        )
        with created(Path(to)) as write:
            return self._parts().export()(request, write, progress=progress)

    def restore(self, source: str | Path, *, progress: "Progress | None" = None) -> "Restored":
        """Restore an export into this memory, which must be empty; all or nothing.

        Afterwards recall goes by words; :meth:`reindex` makes the vectors, which aren't
        exported.

        Raises:
            StoreNotEmptyError: something is here already.
            UnreadableExportError: the file is no export, or one of a newer release.
            DamagedExportError: it isn't (any more) what was written; nothing was restored.
        """
        from remembrancer.composition.export_file import lines_of  # noqa: PLC0415  # as above

        return self._parts().restore()(partial(lines_of, Path(source)), progress=progress)

    aexplain = async_twin(explain)
    aexplain_reservation = async_twin(explain_reservation)
    ahistory = async_twin(history)
    atimeline = async_twin(timeline)
    aexport = async_twin(export)
    arestore = async_twin(restore)

    def _parts(self) -> "Container":
        raise NotImplementedError
