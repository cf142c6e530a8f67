"""`prepare`, `spend` and `spend reconcile` on the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.composition.remote_world import World, open_world
from tests.composition.shell import Shell

from remembrancer.contracts.loopback_provider import Behaviour, honest, status

TOML = """
[embedder]
provider = "none"
[provider]
url = "{url}"
region = "here"
model = "small"
model_revision = "1"
dimensions = 8
[pricing]
usd_per_million_tokens = "100"
input_overhead_tokens = 2
[ceilings]
quanta_per_day = 10000000
requests_per_day = 1000
[egress]
allowed_regions = ["here"]
allowed_hosts = ["{host}"]
[admission]
evidence = "{evidence}"
"""


def _configured(shell: Shell, world: World) -> None:
    url = world.server.url
    text = TOML.format(
        url=url, host=url.removesuffix("/v1"), evidence=world.settings.admission.evidence
    )
    (shell.folder / "remembrancer.toml").write_text(text)
    assert shell("init").status == 0


def _world(tmp_path: Path, behaviour: Behaviour) -> Iterator[World]:
    with open_world(tmp_path / "world", behaviour) as world:
        yield world


@pytest.fixture
def world(tmp_path: Path, shell: Shell, request: pytest.FixtureRequest) -> Iterator[World]:
    """Return a world whose provider behaves as the test says, honestly by default."""
    behaviour = getattr(request, "param", honest())
    for world in _world(tmp_path, behaviour):
        _configured(shell, world)
        yield world


failing = pytest.mark.parametrize("world", [status(500)], indirect=True)


# -- prepare -------------------------------------------------------------------------------------


def test_prepare_reports_each_question(shell: Shell, world: World) -> None:
    world.admit()

    done = shell("prepare", "which rule?", "which rule?", "whose pond?", "--subject", "Ana")

    assert done.status == 0, done
    assert [line for line in done.out.splitlines() if "duplicate" in line]
    assert done.out.count("prepared") == 4
    assert "Reservation" in done.out
    assert world.sent == ['["which rule?","Ana"]', '["whose pond?","Ana"]']


def test_prepare_in_json(shell: Shell, world: World) -> None:
    world.admit()

    answer = shell.json("prepare", "which rule?")

    assert answer["outcomes"] == [{"status": "prepared", "reason": "prepared"}]
    assert answer["reservation_id"]
    assert answer["charged_quanta"] > 0
    assert answer["charged_usd"] == f"0.{answer['charged_quanta']:06d}"


def test_prepare_without_admission_is_a_finding_that_names_the_gates(
    shell: Shell, world: World
) -> None:
    done = shell("prepare", "which rule?", "--json")

    assert done.status == 1
    assert done.data["error"]["type"] == "NotAdmittedError"
    assert len(done.data["error"]["fields"]["missing_gates"]) == 12
    assert world.server.connections == 0


def test_prepare_of_nothing_usable_is_a_finding(shell: Shell, world: World) -> None:
    world.admit()

    done = shell("prepare", "  ", "--kind", "deliberate")

    assert done.status == 1
    assert "empty question" in done.out


@failing
def test_prepare_says_why_a_provider_brought_nothing(shell: Shell, world: World) -> None:
    world.admit()

    done = shell("prepare", "which rule?")

    assert done.status == 1
    assert "status 500" in done.out


@pytest.mark.parametrize(
    "arguments",
    [(), ("a", "b", "c", "d", "e"), ("a", "--kind", "none"), ("a", "--ceiling", "secret")],
)
def test_prepare_used_wrongly(arguments: tuple[str, ...], shell: Shell, world: World) -> None:
    world.admit()

    assert shell("prepare", *arguments).status == 2
    assert world.server.connections == 0


# -- spend ---------------------------------------------------------------------------------------


def test_spend_of_nothing(shell: Shell, world: World) -> None:
    assert world.sent == []
    assert shell("spend").out.strip() == "Nothing was spent."
    assert shell.json("spend") == []


def test_spend_as_a_table_and_in_json(shell: Shell, world: World) -> None:
    world.admit()
    shell("prepare", "which rule?")

    table = shell("spend")
    [day] = shell.json("spend")

    assert table.status == 0
    assert "Spend of local/me in USD" in table.out
    assert all(word in table.out for word in ("reserved", "charged", "unknown", "pending"))
    assert "1/1000" in table.out
    assert day["owner"] == "me"
    assert (day["requests"], day["pending"], day["unknown"]) == (1, 0, 0)
    assert 0 < day["charged_quanta"] < day["reserved_quanta"]
    assert day["charged_usd"] == f"0.{day['charged_quanta']:06d}"
    assert (day["ceiling_quanta"], day["ceiling_usd"]) == (10_000_000, "10.000000")


def test_spend_of_an_owner_and_since_a_day(shell: Shell, world: World) -> None:
    world.admit()
    shell("prepare", "which rule?")

    assert shell.json("spend", "--owner", "bo") == []
    assert shell.json("spend", "--tenant", "acme") == []
    assert len(shell.json("spend", "--owner", "me", "--since", "2001-01-01")) == 1
    assert shell("spend", "--since", "yesterday").status == 2


# -- spend reconcile -----------------------------------------------------------------------------


def _proof(shell: Shell, reservation: str, stated: int) -> str:
    document = {
        "reservation_id": reservation,
        "stated_quanta": stated,
        "provider_statement": "usage export",
    }
    (shell.folder / "proof.json").write_text(json.dumps(document))
    return "proof.json"


@failing
def test_an_unknown_charge_is_lowered_with_evidence(shell: Shell, world: World) -> None:
    world.admit()
    reservation = shell("prepare", "which rule?", "--json").data["reservation_id"]
    proof = _proof(shell, reservation, 300)

    answer = shell.json(
        "spend", "reconcile", reservation, "--charged", "300", "--evidence", proof, "--by", "mia"
    )

    assert (answer["state"], answer["charged_quanta"]) == ("reconciled", 300)
    assert shell.json("spend")[0]["charged_quanta"] == 300


@failing
def test_it_is_said_in_words_too(shell: Shell, world: World) -> None:
    world.admit()
    reservation = shell("prepare", "which rule?", "--json").data["reservation_id"]
    proof = _proof(shell, reservation, 300)

    done = shell(
        "spend", "reconcile", reservation, "--charged", "300", "--evidence", proof, "--by", "mia"
    )

    assert done.status == 0
    assert "0.000300 USD" in done.out


@failing
@pytest.mark.parametrize("charged", ["299", "-1", "99999999"])
def test_never_below_the_evidence_nor_above_the_charge(
    charged: str, shell: Shell, world: World
) -> None:
    world.admit()
    reservation = shell("prepare", "which rule?", "--json").data["reservation_id"]
    proof = _proof(shell, reservation, 300)

    done = shell(
        "spend", "reconcile", reservation, f"--charged={charged}", "--evidence", proof,
        "--by", "mia",
    )  # fmt: skip

    assert done.status == 2
    assert shell.json("spend")[0]["unknown"] == 1


@pytest.mark.parametrize(
    "missing", ["--charged", "--evidence", "--by", "reservation"]
)  # fmt: skip
def test_everything_must_be_said(missing: str, shell: Shell, world: World) -> None:
    assert world.sent == []
    options = {"--charged": "1", "--evidence": "proof.json", "--by": "mia"}
    given = [word for pair in options.items() if pair[0] != missing for word in pair]
    ids = [] if missing == "reservation" else ["0190d0f2-0000-7000-8000-000000000001"]

    assert shell("spend", "reconcile", *ids, *given).status == 2


def test_an_id_must_be_one(shell: Shell, world: World) -> None:
    assert world.sent == []
    proof = _proof(shell, "0190d0f2-0000-7000-8000-000000000001", 1)
    options = ("--charged", "1", "--evidence", proof, "--by", "mia")

    assert shell("spend", "reconcile", "nonsense", *options).status == 2
    unknown = shell("spend", "reconcile", "0190d0f2-0000-7000-8000-000000000001", *options)
    assert unknown.status == 2
    assert "absent" in unknown.err


def test_evidence_that_is_not_there_is_named(shell: Shell) -> None:
    shell("init")

    done = shell(
        "spend", "reconcile", "00000000-0000-4000-8000-000000000000", "--charged", "1",
        "--evidence", "missing.json", "--by", "mia",
    )  # fmt: skip

    assert done.status == 2
    assert "missing.json can't be read: No such file" in " ".join(done.err.split())
