"""The check-up: what is looked at, and what is to be done."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from remembrancer.composition import Remembrancer, Settings
from remembrancer.composition.assembly import assembled
from remembrancer.composition.diagnosis import Finding, diagnose
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain import NewEntry, Sensitivity


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.parse({"store": {"path": str(tmp_path / "memory.db")}})


@pytest.fixture
def memory(settings: Settings) -> Iterator[Remembrancer]:
    with assembled(settings, embedder=HashingEmbedder()) as memory:
        yield memory


def _remember(memory: Remembrancer, text: str = "some words") -> None:
    memory.remember(
        NewEntry(
            tenant="acme",
            owner="ana",
            scope="project",
            text=text,
            sensitivity=Sensitivity.INTERNAL,
        )
    )


def _found(memory: Remembrancer, settings: Settings) -> dict[str, Finding]:
    return {one.what: one for one in diagnose(memory, settings)}


def test_a_new_memory_is_in_order(memory: Remembrancer, settings: Settings) -> None:
    assert all(one.ok and not one.advice for one in diagnose(memory, settings))


def test_a_used_memory_is_in_order(memory: Remembrancer, settings: Settings) -> None:
    _remember(memory)

    found = _found(memory, settings)

    assert all(one.ok and not one.advice for one in found.values())
    assert found["vectors"].found == "1 vector for 1 version"


def test_an_index_that_nobody_can_ask_is_a_finding(settings: Settings) -> None:
    with assembled(settings, embedder=HashingEmbedder(model="old")) as memory:
        _remember(memory)
    with assembled(settings, embedder=HashingEmbedder(model="new")) as memory:
        finding = _found(memory, settings)["vectors"]

    assert not finding.ok
    assert "another model made them" in finding.found
    assert "reindex" in finding.advice


def test_a_memory_without_an_index_is_not_said_to_have_one(
    memory: Remembrancer, tmp_path: Path
) -> None:
    _remember(memory)
    memory.export(tmp_path / "all.jsonl")
    elsewhere = Settings.parse({"store": {"path": str(tmp_path / "elsewhere.db")}})
    with assembled(elsewhere, embedder=HashingEmbedder()) as restored:
        restored.restore(tmp_path / "all.jsonl")
        found = _found(restored, elsewhere)

    assert found["indexes"].found == "no vector index yet"
    assert "as after a restore" in found["vectors"].found


def test_retired_indexes_are_named(memory: Remembrancer, settings: Settings) -> None:
    _remember(memory)
    memory.reindex(embedder=HashingEmbedder(model="second"))

    finding = _found(memory, settings)["indexes"]

    assert finding.ok
    assert "1 (retired)" in finding.found
    assert "--only-drop-retired" in finding.advice


def test_a_pending_erasure_is_a_finding(memory: Remembrancer, settings: Settings) -> None:
    _remember(memory)
    with assembled(settings) as reader, reader._container.store().transactions.snapshot():
        reader._container.store().vault.count()
        _remember(memory, "other words")

        finding = _found(memory, settings)["erasures"]

    assert not finding.ok
    assert finding.found == "pending"
    assert _found(memory, settings)["erasures"].ok


def test_an_index_whose_building_broke_off_is_a_finding(
    memory: Remembrancer, settings: Settings
) -> None:
    for number in range(3):
        _remember(memory, f"some words {number}")

    def breaks_off(_done: int, _end: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.reindex(progress=breaks_off)
    finding = _found(memory, settings)["indexes"]
    memory.drop_retired_indexes(unfinished=True)

    assert not finding.ok
    assert finding.found == "index 2 was begun and isn't finished: position 3 of 3"
    assert "`remembrancer reindex` goes on" in finding.advice
    assert "`remembrancer reindex --drop-unfinished` gives it up" in finding.advice
    assert _found(memory, settings)["indexes"].ok


def test_what_may_only_be_read_is_not_touched(settings: Settings) -> None:
    assembled(settings).close()
    reading = Settings.parse({"store": {"path": str(settings.store.path), "read_only": True}})
    with assembled(reading) as memory:
        finding = _found(memory, reading)["erasures"]

    assert finding.ok
    assert "may only be read" in finding.found


def test_other_dimensions_in_the_settings_than_in_the_index_are_named(settings: Settings) -> None:
    with assembled(settings) as memory:
        _remember(memory)
    store = {"path": str(settings.store.path)}
    narrower = Settings.parse({"store": store, "embedder": {"dimensions": 64}})
    with assembled(narrower) as memory:
        finding = _found(memory, narrower)["dimensions"]

    assert finding.found == "256 answer, 64 are set"
    assert "reindex" in finding.advice


@pytest.mark.parametrize(
    ("variable", "ok", "told"),
    [(None, True, "no API key is set"), ("SET", True, "is there"), ("UNSET", False, "is missing")],
)
def test_a_provider_is_told_with_its_gates_and_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, variable: str | None, ok: bool, told: str
) -> None:
    monkeypatch.setenv("SET", "canary-key")
    settings = Settings.parse(
        {
            "store": {"path": str(tmp_path / "memory.db")},
            "provider": {
                "url": "http://127.0.0.1:9/v1",
                "region": "here",
                "model": "m",
                "model_revision": "1",
                "dimensions": 8,
                "api_key_variable": variable,
            },
            "pricing": {"usd_per_million_tokens": "0.02"},
            "ceilings": {"quanta_per_day": 1, "requests_per_day": 1},
            "egress": {"allowed_regions": ["here"], "allowed_hosts": ["http://127.0.0.1:9"]},
            "admission": {"evidence": str(tmp_path / "evidence")},
        }
    )
    with assembled(settings) as memory:
        finding = _found(memory, settings)["provider"]

    assert finding.ok is ok
    assert "0 of 12 gates are met" in finding.found
    assert told in finding.found
    assert "canary" not in repr(finding)
