"""Commands about admission: ``gates``, ``gates run``, ``gates template``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remembrancer.composition.cli.options import AsJson, Config, Db, read_settings
from remembrancer.composition.cli.output import Output
from remembrancer.composition.export_file import require_file
from remembrancer.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from remembrancer.application.gates import GatesReport
    from remembrancer.composition.gate_checks import CheckOutcome
    from remembrancer.domain.gate import Gate
    from remembrancer.domain.release import GateStatus

gates_app = typer.Typer(help="What must be proved before anything may leave.")
RAN_BY = "remembrancer"


@gates_app.callback(invoke_without_command=True)
def gates(
    call: typer.Context, db: Db = None, config: Config = None, as_json: AsJson = False
) -> None:
    """Show each gate's state and why.  Exit status 1 while any is pending.

    Needs no memory and no provider: settings and evidence are enough.
    """
    if call.invoked_subcommand is not None:
        return
    from remembrancer.composition.assembly import wired  # noqa: PLC0415  # the object graph

    report = wired(read_settings(db, config)).gates()()
    out = Output(as_json=as_json)
    if as_json:
        out.data(_report_data(report))
    else:
        _show(out, report)
    if report.pending:
        raise typer.Exit(1)


@gates_app.command()
def run(
    gate: Annotated[
        list[str] | None, typer.Option("--gate", help="Only this gate's check; repeatable.")
    ] = None,
    by: Annotated[str, typer.Option("--by", help="Who runs it; goes into the evidence.")] = RAN_BY,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Run the checks on the configured parts and write their evidence.

    In scratch stores, with a provider inside the process: nothing leaves, and the memory isn't
    touched.  Exit status 1 if a check fails or can't be carried out; 2 without a provider.
    """
    from remembrancer.composition.gate_checks import run_checks  # noqa: PLC0415  # only here
    from remembrancer.domain.gate import Gate  # noqa: PLC0415  # as above

    settings = read_settings(db, config)
    chosen = [_gate(name) for name in gate] if gate else list(Gate)
    out = Output(as_json=as_json)
    with out.progress("checking") as progress:
        outcomes = run_checks(settings, by=by, gates=chosen, progress=progress)
    outcomes = [one for one in outcomes if one.gate in chosen]
    outside = [one for one in chosen if one not in {outcome.gate for outcome in outcomes}]
    if as_json:
        out.data(_outcomes_data(outcomes, outside))
    else:
        _show_outcomes(out, outcomes, outside)
    if not all(one.is_met for one in outcomes):
        raise typer.Exit(1)


@gates_app.command()
def template(
    gate: Annotated[
        str, typer.Argument(metavar="GATE", help="The gate, such as retrieval_quality.")
    ],
    into: Annotated[
        Path | None, typer.Option("--into", help="Write it into this new file instead.")
    ] = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write a document to fill in, for evidence that comes from outside.

    It is no evidence until every null is filled in and an artefact's SHA-256 is named.
    """
    from remembrancer.composition.gate_checks.template import (  # noqa: PLC0415  # only here
        HOW,
        demands_on,
        evidence_template,
    )
    from remembrancer.composition.remote import current_configuration  # noqa: PLC0415  # as above

    out, wanted = Output(as_json=as_json), _gate(gate)
    document = evidence_template(current_configuration(read_settings(db, config)), wanted)
    if into is None:
        out.data(document)
    else:
        _write_new(into, json.dumps(document, indent=2) + "\n")
        out.note(f"Fill in {into}, then put it among the evidence.")
    out.note(HOW.get(wanted, "`remembrancer gates run` produces this one."))
    for demand in demands_on(wanted):
        out.note(f"  {demand}")


def _show(out: Output, report: "GatesReport") -> None:
    from remembrancer.composition.cli.gate_words import in_words  # noqa: PLC0415  # only here

    def why(status: "GateStatus") -> str:
        if status.is_met:
            return status.evidence[0].at.isoformat(timespec="seconds")
        return in_words(status.gate, status.problems)

    met = len(report.gates) - len(report.pending)
    out.table(
        f"{met} of {len(report.gates)} gates are met",
        ("", "gate", "why, or since when"),
        [("ok" if one.is_met else "--", one.gate.value, why(one)) for one in report.gates],
    )
    if report.problem:
        out.line(report.problem)
    for one in report.unreadable:
        out.line(f"No evidence: {one.name}: {one.problem}", style="yellow")
    if report.configuration_digest:
        out.note(f"Configuration {report.configuration_digest}, {report.mechanism_version}.")


def _report_data(report: "GatesReport") -> dict[str, Any]:
    return {
        "configuration_digest": report.configuration_digest,
        "mechanism_version": report.mechanism_version,
        "problem": report.problem,
        "gates": [
            {
                "gate": status.gate.value,
                "state": "met" if status.is_met else "pending",
                "problems": [
                    {"reason": problem.reason.value, "figure": problem.figure}
                    for problem in status.problems
                ],
                "evidence": [
                    {
                        "at": one.at.isoformat(),
                        "by": one.by,
                        "ran": one.ran,
                        "figures": one.figures,
                    }
                    for one in status.evidence
                ],
            }
            for status in report.gates
        ],
        "unreadable": [{"name": one.name, "problem": one.problem} for one in report.unreadable],
    }


def _show_outcomes(out: Output, outcomes: "list[CheckOutcome]", outside: "list[Gate]") -> None:
    from remembrancer.composition.cli.gate_words import in_words  # noqa: PLC0415  # only here
    from remembrancer.composition.gate_checks.template import HOW  # noqa: PLC0415  # as above

    rows = [
        (
            "ok" if one.is_met else "!!",
            one.gate.value,
            one.failure or in_words(one.gate, one.problems),
        )
        for one in outcomes
    ]
    if rows:
        out.table("Checked", ("", "gate", "what is wrong"), rows)
    for one in outcomes:
        if one.document is not None:  # Outside the table, so that it can be copied.
            out.line(f"{one.document}")
    for gate in outside:
        out.line(f"{gate.value} needs evidence from outside. {HOW[gate]}")
        out.line(f"  `remembrancer gates template {gate.value}` writes a document to fill in.")


def _outcomes_data(outcomes: "list[CheckOutcome]", outside: "list[Gate]") -> dict[str, Any]:
    from remembrancer.composition.gate_checks.template import HOW  # noqa: PLC0415  # only here

    return {
        "checked": [
            {
                "gate": one.gate.value,
                "met": one.is_met,
                "document": one.document and str(one.document),
                "problems": [
                    {"reason": problem.reason.value, "figure": problem.figure}
                    for problem in one.problems
                ],
                "failure": one.failure,
            }
            for one in outcomes
        ],
        "from_outside": [{"gate": gate.value, "how": HOW[gate]} for gate in outside],
    }


def _gate(name: str) -> "Gate":
    from remembrancer.domain.gate import Gate  # noqa: PLC0415  # only here

    try:
        return Gate(name)
    except ValueError:
        known = ", ".join(gate.value for gate in Gate)
        raise InvalidInputError(field="gate", problem=f"must be one of {known}") from None


def _write_new(path: Path, text: str) -> None:
    require_file(path, field="--into")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidInputError(
            field="--into", problem=f"{path} is there already: name another"
        ) from None
    except OSError as error:
        raise InvalidInputError(
            field="--into", problem=f"{path} can't be made: {error.strerror}"
        ) from None
