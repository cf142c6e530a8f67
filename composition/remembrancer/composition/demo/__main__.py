"""Imports documents, recalls, packs, corrects, erases and replays, and shows each result."""

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

from remembrancer.composition import Remembrancer, embedded
from remembrancer.composition.cli.explain import explain_pack, explain_recall
from remembrancer.composition.cli.output import Output, preview
from remembrancer.domain import (
    ContextItem,
    ContextPack,
    RecallContext,
    RecallQuery,
    RemembrancerError,
    Sensitivity,
)

TENANT, OWNER, PRINCIPAL, SCOPE = "demo", "you", "demo-agent", "handbook"
SESSION, STAGE = "session-1", "plan"
QUESTIONS = (
    "What happens to the money when a request times out?",
    "How do I get rid of a text for good?",
    "Which commit survives a power cut?",
)


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
    return 0


def _tour(memory: Remembrancer, folder: Path, out: Output) -> None:
    _import(memory, folder, out)
    for question in QUESTIONS:
        _recall(memory, question, out)
    pack = _pack(memory, out)
    _correct_and_erase(memory, pack, out)
    _replay(memory, pack, out)
    out.line()
    out.line("The memory now:", style="bold")
    stands = memory.status()
    out.line(
        f"  {stands.entries} entries, {stands.events} events in the log, "
        f"{stands.versions_by_vector} vectors, recall by vectors: {stands.dense}"
    )


def _import(memory: Remembrancer, folder: Path, out: Output) -> None:
    out.line(f"1. Import {folder.name}: one entry per section", style="bold cyan")
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


def _recall(memory: Remembrancer, question: str, out: Output) -> None:
    out.line()
    out.line(f"2. Recall: {question}", style="bold cyan")
    found = memory.recall(_query(question, limit=3), _context())
    out.table(
        f"{found.mode}",
        ("#", "from", "text"),
        [
            (number, _source(one.metadata), preview(one.text))
            for number, one in enumerate(found.entries, start=1)
        ],
    )
    if question == QUESTIONS[0]:
        explain_recall(out, found)


def _pack(memory: Remembrancer, out: Output) -> ContextPack:
    out.line()
    out.line("3. Pack: commit a selection, then assemble it under 600 tokens", style="bold cyan")
    rules = ContextItem(layer=0, id="rules", text="Answer from the quoted sources.", required=True)
    task = ContextItem(layer=1, id="task", text=QUESTIONS[1], required=True)
    pack = memory.build_pack(
        SESSION,
        STAGE,
        _query(QUESTIONS[1], limit=6),
        _context(),
        items=[rules, task],
        token_budget=600,
    )
    out.line(pack.text)
    out.line(f"   {pack.tokens} of {pack.token_budget} tokens, digest {pack.digest}")
    explain_pack(out, pack)
    return pack


def _correct_and_erase(memory: Remembrancer, pack: ContextPack, out: Output) -> None:
    out.line()
    out.line("4. Correct one selected entry, erase another", style="bold cyan")
    selected = [one.entry_id for one in pack.selection.entries]
    for entry_id in selected[:1]:
        version = memory.correct(entry_id, text="This is described elsewhere now.", reason="moved")
        out.line(f"   {entry_id} is at version {version}; the pack keeps the version it quoted")
    for entry_id in selected[1:2]:
        erasure = memory.erase(entry_id, reason="user_request")
        out.line(f"   {entry_id} is erased, pending: {erasure.pending}")


def _replay(memory: Remembrancer, pack: ContextPack, out: Output) -> None:
    out.line()
    out.line("5. Replay the pack from log and vault alone", style="bold cyan")
    again = memory.replay(
        SESSION,
        STAGE,
        tenant=TENANT,
        principal=PRINCIPAL,
        scopes=(SCOPE,),
        read_ceiling=Sensitivity.INTERNAL,
    )
    out.line(f"   digest {again.digest}, as sent: {again.digest == pack.digest}")
    for one in again.differences:
        out.line(f"   differs: {one.id}: {one.reason}", style="yellow")


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


def _source(metadata: dict[str, str]) -> str:
    return " > ".join(filter(None, (metadata.get("path"), metadata.get("heading"))))


if __name__ == "__main__":
    sys.exit(main())
