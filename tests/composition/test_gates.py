"""The state of each gate, through the public face."""

import asyncio
from pathlib import Path

from tests.composition.remote_world import open_world

from remembrancer.composition import embedded
from remembrancer.domain.gate import Gate
from remembrancer.domain.release import GateReason


def test_without_a_provider_every_gate_says_so(tmp_path: Path) -> None:
    with embedded(tmp_path / "memory.db") as memory:
        report = memory.gates()

    assert report.pending == tuple(Gate)
    assert {one.problems[0].reason for one in report.gates} == {GateReason.NO_CONFIGURATION}
    assert report.configuration_digest is None
    assert "no provider is configured" in report.problem


def test_without_evidence_every_gate_says_so(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        report = world.open().gates()

        assert report.pending == tuple(Gate)
        assert {one.problems[0].reason for one in report.gates} == {GateReason.NO_EVIDENCE}
        assert report.configuration_digest == world.configuration.digest


def test_evidence_counts_as_soon_as_it_is_there(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        memory = world.open()

        world.admit(one for one in Gate if one is not Gate.CACHE_BOUNDS)

        assert memory.gates().pending == (Gate.CACHE_BOUNDS,)
        world.admit([Gate.CACHE_BOUNDS])
        assert asyncio.run(memory.agates()).pending == ()


def test_changed_settings_are_another_configuration(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        memory = world.open()

        world.change(pricing={"usd_per_million_tokens": "0.5"})

        reasons = {one.problems[0].reason for one in memory.gates().gates}
        assert reasons == {GateReason.OTHER_CONFIGURATION}


def test_settings_that_do_not_fit_together_are_no_configuration(tmp_path: Path) -> None:
    with open_world(tmp_path, egress={"allowed_regions": ["elsewhere"]}) as world:
        report = world.open().gates()

        assert report.pending == tuple(Gate)
        assert "region" in report.problem


def test_what_is_no_evidence_is_named(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        (world.evidence.folder / "notes.json").write_text("canarybird")

        report = world.open().gates()

        assert [one.name for one in report.unreadable] == ["notes.json"]
        assert report.pending == ()
        assert "canarybird" not in repr(report)
