"""Commands that spend, or say what was spent.

``prepare``, ``spend``, ``spend expire``, ``spend reconcile``.
"""

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from remembrancer.composition.cli.asked import Asked, context_of
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
    text_of,
)
from remembrancer.composition.cli.output import Output
from remembrancer.composition.cli.questions import Kind, Limit
from remembrancer.composition.cli.words import in_words
from remembrancer.domain.errors import InvalidInputError, NotAdmittedError
from remembrancer.domain.money import usd_text
from remembrancer.domain.recall import RecallKind

if TYPE_CHECKING:
    from remembrancer.application.ports.ledger_repository import SpendOfDay
    from remembrancer.application.prepare_queries import PreparationReport

spend_app = typer.Typer(help="What was spent, and what an operator can correct.")


def prepare(
    questions: Annotated[
        list[str], typer.Argument(metavar="QUESTION", help="At most four; - reads one.")
    ],
    kind: Kind = RecallKind.DELIBERATE,
    limit: Limit = 10,
    subject: Annotated[
        list[str] | None,
        typer.Option("--subject", help="Whom or what all of them are about; repeatable."),
    ] = None,
    tenant: Tenant = None,
    owner: Owner = None,
    principal: Principal = None,
    scope: Scopes = None,
    ceiling: Ceiling = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Turn questions into query vectors through the admitted provider; this costs money.

    Exit status 1 if none of them became usable, or while gates are pending; 2 without a provider.
    """
    with opened(db, config, as_json=as_json) as session:
        asked = Asked(
            tenant=tenant,
            owner=owner,
            principal=principal,
            scopes=scope,
            ceiling=ceiling,
            kind=kind,
            limit=limit,
            subjects=subject,
        )
        queries = [asked.query(session, text_of(one)) for one in questions]
        try:
            with session.out.progress("preparing"):
                report = session.memory.prepare(
                    queries,
                    context_of(session),
                    tenant=given(tenant, session.identity.tenant),
                    owner=given(owner, session.identity.owner),
                )
        except NotAdmittedError as error:
            if session.settings.provider is None:
                from remembrancer.composition.remote import (  # noqa: PLC0415  # loads much
                    NO_PROVIDER,
                )

                error.add_note(NO_PROVIDER)
                raise
            # Nothing wrong with the command: the gates aren't open (yet).
            session.out.error(error)
            raise typer.Exit(1) from None
        _show_report(session.out, report)
    if not any(outcome.is_usable for outcome in report.outcomes):
        raise typer.Exit(1)


@spend_app.callback(invoke_without_command=True)
def spend(
    call: typer.Context,
    tenant: Tenant = None,
    owner: Owner = None,
    since: Annotated[
        str | None, typer.Option("--since", help="First UTC day, such as 2030-01-31.")
    ] = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show what was spent, by owner and UTC day."""
    if call.invoked_subcommand is not None:
        return
    with opened(db, config, as_json=as_json, read_only=True) as session:
        who = given(tenant, session.identity.tenant)
        days = session.memory.spend(tenant=who, owner=owner, since=since)
        if as_json:
            session.out.data([_day_data(day) for day in days])
        elif days:
            for name, of in groupby(days, key=lambda day: day.owner):
                session.out.table(f"Spend of {who}/{name} in USD", _COLUMNS, map(_day_row, of))
        else:
            session.out.line("Nothing was spent.")


@spend_app.command()
def expire(
    tenant: Tenant = None,
    owner: Owner = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make unknown, at its whole charge, what is pending though its lease has run out."""
    with opened(db, config, as_json=as_json) as session:
        who = given(tenant, session.identity.tenant)
        expired = session.memory.expire_spend(tenant=who, owner=owner)
        if as_json:
            session.out.data(
                {name: [str(one.reservation_id) for one in of] for name, of in expired.items()}
            )
        elif expired:
            rows = [
                (name, one.day, one.reservation_id, usd_text(one.charged_quanta))
                for name, of in expired.items()
                for one in of
            ]
            columns = ("owner", "day (UTC)", "id", "charged")
            session.out.table(f"Unknown now, of {who}, in USD", columns, rows)
        else:
            session.out.line(f"Nothing of {who} has expired.")


@spend_app.command()
def reconcile(
    reservation: Annotated[
        str, typer.Argument(metavar="RESERVATION", help="The reservation's id.")
    ],
    charged: Annotated[
        int, typer.Option("--charged", help="The new charge, in quanta of 0.000001 USD.")
    ],
    evidence: Annotated[
        Path,
        typer.Option(
            "--evidence",
            help="JSON file with reservation_id, stated_quanta and provider_statement.",
        ),
    ],
    by: Annotated[str, typer.Option("--by", help="Who vouches for the evidence.")],
    tenant: Tenant = None,
    owner: Owner = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Lower an unknown charge to what the provider states; its digest goes on record."""
    with opened(db, config, as_json=as_json) as session:
        known = session.memory.reconcile(
            _uuid(reservation),
            tenant=given(tenant, session.identity.tenant),
            owner=given(owner, session.identity.owner),
            charged_quanta=charged,
            evidence=evidence,
            by=by,
        )
        if as_json:
            session.out.data(
                {
                    "reservation_id": str(known.reservation_id),
                    "state": known.state.value,
                    "day": known.day,
                    "reserved_quanta": known.reserved_quanta,
                    "charged_quanta": known.charged_quanta,
                }
            )
        else:
            session.out.line(
                f"{known.reservation_id} of {known.day} is charged "
                f"{usd_text(known.charged_quanta)} USD now, "
                f"instead of {usd_text(known.reserved_quanta)}."
            )


_COLUMNS = ("day (UTC)", "requests", "reserved", "charged", "unknown", "pending", "ceiling")


def _day_row(day: "SpendOfDay") -> tuple[object, ...]:
    amounts = (day.reserved_quanta, day.charged_quanta, day.unknown_quanta, day.pending_quanta)
    requests = f"{day.requests}/{day.ceiling_requests}"
    return (day.day, requests, *map(usd_text, amounts), usd_text(day.ceiling_quanta))


def _day_data(day: "SpendOfDay") -> dict[str, Any]:
    data = asdict(day)
    usd = {
        name.replace("_quanta", "_usd"): usd_text(amount)
        for name, amount in data.items()
        if name.endswith("_quanta")
    }
    return {**data, **usd}


def _show_report(out: Output, report: "PreparationReport") -> None:
    if out.as_json:
        out.data(
            {
                "outcomes": [
                    {"status": one.status.value, "reason": str(one.reason)}
                    for one in report.outcomes
                ],
                "reservation_id": report.reservation_id and str(report.reservation_id),
                "charged_quanta": report.charged_quanta,
                "charged_usd": usd_text(report.charged_quanta),
            }
        )
        return
    rows = [
        (number, one.status.value, in_words(one.reason))
        for number, one in enumerate(report.outcomes, start=1)
    ]
    out.table("What became of them", ("#", "outcome", "why"), rows)
    if report.reservation_id is not None:
        out.line(
            f"Reservation {report.reservation_id}, charged {usd_text(report.charged_quanta)} USD."
        )


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInputError(field="reservation", problem="must be a UUID") from None
