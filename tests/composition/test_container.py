"""The object graph: what is provided, and what isn't until a configuration is admitted."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from remembrancer.composition import Settings, production
from remembrancer.composition.assembly import wired
from remembrancer.composition.container import Container
from remembrancer.composition.settings import EmbedderSettings, StoreSettings
from remembrancer.domain.errors import NotAdmittedError

BACKENDS = ["memory", "sqlite"]


def _settings(backend: str, folder: Path) -> Settings:
    return Settings.parse({"store": {"backend": backend, "path": str(folder / "memory.db")}})


@pytest.fixture(params=BACKENDS)
def container(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Container]:
    container = wired(_settings(request.param, tmp_path))
    container.init_resources()
    yield container
    container.shutdown_resources()


def test_with_nothing_admitted_there_is_no_preparer_and_no_lookup(container: Container) -> None:
    with pytest.raises(NotAdmittedError):
        container.semantic_lookup()
    with pytest.raises(NotAdmittedError):
        container.query_preparer()

    assert container.recall()._dense._lookup is None
    assert container.select()._recall is container.recall()


@pytest.mark.parametrize("backend", BACKENDS)
def test_production_provides_neither_too(tmp_path: Path, backend: str) -> None:
    with production(_settings(backend, tmp_path)) as memory:
        container = memory._container
        with pytest.raises(NotAdmittedError):
            container.semantic_lookup()
        with pytest.raises(NotAdmittedError):
            container.query_preparer()

        assert container.recall()._dense._lookup is None


def test_nothing_in_the_graph_of_an_unadmitted_memory_can_send(container: Container) -> None:
    parts: list[object] = [container.recall(), container.select(), container.build_pack()]
    parts += [container.remember(), container.correct(), container.reindex()]
    seen: set[str] = set()

    def walk(part: object, depth: int) -> None:
        seen.add(type(part).__module__)
        if depth and type(part).__module__.startswith("remembrancer."):
            for value in list(getattr(part, "__dict__", {}).values()):
                walk(value, depth - 1)

    for part in parts:
        walk(part, 6)

    assert "remembrancer.application.recall" in seen
    assert not {one for one in seen if "provider" in one or "http" in one or "prepare" in one}


def test_use_cases_share_the_ports_of_one_store(container: Container) -> None:
    store = container.store()

    assert container.remember()._log is container.replay()._log is store.log
    assert container.recall()._vault is container.erase()._vault is store.vault
    assert container.recall() is container.recall()


def test_without_an_embedder_recall_goes_by_words(tmp_path: Path) -> None:
    settings = Settings(
        store=StoreSettings(path=tmp_path / "m.db"), embedder=EmbedderSettings(provider="none")
    )
    with production(settings) as memory:
        assert memory.status().dense == "no_vector_index"


_USE = """
import json, sys
from pathlib import Path
from remembrancer.composition import Settings, production
from remembrancer.domain import *
settings = Settings.parse({"store": {"path": sys.argv[1]}})
with production(settings) as memory:
    memory.remember(NewEntry(tenant="a", owner="b", scope="c", text="some words",
                             sensitivity=Sensitivity.INTERNAL))
    query = RecallQuery(tenant="a", owner="b", principal="p", scopes=("c",), question="words",
                        read_ceiling=Sensitivity.INTERNAL)
    context = RecallContext(policy_version="p", retrieval_policy_version="r", surface="s",
                            task_digest="t", sensitivity_floor=Sensitivity.INTERNAL)
    assert memory.build_pack("s", "t", query, context, token_budget=500).included
print(json.dumps(sorted(sys.modules)))
"""


def test_no_http_client_is_loaded_by_a_memory_at_work(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _USE, str(tmp_path / "memory.db")],
        check=True,
        capture_output=True,
        text=True,
    )

    loaded = set(json.loads(done.stdout))
    clients = {"httpx", "httpcore", "h11", "requests", "aiohttp", "urllib3", "openai", "grpc"}
    clients |= {"qdrant_client", "psycopg", "sqlite3"}
    assert not loaded & clients
