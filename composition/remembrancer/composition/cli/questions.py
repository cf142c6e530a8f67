"""Commands that ask: ``recall``, ``pack``, ``replay``."""

import re
from pathlib import Path
from typing import Annotated

import typer

from remembrancer.application.quote import NO_LONGER_PERMITTED
from remembrancer.composition.cli.asked import Asked, context_of
from remembrancer.composition.cli.explain import (
    explain_pack,
    explain_recall,
    how_found,
    pack_data,
    recalled_data,
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
    text_of,
)
from remembrancer.composition.cli.output import Output, file_of, preview
from remembrancer.composition.cli.words import in_words
from remembrancer.domain.context_pack import ContextItem, ContextPack
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.recall import (
    LeftOutReason,
    RecalledEntry,
    RecallKind,
    RecallQuery,
)

Question = Annotated[
    str, typer.Argument(metavar="QUESTION", help="The question; - reads standard input.")
]
Kind = Annotated[RecallKind, typer.Option("--kind", help="What kind of remembering.")]
Subjects = Annotated[
    list[str] | None, typer.Option("--subject", help="Whom or what it is about; repeatable.")
]
AsOf = Annotated[str | None, typer.Option("--as-of", help="A point in time, ISO 8601 with zone.")]
Limit = Annotated[int, typer.Option("--limit", "-k", help="How many entries at most.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show ranks, scores, and why others were left out.")
]
SparseOnly = Annotated[bool, typer.Option("--sparse", help="By keywords alone.")]


_PARTS = {"layer": "LAYER", "id": "NAME", "text": "TEXT"}
"""Fields of an item, as they are called in ``--item``."""
_LAYER = re.compile(r"[0-9]{1,3}")


def recall(
    question: Question = "",
    kind: Kind = RecallKind.DELIBERATE,
    limit: Limit = 10,
    subject: Subjects = None,
    as_of: AsOf = None,
    sparse: SparseOnly = False,
    explain: Explain = False,
    tenant: Tenant = None,
    owner: Owner = None,
    principal: Principal = None,
    scope: Scopes = None,
    ceiling: Ceiling = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question from memory."""
    with opened(db, config, as_json=as_json, read_only=True) as session:
        asked = Asked(
            tenant=tenant,
            owner=owner,
            principal=principal,
            scopes=scope,
            ceiling=ceiling,
            kind=kind,
            limit=limit,
            subjects=subject,
            as_of=as_of,
            sparse=sparse,
        )
        query = asked.query(session, _required(question, asked))
        found = session.memory.recall(query, context_of(session))
        if as_json:
            session.out.data(recalled_data(found))
            return
        if found.entries:
            session.out.entries(
                f"{len(found.entries)} found, {how_found(found)}",
                [(preview(one.text), _facts(one)) for one in found.entries],
            )
        else:
            session.out.line("Nothing found.")
            session.out.note(_looked_in(query))
        if explain:
            explain_recall(session.out, found)


def pack(
    session_id: Annotated[str, typer.Argument(metavar="SESSION", help="The session's name.")],
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="Its stage, such as plan.")],
    question: Question,
    budget: Annotated[int, typer.Option("--budget", help="Tokens the pack may have.")] = 2000,
    item: Annotated[
        list[str] | None,
        # Not LAYER:ID:TEXT, which Rich would show with a picture in the place of ":ID:".
        typer.Option("--item", help="LAYER:NAME:TEXT, or LAYER:NAME:@FILE; layers 0 to 2."),
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option("--require", help="Name of an item that must be in.")
    ] = None,
    kind: Kind = RecallKind.DELIBERATE,
    limit: Limit = 10,
    subject: Subjects = None,
    as_of: AsOf = None,
    sparse: SparseOnly = False,
    explain: Explain = False,
    tenant: Tenant = None,
    owner: Owner = None,
    principal: Principal = None,
    scope: Scopes = None,
    ceiling: Ceiling = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Build a context pack: commit a selection for the stage, then assemble it."""
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
            as_of=as_of,
            sparse=sparse,
        )
        query = asked.query(session, _required(question, asked))
        built = session.memory.build_pack(
            session_id,
            stage,
            query,
            context_of(session),
            items=_items(item or [], set(require or [])),
            token_budget=budget,
        )
        if as_json:
            session.out.data(pack_data(built))
            return
        session.out.verbatim(built.text)
        _tell(session.out, built, query)
        if explain:
            explain_pack(session.out, built)


def _tell(out: Output, built: ContextPack, query: RecallQuery) -> None:
    """Say beside the text what pack it is."""
    out.note(
        f"\npack {built.number} of {built.session}/{built.stage}: {built.tokens} of "
        f"{counted(built.token_budget, 'token')}, digest {built.digest}"
    )
    if not built.included:
        out.note(_why_empty(built))
        if not built.omitted and not built.reused_selection:
            out.note(f"{_looked_in(query)} Take another stage for that.")
    if built.reused_selection:
        out.note(
            f"{built.stage} of {built.session} was selected before: it keeps these entries, the "
            "question decided nothing. Take another stage to ask anew."
        )


def _required(question: str, asked: Asked) -> str:
    """Return the question; refuse none where only a listing could do without."""
    text = text_of(question)
    if asked.kind is not RecallKind.CORE and not (text.strip() or asked.subjects):
        problem = f"is missing; kind {asked.kind} needs one (core lists without)"
        raise InvalidInputError(field="question", problem=problem)
    return text


def _looked_in(query: RecallQuery) -> str:
    return (
        f"Looked in {', '.join(query.scopes)} of {query.tenant}/{query.owner}, up to "
        f"{query.read_ceiling.value}: --scope, --owner and --ceiling look elsewhere."
    )


def _why_empty(built: ContextPack) -> str:
    reasons = {reason for _, reason in built.omitted}
    if not reasons:
        return "Nothing was found, so there is nothing in it."
    if LeftOutReason.BUDGET.value in reasons:
        return (
            f"Nothing of it fitted into {counted(built.token_budget, 'token')}: give more with "
            "--budget (--explain lists what was left out)."
        )
    return (
        "Nothing of what was selected may be shown: see to --scope and --ceiling (--explain lists "
        "what was left out)."
    )


def replay(
    session_id: Annotated[str, typer.Argument(metavar="SESSION", help="The session's name.")],
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="Its stage, such as plan.")],
    number: Annotated[
        int | None, typer.Option("--number", help="Which pack of the stage; the last by default.")
    ] = None,
    explain: Explain = False,
    tenant: Tenant = None,
    principal: Principal = None,
    scope: Scopes = None,
    ceiling: Ceiling = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Assemble a recorded pack again, from log and vault alone.

    Exit status 1 if something can't be shown as it was.
    """
    with opened(db, config, as_json=as_json, read_only=True) as session:
        who = session.identity
        again = session.memory.replay(
            session_id,
            stage,
            tenant=given(tenant, who.tenant),
            principal=given(principal, who.principal),
            scopes=tuple(scope or (who.scope,)),
            read_ceiling=sensitivity_of(ceiling, who.read_ceiling, option="--ceiling"),
            pack_number=number,
        )
        if as_json:
            session.out.data(pack_data(again))
        else:
            session.out.verbatim(again.text)
            for one in again.differences:
                session.out.line(f"differs: {one.id}: {in_words(one.reason)}", style="yellow")
            same = "differs from" if again.differences else "is"
            session.out.note(f"\npack {again.number} {same} what was sent; digest {again.digest}")
            if any(one.reason == NO_LONGER_PERMITTED for one in again.differences):
                session.out.note(
                    "Something isn't permitted to this reader: give the scopes with --scope, and "
                    "how far to read with --ceiling, as they were for the pack."
                )
            if explain:
                explain_pack(session.out, again)
    if again.differences:
        raise typer.Exit(1)


def _facts(one: RecalledEntry) -> tuple[str, ...]:
    version = f"version {one.version}" if one.version > 1 else ""
    path = file_of(one.metadata.get("import_root"), one.metadata.get("path", ""))
    return (str(one.entry_id), version, one.scope, preview(path))


def _items(given: list[str], required: set[str]) -> list[ContextItem]:
    items = []
    for one in given:
        layer, _, rest = one.partition(":")
        item_id, colon, text = rest.partition(":")
        if not colon or not _LAYER.fullmatch(layer):
            raise InvalidInputError(field="--item", problem="must be LAYER:NAME:TEXT")
        if text.startswith("@"):
            text = _file_text(Path(text[1:]))
        try:
            items.append(
                ContextItem(layer=int(layer), id=item_id, text=text, required=item_id in required)
            )
        except InvalidInputError as error:
            part = _PARTS.get(error.field.rpartition(".")[2], "")
            raise InvalidInputError(field=f"--item {part}", problem=error.problem) from None
    unknown = required - {item.id for item in items}
    if unknown:
        raise InvalidInputError(
            field="--require", problem=f"no --item has the name {', '.join(sorted(unknown))}"
        )
    return items


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        problem = "isn't UTF-8 text"
    except OSError as error:
        problem = f"can't be read: {error.strerror}"
    raise InvalidInputError(field=f"--item {path}", problem=problem)
