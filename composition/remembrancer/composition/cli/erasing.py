"""Commands that destroy: ``erase``, ``erase-session``, ``erase-owner``."""

from typing import Annotated

import typer

from remembrancer.application.erase import Erasure
from remembrancer.composition.cli.options import (
    AsJson,
    Config,
    Db,
    Opened,
    Owner,
    Tenant,
    given,
    opened,
)
from remembrancer.composition.diagnosis import CARRY_OVER, waits_elsewhere
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.identity import parse_entry_id

ErasureReason = Annotated[
    str,
    typer.Option(
        "--reason",
        help="A code such as user_request is kept in the log for ever; words are not kept at all.",
    ),
]


_PENDING = {
    False: "old pages wait for another reader to finish, or for room on the disk. "
    "Run `remembrancer doctor` later to see that they are gone.",
    True: "dead rows lie in the server's files until its owner runs "
    "`remembrancer maintain clear`.",
}


def erase(
    entry_id: Annotated[str, typer.Argument(metavar="ENTRY", help="The entry's id.")],
    reason: ErasureReason,
    tenant: Tenant = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Destroy an entry's text in all its versions; the log keeps that it was.

    Exit status 1 if it is erased, and pending: something of it still lies in files.
    """
    with opened(db, config, as_json=as_json) as session:
        erasure = session.memory.erase(
            parse_entry_id(entry_id), reason=reason, tenant=session.whose(tenant)
        )
        state = "is erased" if erasure.erased else "was erased before"
        _show(session, erasure, {"entry_id": entry_id}, f"{entry_id} {state}")
    _end(erasure)


def erase_session(
    session_id: Annotated[str, typer.Argument(metavar="SESSION", help="The session's name.")],
    tenant: Tenant = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Destroy what a session's packs held beside the entries: items and query vectors.

    No event tells of it.  Exit status 1 if it is pending, as with `erase`.
    """
    with opened(db, config, as_json=as_json) as session:
        erasure = session.memory.erase_session(
            session_id, tenant=given(tenant, session.identity.tenant)
        )
        told = f"{session_id}: the content of {counted(erasure.erased, 'selection')} is erased"
        if not erasure.erased:
            told = f"{session_id}: nothing was kept for that session (of that tenant)"
        _show(session, erasure, {"session": session_id}, told)
    _end(erasure)


def erase_owner(
    reason: ErasureReason,
    yes: Annotated[
        bool, typer.Option("--yes", help="Really: nothing brings an owner's memory back.")
    ] = False,
    tenant: Tenant = None,
    owner: Owner = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Destroy all entries of an owner, and the content of all its sessions.

    Exit status 1 if it is pending, as with `erase`.
    """
    with opened(db, config, as_json=as_json) as session:
        whose = given(tenant, session.identity.tenant), given(owner, session.identity.owner)
        name = "/".join(whose)
        if not yes:
            raise InvalidInputError(
                field="--yes", problem=f"is needed to erase all that {name} has; nothing was done"
            )
        with session.out.progress("erasing") as progress:
            erasure = session.memory.erase_owner(
                tenant=whose[0], owner=whose[1], reason=reason, progress=progress
            )
        data = {"tenant": whose[0], "owner": whose[1]}
        all_of_them = counted(erasure.erased, "entry", "entries")
        _show(session, erasure, data, f"{name}: {all_of_them} and all sessions erased")
    _end(erasure)


def _show(session: Opened, erasure: Erasure, about: dict[str, str], told: str) -> None:
    if session.out.as_json:
        session.out.data({**about, "erased": erasure.erased, "pending": erasure.pending})
    elif erasure.pending:
        session.out.line(f"{told}; {_what_waits(session)}")
    else:
        session.out.line(f"{told}; nothing of it is left in the files.")


def _what_waits(session: Opened) -> str:
    if waits_elsewhere(session.memory, session.settings):
        return f"vectors wait to be destroyed where they are kept: {CARRY_OVER}."
    return _PENDING[session.settings.store.backend == "postgres"]


def _end(erasure: Erasure) -> None:
    if erasure.pending:
        raise typer.Exit(1)
