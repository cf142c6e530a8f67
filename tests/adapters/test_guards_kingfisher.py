"""Kingfisher as the guards' second engine."""

import socket
from pathlib import Path

import pytest
from tests.adapters.local_guards import BASE62

from remembrancer.adapters.guards import KingfisherEngine, LocalGuards, ResidencyRules
from remembrancer.application.ports.guards import GuardReason
from remembrancer.contracts.guards import ALLOWED, ALLOWED_HOST, HARMLESS, drawn
from remembrancer.domain.sensitivity import Sensitivity


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> KingfisherEngine:
    pytest.importorskip("kingfisher_sdk", reason="the extra `guards` isn't installed")
    return KingfisherEngine(cache_folder=tmp_path_factory.mktemp("rules"))


def test_the_second_engine_finds_what_it_knows(engine: KingfisherEngine) -> None:
    found = engine.rules_in("use gh" + "p_" + drawn(BASE62, 36))

    assert any("github" in rule for rule in found)


def test_a_finding_of_the_second_engine_alone_withholds() -> None:
    class Suspicious:
        name = "suspicious@1"

        def rules_in(self, text: str) -> tuple[str, ...]:
            return ("ladder",) if "ladder" in text else ()

    residency = ResidencyRules(region="eu", allowed=[ALLOWED_HOST])
    guards = LocalGuards(residency=residency, engines=[Suspicious()])

    found = guards.check("where is the ladder", declared=Sensitivity.PUBLIC, destination=ALLOWED)

    assert found.reason is GuardReason.CREDENTIAL
    assert [finding.rule_set for finding in found.findings] == ["suspicious@1"]


def test_the_second_engine_finds_nothing_in_ordinary_texts(engine: KingfisherEngine) -> None:
    assert [text for text in HARMLESS if engine.rules_in(text)] == []


def test_the_second_engine_opens_no_socket_and_validates_nothing(
    engine: KingfisherEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kingfisher_sdk  # noqa: PLC0415 - an extra; the fixture skips without it

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(socket, "socket", forbidden)
    for name in ("Validator", "Revoker"):
        monkeypatch.setattr(kingfisher_sdk, name, forbidden)
    before = sockets()

    assert engine.rules_in("use gh" + "p_" + drawn(BASE62, 36))
    assert sockets() == before


def sockets() -> list[str]:
    return [
        str(link.readlink())
        for link in Path("/proc/self/fd").iterdir()
        if link.is_symlink() and str(link.readlink()).startswith("socket:")
    ]


def test_the_second_engine_writes_nothing_unless_it_is_given_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("kingfisher_sdk", reason="the extra `guards` isn't installed")
    for name in ("HOME", "XDG_CACHE_HOME", "KF_RULE_CACHE_DIR", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))

    KingfisherEngine().rules_in("nothing to see")

    assert list(tmp_path.rglob("*")) == []
