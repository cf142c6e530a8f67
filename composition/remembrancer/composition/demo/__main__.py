"""Imports documents, recalls, packs, replays, corrects and erases, and shows each result."""

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

from remembrancer.composition import Remembrancer, embedded
from remembrancer.composition.cli.output import Output, preview
from remembrancer.domain import (
    ContextItem,
    ContextPack,
    EntryId,
    RecallContext,
    Recalled,
    RecalledEntry,
    RecallQuery,
    RemembrancerError,
    Sensitivity,
)

TENANT, OWNER, PRINCIPAL, SCOPE = "demo", "you", "demo-agent", "handbook"
SESSION, STAGE = "session-1", "plan"
QUESTIONS = (
    "Which commit survives a power cut?",
    "Is the money spent when the process dies?",
    "What happens when the disk is full?",
)
PACKED, BUDGET = "How do I take a backup?", 600


def main() -> int:
    """Run the tour; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="documents (shipped ones)")
    parser.add_argument("--db", type=Path, help="the memory (a temporary file)")
    given = parser.parse_args()
    out = Output(as_json=False)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            path = given.db or Path(scratch) / "memory.db"
            with embedded(path) as memory:
                folder = given.folder or Path(str(resources.files(__package__) / "documents"))
                _tour(memory, folder, out)
    except RemembrancerError as error:
        out.error(error)
        return 1
    except BrokenPipeError:
        out.hang_up()
    return 0


def _tour(memory: Remembrancer, folder: Path, out: Output) -> None:
    _import(memory, folder, out)
    _recall(memory, out)
    pack = _pack(memory, out)
    names = {str(one.entry_id): _name(memory, one.entry_id) for one in pack.selection.entries}
    _step(out, "4. Replay: the same pack again, from log and vault alone")
    _replay(memory, pack, names, out)
    _step(out, "5. Correct one of the quoted entries, erase another")
    _correct_and_erase(memory, pack, names, out)
    _step(out, "6. Replay once more: it says what can't be shown any more")
    _replay(memory, pack, names, out)
    stands = memory.status()
    out.line()
    out.line(
        f"The memory now: {stands.entries} entries, {stands.events} events in the log, "
        f"{stands.versions_by_vector} vectors (the corrected entry has one for each of its two "
        f"versions), recall by vectors: {stands.dense}"
    )


def _import(memory: Remembrancer, folder: Path, out: Output) -> None:
    _step(out, f"1. Import {folder.name}: one entry per section")
    with out.progress("importing") as progress:
        report = memory.import_documents(
            [folder],
            tenant=TENANT,
            owner=OWNER,
            scope=SCOPE,
            sensitivity=Sensitivity.INTERNAL,
            progress=progress,
        )
    out.line(f"   {len(report.added)} entries added, {report.unchanged} unchanged")


def _recall(memory: Remembrancer, out: Output) -> None:
    _step(out, "2. Recall: by meaning and by words at once")
    for question in QUESTIONS:
        found = memory.recall(_query(question, limit=3), _context())
        out.line(f"   {question}")
        if question == QUESTIONS[0]:
            _explain(found, out)
        elif found.entries:
            out.line(f"     {_source(found.entries[0])}: {_beginning(found.entries[0])}")


def _explain(found: Recalled, out: Output) -> None:
    """Show how the first question's entries were found."""
    rows = [
        (
            number,
            _source(one),
            f"{one.score:.4f}",
            _rank(one.ranks.dense_rank),
            _rank(one.ranks.sparse_rank),
        )
        for number, one in enumerate(found.entries, start=1)
    ]
    out.table("", ("#", "section", "score", "by meaning", "by words"), rows)
    out.line(f"   {found.left_out_count} other sections ranked lower.")


def _pack(memory: Remembrancer, out: Output) -> ContextPack:
    _step(out, f'3. Pack: what a model gets for "{PACKED}", in at most {BUDGET} tokens')
    rules = ContextItem(layer=0, id="rules", text="Answer from the quoted sources.", required=True)
    pack = memory.build_pack(
        SESSION,
        STAGE,
        _query(PACKED, limit=2),
        _context(),
        items=[rules],
        token_budget=BUDGET,
    )
    out.line(pack.text)
    out.line(f"   {pack.tokens} tokens, digest {pack.digest}")
    return pack


def _correct_and_erase(
    memory: Remembrancer, pack: ContextPack, names: dict[str, str], out: Output
) -> None:
    selected = [one.entry_id for one in pack.selection.entries]
    for entry_id in selected[:1]:
        version = memory.correct(entry_id, text="This is described elsewhere now.", reason="moved")
        out.line(
            f"   {names[str(entry_id)]} is at version {version}; "
            "the pack keeps the version that it quoted"
        )
    for entry_id in selected[1:2]:
        erasure = memory.erase(entry_id, reason="user_request")
        left = "old pages wait for a reader" if erasure.pending else "nothing of it is left"
        out.line(f"   {names[str(entry_id)]} is erased; {left}")


def _replay(memory: Remembrancer, pack: ContextPack, names: dict[str, str], out: Output) -> None:
    again = memory.replay(
        SESSION,
        STAGE,
        tenant=TENANT,
        principal=PRINCIPAL,
        scopes=(SCOPE,),
        read_ceiling=Sensitivity.INTERNAL,
    )
    same = "yes" if again.digest == pack.digest else "no"
    out.line(f"   as sent: {same}; digest {again.digest}")
    for one in again.differences:
        out.line(f"   differs: {names.get(one.id, one.id)}: {one.reason}", style="yellow")


def _step(out: Output, title: str) -> None:
    out.line()
    out.line(title, style="bold cyan")


def _name(memory: Remembrancer, entry_id: EntryId) -> str:
    """Return where a quoted entry stands in the documents."""
    for one in memory.recall(_query(PACKED, limit=10), _context()).entries:
        if one.entry_id == entry_id:
            return _source(one)
    return str(entry_id)


def _source(one: RecalledEntry) -> str:
    # The last heading is enough: the file's name says the rest.
    heading = one.metadata.get("heading", "").rpartition(" > ")[2]
    return " > ".join(filter(None, (one.metadata.get("path"), heading)))


def _beginning(one: RecalledEntry) -> str:
    """Return the first words below the heading."""
    return preview(one.text.partition("\n")[2] or one.text)[:90].rpartition(" ")[0] + " …"


def _rank(rank: int | None) -> str:
    return "-" if rank is None else f"{rank}."


def _query(question: str, *, limit: int) -> RecallQuery:
    return RecallQuery(
        tenant=TENANT,
        owner=OWNER,
        principal=PRINCIPAL,
        scopes=(SCOPE,),
        read_ceiling=Sensitivity.INTERNAL,
        question=question,
        limit=limit,
    )


def _context() -> RecallContext:
    return RecallContext(
        policy_version="p1",
        retrieval_policy_version="r1",
        surface="cli",
        task_digest="demo",
        sensitivity_floor=Sensitivity.INTERNAL,
    )


if __name__ == "__main__":
    sys.exit(main())
