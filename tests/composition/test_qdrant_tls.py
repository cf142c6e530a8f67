"""A memory whose vectors are in a Qdrant that speaks TLS; runs where one is named.

``REMEMBRANCER_TEST_QDRANT_TLS_URL``, see ``tests/adapters/qdrant_servers.py``.
"""

from pathlib import Path

import pytest
from tests.adapters.postgres_tls import Authority
from tests.adapters.qdrant_servers import (
    API_KEY,
    PREFIX,
    TLS_CA_FILE,
    TLS_GRPC_PORT,
    TLS_URL,
    remove_what_was_left,
)
from tests.application.house import a_context, a_query, an_entry

from remembrancer.adapters.qdrant.options import QdrantOptions
from remembrancer.composition import Settings, production
from remembrancer.composition.settings import StoreSettings, VectorStoreSettings
from remembrancer.domain import RecallMode

pytestmark = pytest.mark.skipif(
    TLS_URL is None, reason="needs a Qdrant with TLS, which nothing here can start"
)


@pytest.mark.parametrize("grpc", [False, True], ids=["http", "grpc"])
def test_recall_goes_by_meaning_over_tls_and_by_words_where_it_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, grpc: bool
) -> None:
    monkeypatch.setenv("TLS_KEY", API_KEY or "none")
    trusted = None if TLS_CA_FILE is None else Path(TLS_CA_FILE)
    another = Authority(tmp_path, "another").certificate

    try:
        with production(_over_tls(tmp_path, trusted, grpc=grpc)) as memory:
            memory.remember(an_entry())
            memory.project()
            over_tls = memory.recall(a_query(), a_context())
        with production(_over_tls(tmp_path, another, grpc=grpc)) as memory:
            without = memory.recall(a_query(), a_context())
    finally:
        remove_what_was_left(_reached_by(trusted))

    assert over_tls.mode is RecallMode.HYBRID
    assert (without.mode, without.mode_reason) == (
        RecallMode.SPARSE,
        "vector_index_unavailable",
    )
    assert [one.entry_id for one in without.entries] == [one.entry_id for one in over_tls.entries]


def _over_tls(folder: Path, ca_file: Path | None, *, grpc: bool) -> Settings:
    return Settings(
        store=StoreSettings(path=folder / "memory.db"),
        vector_store=VectorStoreSettings(
            backend="qdrant",
            url=TLS_URL,
            grpc=grpc,
            grpc_port=TLS_GRPC_PORT,
            ca_file=ca_file,
            api_key_variable="TLS_KEY",
            prefix=PREFIX,
        ),
    )


def _reached_by(ca_file: Path | None) -> QdrantOptions:
    return QdrantOptions(url=TLS_URL, ca_file=ca_file, api_key=lambda: API_KEY)
