"""Commands that write entries: ``init``, ``remember``, ``correct``."""

from typing import Annotated

import typer

from remembrancer.composition.cli.options import (
    AsJson,
    Config,
    Db,
    Owner,
    Reason,
    Scope,
    SensitivityName,
    Tenant,
    given,
    opened,
    pairs_of,
    sensitivity_of,
    text_of,
)
from remembrancer.domain.counted import counted
from remembrancer.domain.entry import NewEntry
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.identity import parse_entry_id

Subjects = Annotated[
    list[str] | None, typer.Option("--subject", help="Whom or what it is about; repeatable.")
]
Meta = Annotated[list[str] | None, typer.Option("--meta", help="key=value; repeatable.")]


def init(db: Db = None, config: Config = None, as_json: AsJson = False) -> None:
    """Make an empty memory, or say that one is there."""
    with opened(db, config, as_json=as_json, new=True) as session:
        status = session.memory.status()
        place = session.settings.store.place
        if as_json:
            session.out.data({"path": place, "entries": status.entries})
        else:
            session.out.line(f"{place} is ready: {counted(status.entries, 'entry', 'entries')}.")


def remember(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; - reads standard input.")],
    kind: Annotated[str, typer.Option("--kind", help="Such as note, decision, core.")] = "note",
    subject: Subjects = None,
    meta: Meta = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key: a retry makes no second entry.")
    ] = None,
    tenant: Tenant = None,
    owner: Owner = None,
    scope: Scope = None,
    sensitivity: SensitivityName = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Remember one entry; prints its id."""
    with opened(db, config, as_json=as_json, new=True) as session:
        who = session.identity
        entry_id = session.memory.remember(
            NewEntry(
                tenant=given(tenant, who.tenant),
                owner=given(owner, who.owner),
                scope=given(scope, who.scope),
                text=text_of(text),
                kind=kind,
                sensitivity=sensitivity_of(sensitivity, who.sensitivity),
                subjects=tuple(subject or ()),
                metadata=pairs_of(meta),
                idempotency_key=key,
            )
        )
        if as_json:
            session.out.data({"entry_id": str(entry_id)})
        else:
            session.out.line(str(entry_id))


def correct(
    entry_id: Annotated[str, typer.Argument(metavar="ENTRY", help="The entry's id.")],
    reason: Reason,
    text: Annotated[
        str | None, typer.Option("--text", help="The new text; - reads standard input.")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Another kind.")] = None,
    subject: Subjects = None,
    meta: Meta = None,
    scope: Scope = None,
    sensitivity: SensitivityName = None,
    tenant: Tenant = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Put a new version in the place of an entry's current one."""
    corrected = parse_entry_id(entry_id)
    if all(one is None for one in (text, kind, subject, meta, scope, sensitivity)):
        raise InvalidInputError(
            field="--text",
            problem="nothing to change was given; give it, or another of the entry's labels",
        )
    with opened(db, config, as_json=as_json) as session:
        version = session.memory.correct(
            corrected,
            reason=reason,
            tenant=session.whose(tenant),
            text=None if text is None else text_of(text),
            scope=scope,
            kind=kind,
            sensitivity=None
            if sensitivity is None
            else sensitivity_of(sensitivity, session.identity.sensitivity),
            subjects=subject,
            metadata=None if meta is None else pairs_of(meta),
        )
        if as_json:
            session.out.data({"entry_id": entry_id, "version": version})
        else:
            session.out.line(f"{entry_id} is at version {version}.")
