"""Commands that tell what was recorded: ``explain``, ``history``, ``timeline``.

They write nothing, and work on a file that can't be written.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from remembrancer.composition.cli.looking_back_tables import (
    explanation_data,
    history_data,
    reservation_data,
    show_explanation,
    show_history,
    show_reservation,
    show_timeline,
    timeline_data,
)
from remembrancer.composition.cli.options import (
    AsJson,
    Ceiling,
    Config,
    Db,
    Owner,
    Principal,
    Scopes,
    Tenant,
    given,
    opened,
    sensitivity_of,
)
from remembrancer.composition.looking_back import PAGE
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.identity import parse_entry_id
from remembrancer.domain.spend_errors import NoSuchReservationError

if TYPE_CHECKING:
    from remembrancer.application.explain import Explanation
    from remembrancer.application.history import EntryHistory

_FINDINGS = frozenset({"missing", "altered"})
"""What nobody may do to a text: exit status 1."""


def explain(
    session_or_reservation: Annotated[
        str, typer.Argument(metavar="SESSION", help="A session, or a reservation's id alone.")
    ],
    stage: Annotated[
        str | None, typer.Argument(metavar="STAGE", help="The session's stage.")
    ] = None,
    tenant: Tenant = None,
    owner: Owner = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Tell why a stage got what it got, or what became of a reservation.

    Of a stage: what was selected, from which candidates, with which ranks and scores; what was
    left out and why; what has changed since; and its packs.  Exit status 1 if a text is gone or
    altered without an event that says so.
    """
    with opened(db, config, as_json=as_json, read_only=True) as session:
        who = given(tenant, session.identity.tenant)
        if stage is None:
            try:
                reservation_id = parse_entry_id(session_or_reservation)
            except InvalidInputError:
                raise InvalidInputError(
                    field="STAGE", problem="must follow the session; only a reservation has none"
                ) from None
            try:
                reservation = session.memory.explain_reservation(
                    reservation_id, tenant=who, owner=given(owner, session.identity.owner)
                )
            except NoSuchReservationError as error:
                error.add_note("an entry's life is told by `remembrancer history`")
                raise
            if as_json:
                session.out.data(reservation_data(reservation))
            else:
                show_reservation(session.out, reservation)
            return
        found = session.memory.explain(session_or_reservation, stage, tenant=who)
        if as_json:
            session.out.data(explanation_data(found))
        else:
            show_explanation(session.out, found)
    if _has_findings(found):
        raise typer.Exit(1)


def history(
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="The entry's id.")],
    text: Annotated[
        bool, typer.Option("--text/--no-text", help="Show texts, as far as they may be read.")
    ] = True,
    tenant: Tenant = None,
    owner: Owner = None,
    principal: Principal = None,
    scope: Scopes = None,
    ceiling: Ceiling = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Tell an entry's versions, corrections and erasure.

    Exit status 1 if a text is gone or altered without an event that says so.
    """
    with opened(db, config, as_json=as_json, read_only=True) as session:
        who = session.identity
        found = session.memory.history(
            entry,
            tenant=given(tenant, who.tenant),
            owner=owner,
            principal=given(principal, who.principal) if text else None,
            scopes=tuple(scope or (who.scope,)) if text else None,
            read_ceiling=(
                sensitivity_of(ceiling, who.read_ceiling, option="--ceiling") if text else None
            ),
        )
        if as_json:
            session.out.data(history_data(found))
        else:
            show_history(session.out, found)
            kept = [one for one in found.versions if one.text_state.value == "kept"]
            if text and not all(one.permitted for one in kept):
                session.out.note(
                    "Something isn't permitted to this reader: give the scopes with --scope, and "
                    "how far to read with --ceiling."
                )
    if _has_wrong_texts(found):
        raise typer.Exit(1)


def timeline(
    session_id: Annotated[
        str | None, typer.Option("--session", help="Of this session, instead of an owner.")
    ] = None,
    after: Annotated[
        int, typer.Option("--after", help="Begin behind this position, where a page had ended.")
    ] = 0,
    limit: Annotated[int, typer.Option("--limit", help="How many events at most.")] = PAGE,
    newest: Annotated[
        bool, typer.Option("--newest", help="The last events instead of the first.")
    ] = False,
    tenant: Tenant = None,
    owner: Owner = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Tell what happened to an owner, or in a session, event by event."""
    with opened(db, config, as_json=as_json, read_only=True) as session:
        who = session.identity
        whose = owner if session_id is not None else given(owner, who.owner)
        found = session.memory.timeline(
            tenant=given(tenant, who.tenant),
            owner=whose,
            session=session_id,
            after=after,
            limit=limit,
            newest=newest,
        )
        if as_json:
            session.out.data(timeline_data(found))
        else:
            show_timeline(
                session.out, found, of=session_id or f"{given(tenant, who.tenant)}/{whose}"
            )


def _has_findings(found: "Explanation") -> bool:
    changes = [one.changes for one in found.entries] + [one.changes for one in found.left_out]
    return any(change.kind.value in _FINDINGS for of_one in changes for change in of_one)


def _has_wrong_texts(found: "EntryHistory") -> bool:
    return any(one.text_state.value in _FINDINGS for one in found.versions)
