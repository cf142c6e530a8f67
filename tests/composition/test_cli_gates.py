"""`gates`, `gates run` and `gates template` on the command line."""

import json
from pathlib import Path

import pytest
from tests.composition.shell import Shell

from remembrancer.composition.cli.gate_words import in_words
from remembrancer.domain.gate import GATES, Gate
from remembrancer.domain.release import GateProblem, GateReason

TOML = """
[provider]
url = "https://eu.example.com/v1"
region = "eu"
model = "small"
model_revision = "1"
dimensions = 8
[pricing]
usd_per_million_tokens = "0.02"
[ceilings]
quanta_per_day = 1000000
requests_per_day = 500
[egress]
allowed_regions = ["eu"]
allowed_hosts = ["eu.example.com"]
"""
OUTSIDE = [gate for gate, terms in GATES.items() if terms.from_outside]


@pytest.fixture
def configured(shell: Shell) -> Shell:
    (shell.folder / "remembrancer.toml").write_text(TOML)
    return shell


def test_without_a_provider_all_are_pending_and_it_says_why(shell: Shell) -> None:
    done = shell("gates", "--json")

    assert done.status == 1
    assert [one["gate"] for one in done.data["gates"]] == [gate.value for gate in Gate]
    assert {one["state"] for one in done.data["gates"]} == {"pending"}
    assert "no provider is configured" in done.data["problem"]


def test_it_needs_no_memory_and_makes_none(configured: Shell) -> None:
    done = configured("gates")

    assert done.status == 1
    assert "0 of 12 gates are met" in done.out
    assert done.out.count("no_evidence") == 12
    assert [path.name for path in configured.folder.iterdir()] == ["remembrancer.toml"]


def test_run_fills_what_it_can_and_says_what_must_come_from_outside(configured: Shell) -> None:
    done = configured("gates", "run", "--gate", "cache_bounds", "--gate", "retrieval_quality")

    assert done.status == 0, done
    assert "cache_bounds" in done.out
    assert "retrieval_quality needs evidence from outside" in done.out
    shown = configured("gates", "--json").data["gates"]
    assert [one["gate"] for one in shown if one["state"] == "met"] == [
        "scope_and_context_identity",
        "cache_bounds",
    ]


def test_run_in_json(configured: Shell) -> None:
    answer = configured.json("gates", "run", "--gate", "correction_and_erasure", "--by", "ci")

    [checked] = answer["checked"]
    assert (checked["gate"], checked["met"]) == ("correction_and_erasure", True)
    document = json.loads((configured.folder / checked["document"]).read_text())
    assert document["by"] == "ci"
    assert document["figures"]["corrections"] == 10


def test_run_without_room_for_a_request_fails_and_says_why(configured: Shell) -> None:
    settings = configured.folder / "remembrancer.toml"
    settings.write_text(TOML.replace("requests_per_day = 500", "requests_per_day = 0"))

    done = configured("gates", "run", "--gate", "correction_and_erasure")

    assert done.status == 1
    assert "ceilings" in done.out
    assert not (configured.folder / "evidence").exists()


@pytest.mark.parametrize(
    "command", [("gates", "run"), ("gates", "template", "egress_denial"), ("prepare", "what?")]
)
def test_what_needs_a_provider_is_wrong_use_without_one(
    shell: Shell, command: tuple[str, ...]
) -> None:
    shell("init")

    assert shell(*command).status == 2


@pytest.mark.parametrize("command", [("gates",), ("gates", "run"), ("prepare", "a question")])
def test_without_a_provider_it_says_which_sections_to_add(
    shell: Shell, command: tuple[str, ...]
) -> None:
    shell("init")

    done = shell(*command)

    told = " ".join((done.out + done.err).split())
    assert "add the sections provider, pricing, ceilings and egress" in told


def test_beside_each_code_stands_what_to_do(
    configured: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")

    done = configured("gates")

    assert done.out.count("no_evidence: run `remembrancer gates run`") == 10
    assert "no_evidence: see `remembrancer gates template retrieval_quality`" in done.out


def test_a_figure_out_of_bounds_names_the_bounds() -> None:
    problem = GateProblem(reason=GateReason.FIGURE_OUT_OF_BOUNDS, figure="corrections")

    told = in_words(Gate.CORRECTION_AND_ERASURE, [problem])

    assert told.startswith("figure_out_of_bounds: corrections: must be at least ")


@pytest.mark.parametrize(
    ("url", "entry"),
    [
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9"),
        ("https://other.example.com/v1", "other.example.com"),
        ("https://eu.example.com:8443/v1", "eu.example.com:8443"),
    ],
)
def test_a_provider_that_is_not_allowed_is_told_with_the_entry_to_write(
    shell: Shell, url: str, entry: str
) -> None:
    settings = TOML.replace("https://eu.example.com/v1", url)
    settings = settings.replace('["eu.example.com"]', '["eu.example.com", "127.0.0.1"]')
    (shell.folder / "remembrancer.toml").write_text(settings)

    problem = shell("gates", "--json").data["problem"]

    assert problem == f'setting egress.allowed_hosts: must hold "{entry}", where the provider is'


def test_where_evidence_was_written_can_be_copied(configured: Shell) -> None:
    done = configured("gates", "run", "--gate", "cache_bounds")

    assert [line for line in done.out.splitlines() if (configured.folder / line).is_file()]


@pytest.mark.parametrize("command", [("run", "--gate", "all"), ("template", "all"), ("open",)])
def test_an_unknown_gate_or_command_is_wrong_use(
    command: tuple[str, ...], configured: Shell
) -> None:
    assert configured("gates", *command).status == 2


def test_all_twelve_met_is_no_finding(configured: Shell) -> None:
    digest = configured("gates", "--json").data["configuration_digest"]
    folder = configured.folder / "evidence"
    folder.mkdir()
    for gate, terms in GATES.items():
        document = {
            "gate": gate.value,
            "configuration_digest": digest,
            "mechanism_version": "semantic-query@1",
            "ran": "a test",
            "by": "a test",
            "at": "2020-01-01T00:00:00Z",
            "figures": {demand.figure: demand.least for demand in terms.demands},
            "artefact_digests": {"none": "0" * 64},
        }
        (folder / f"{gate.value}.json").write_text(json.dumps(document))

    done = configured("gates")

    assert done.status == 0, done
    assert "12 of 12 gates are met" in done.out


def test_what_is_no_evidence_is_named(configured: Shell) -> None:
    (configured.folder / "evidence").mkdir()
    (configured.folder / "evidence" / "notes.json").write_text("canarybird")

    done = configured("gates")

    assert "notes.json" in done.out
    assert "canarybird" not in done.out + done.err


@pytest.mark.parametrize("gate", OUTSIDE)
def test_a_template_filled_in_opens_its_gate(gate: Gate, configured: Shell) -> None:
    document = configured.json("gates", "template", gate.value)
    document |= {
        "ran": "a campaign",
        "by": "mia",
        "at": "2020-01-01T00:00:00Z",
        "figures": {demand.figure: max(1, demand.least) for demand in GATES[gate].demands},
        "artefact_digests": {"raw.csv": "0" * 64},
    }
    (configured.folder / "evidence").mkdir()
    (configured.folder / "evidence" / "filled.json").write_text(json.dumps(document))

    shown = configured("gates", "--json").data["gates"]

    assert [one["gate"] for one in shown if one["state"] == "met"] == [gate.value]


def test_a_template_goes_into_a_new_file_and_over_no_other(
    configured: Shell, tmp_path: Path
) -> None:
    command = ("gates", "template", "retrieval_quality", "--into", "quality.json")

    first = configured(*command)
    again = configured(*command)

    assert first.status == 0
    assert "found_permille_prepared" in (tmp_path / "quality.json").read_text()
    assert again.status == 2
