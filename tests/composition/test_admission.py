"""Nothing is sent without evidence, and everything with it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.composition.remote_world import QUERY, WHO, a_context, open_world, settings_for

from remembrancer.adapters.provider import OpenAICompatibleProvider
from remembrancer.application.ports import SemanticQueryLookup
from remembrancer.application.ports.embedding_provider import EmbeddingProvider
from remembrancer.application.prepare_queries import PrepareQueries
from remembrancer.application.prepared_queries import PreparedQueries
from remembrancer.application.remote_indexing import RemoteIndexing
from remembrancer.composition import Settings, embedded
from remembrancer.composition.assembly import wired
from remembrancer.composition.preparation import Preparation
from remembrancer.domain.errors import NotAdmittedError
from remembrancer.domain.gate import Gate

HTTP = {"aiohttp", "certifi", "h11", "h2", "httpcore", "httpcore2", "httpx", "httpx2",
        "http.client", "openai", "requests", "urllib3"}  # fmt: skip
SENDING = (EmbeddingProvider, PrepareQueries, PreparedQueries, RemoteIndexing,
           SemanticQueryLookup, Preparation)  # fmt: skip


# -- No other way in -----------------------------------------------------------------------------


def _provided(settings: Settings) -> dict[str, Any]:
    """Return what every provider of the container gives, asked one after the other."""
    container = wired(settings)
    container.init_resources()
    given: dict[str, Any] = {}
    try:
        for name, provider in container.providers.items():
            try:
                given[name] = provider()
            except NotAdmittedError as refusal:
                given[name] = refusal
        return given
    finally:
        container.shutdown_resources()


def _reachable(value: object, depth: int = 6) -> list[object]:
    """Return what hangs on an object of ours, attribute by attribute."""
    if depth == 0 or not type(value).__module__.startswith("remembrancer."):
        return [value]
    found = [value]
    names = [*getattr(value, "__dict__", {}), *getattr(type(value), "__slots__", ())]
    for name in names:
        found += _reachable(getattr(value, name, None), depth - 1)
    return found


def _sends(value: object) -> bool:
    return not set(SENDING).isdisjoint(type(value).__mro__)


def _variants(folder: Path) -> dict[str, Settings]:
    """Return settings in which each field that might open a door is as wide as it goes."""
    url = "http://127.0.0.1:9/v1"
    wide: dict[str, dict[str, Any]] = {
        "as it is": {},
        "everything allowed": {
            "egress": {"allowed_regions": ["here", "*"], "allowed_hosts": [url[:-3]]}
        },
        "no price": {"pricing": {"usd_per_million_tokens": "0"}},
        "no limits": {"ceilings": {"quanta_per_day": 10**13, "requests_per_day": 10**9}},
        "a key": {"provider": {"api_key_variable": "PATH"}},
        "a proxy": {"provider": {"proxy_url": "http://127.0.0.1:9"}},
        "an embedder": {"embedder": {"provider": "wordllama"}},
        "in memory": {"store": {"backend": "memory"}},
        "evidence elsewhere": {"admission": {"evidence": Path("/")}},
    }
    return {name: settings_for(url, folder, **sections) for name, sections in wide.items()}


def test_the_settings_have_no_other_fields_than_those_that_were_tried() -> None:
    """Whoever adds one has to say here that it opens nothing."""
    fields = {
        f"{section}.{name}"
        for section, known in Settings.model_fields.items()
        for name in getattr(_section(known.annotation), "model_fields", {})
    }

    assert {name for name in fields if "admi" in name} == {"admission.evidence"}
    assert not {name for name in fields if any(word in name for word in
                ("skip", "force", "bypass", "allow_all", "unsafe", "test"))}  # fmt: skip


def _section(annotation: Any) -> Any:
    return next((one for one in getattr(annotation, "__args__", ()) if one), annotation)


@pytest.mark.parametrize("variant", _variants(Path()))
def test_without_evidence_no_provider_of_the_container_yields_a_sender(
    variant: str, tmp_path: Path
) -> None:
    given = _provided(_variants(tmp_path)[variant])

    assert isinstance(given.pop("semantic_lookup"), NotAdmittedError)
    assert isinstance(given.pop("query_preparer"), NotAdmittedError)
    assert given.pop("preparation") is None
    reached = [one for value in given.values() for one in _reachable(value)]
    assert len(reached) > 100
    assert not [one for one in reached if _sends(one)]


def test_with_evidence_the_walk_does_find_them(tmp_path: Path) -> None:
    """Or the walk above would prove nothing."""
    with open_world(tmp_path) as world:
        world.admit()

        given = _provided(world.settings)

    reached = [one for value in given.values() for one in _reachable(value)]
    assert {type(one) for one in reached if _sends(one)} >= {
        OpenAICompatibleProvider, PrepareQueries, PreparedQueries, RemoteIndexing, Preparation,
    }  # fmt: skip


@pytest.mark.parametrize("gate", Gate)
def test_eleven_gates_open_nothing_and_the_twelfth_is_named(gate: Gate, tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit(one for one in Gate if one is not gate)
        memory = world.open()

        for asked in (memory.semantic_lookup, memory.query_preparer):
            with pytest.raises(NotAdmittedError) as refusal:
                asked()
            assert refusal.value.missing_gates == (gate.value,)


def test_an_embedded_memory_has_neither(tmp_path: Path) -> None:
    with embedded(tmp_path / "memory.db") as memory:
        with pytest.raises(NotAdmittedError) as refusal:
            memory.prepare([QUERY], a_context(), **WHO)

        assert len(refusal.value.missing_gates) == len(Gate)


@pytest.mark.parametrize("admitted", [False, True])
def test_no_http_client_is_loaded_before_the_first_request(
    admitted: bool,  # noqa: FBT001  # a case
    tmp_path: Path,
) -> None:
    with open_world(tmp_path) as world:
        if admitted:
            world.admit()
        script = (
            "import sys\n"
            "from pathlib import Path\n"
            "from tests.composition.remote_world import *\n"
            "before = set(sys.modules)\n"
            f"settings = settings_for({world.server.url!r}, Path({str(tmp_path)!r}))\n"
            "with production(settings) as memory:\n"
            "    memory.remember(an_entry('password: hunter2-' * 9))\n"
            "    memory.recall(a_query('password'), a_context())\n"
            "    memory.gates(), memory.spend(tenant='acme')\n"
            "print('\\n'.join(sorted(set(sys.modules) - before)))\n"
        )

        run = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )

    assert not HTTP & set(run.stdout.split())
    assert world.server.connections == 0


# -- With evidence -------------------------------------------------------------------------------


def test_with_all_evidence_both_appear(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        memory = world.open()

        assert isinstance(memory.semantic_lookup(), PreparedQueries)
        assert isinstance(memory.query_preparer(), PrepareQueries)


def test_evidence_of_another_ceiling_opens_nothing(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        world.change(ceilings={"requests_per_day": 999})
        memory = world.open()

        with pytest.raises(NotAdmittedError) as refusal:
            memory.query_preparer()
        assert len(refusal.value.missing_gates) == len(Gate)


def test_settings_that_changed_since_they_were_read_open_nothing(tmp_path: Path) -> None:
    """Parts of the old settings must not run under the new ones' admission."""
    with open_world(tmp_path) as world:
        stale = world.settings
        world.change(ceilings={"requests_per_day": 999})
        world.admit()
        current, world.settings = world.settings, stale
        memory = world.open()
        world.settings = current

        container = wired(stale, lambda: current)
        container.init_resources()
        try:
            assert container.preparation() is None
        finally:
            container.shutdown_resources()
        with pytest.raises(NotAdmittedError):
            memory.query_preparer()
