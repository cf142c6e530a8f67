"""Embedders keep the contract; the default one works offline and is what it says it is."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from typing_extensions import override

from remembrancer.adapters.wordllama import static_model
from remembrancer.adapters.wordllama.embedder import WordLlamaEmbedder
from remembrancer.adapters.wordllama.static_model import StaticModel
from remembrancer.application.ports.embedder import Embedder
from remembrancer.contracts.embedder import TEXTS, EmbedderContract, HashingEmbedder
from remembrancer.domain.errors import SettingsError

MODEL = StaticModel()

REFERENCE = """
    import json, sys
    from pathlib import Path
    import wordllama
    model = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )
    print(json.dumps(model.embed(json.load(sys.stdin)).tolist()))
"""

OFFLINE = """
    import socket, sys
    def refuse(*_args, **_kwargs):
        raise AssertionError("no network")
    socket.socket.connect = socket.socket.bind = socket.getaddrinfo = refuse

    from remembrancer.adapters.wordllama.embedder import WordLlamaEmbedder
    from remembrancer.adapters.wordllama.static_model import StaticModel
    from remembrancer.adapters.wordllama.token_counter import WordLlamaTokenCounter
    model = StaticModel()
    embedder, counter = WordLlamaEmbedder(model=model), WordLlamaTokenCounter(model=model)
    str(embedder.embedding_tuple), counter.name
    heavy = {"numpy", "tokenizers", "safetensors", "wordllama", "huggingface_hub", "requests"}
    assert not heavy & sys.modules.keys(), "imported before use"

    assert counter.count("some text") > 0
    assert "numpy" not in sys.modules, "counting needs no numpy"
    assert embedder.embed_query("some text") is not None
    assert not {"wordllama", "huggingface_hub", "requests"} & sys.modules.keys()
"""

FORKED = """
    import os
    from remembrancer.adapters.wordllama.embedder import WordLlamaEmbedder
    from remembrancer.adapters.wordllama.static_model import StaticModel
    embedder = WordLlamaEmbedder(model=StaticModel())
    before = embedder.embed_query("before the fork")
    child = os.fork()
    if child == 0:
        os._exit(0 if embedder.embed_query("before the fork") == before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def run(program: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


class TestWordLlamaEmbedder(EmbedderContract):
    @override
    def embedder(self) -> Embedder:
        return WordLlamaEmbedder(model=MODEL)


class TestHashingEmbedder(EmbedderContract):
    @override
    def embedder(self) -> Embedder:
        return HashingEmbedder(dimensions=64)


def test_vectors_are_those_of_the_package_itself() -> None:
    texts = [*TEXTS, "<s>marks</s> and <unk>", "▁low lines▁", "word " * 3_000, "\r\n\r\n{\r}"]

    reference = run(REFERENCE, json.dumps(texts))
    ours = WordLlamaEmbedder(model=MODEL).embed_documents(texts)

    assert reference.returncode == 0, reference.stderr
    for vector, expected in zip(ours, json.loads(reference.stdout), strict=True):
        assert vector is not None
        assert list(vector) == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_rows_are_those_of_the_file_to_the_last_bit_however_often_they_are_asked_for() -> None:
    file = static_model._package_folder() / "weights/l2_supercat_256.safetensors"
    narrow = load_file(file)["embedding.weight"]
    ids = np.array([31_999, 5, 5, 0], dtype=np.intc)
    rows = StaticModel().rows()

    some, all_of_them = rows.take(ids), rows.take(np.arange(len(narrow), dtype=np.intc))

    assert np.array_equal(some, narrow[ids].astype(np.float32))
    assert np.array_equal(all_of_them, narrow.astype(np.float32))
    assert np.array_equal(rows.take(ids), some)


def test_works_without_network_and_loads_only_what_is_used() -> None:
    answer = run(OFFLINE)

    assert answer.returncode == 0, answer.stderr


def test_works_in_a_forked_child_without_a_warning() -> None:
    answer = run(FORKED)

    assert (answer.returncode, answer.stderr) == (0, "")


def test_the_tuple_names_model_and_preparation() -> None:
    embedding_tuple = WordLlamaEmbedder(model=MODEL).embedding_tuple

    assert embedding_tuple.model_dump() == {
        "provider": "wordllama",
        "model": "l2_supercat_256",
        "model_revision": "sha256:64b47a2dc493cb8e",
        "dimensions": 256,
        "distance": "cosine",
        "input_preparation": "plain-runs4096@1",
    }


def test_fewer_dimensions_are_the_first_ones_in_a_space_of_their_own() -> None:
    whole, part = WordLlamaEmbedder(model=MODEL), WordLlamaEmbedder(model=MODEL, dimensions=64)

    vector, shorter = whole.embed_query("some text"), part.embed_query("some text")

    assert vector is not None
    assert shorter == vector[:64]
    assert part.embedding_tuple.digest != whole.embedding_tuple.digest


def test_dimensions_that_the_model_lacks_are_refused() -> None:
    with pytest.raises(SettingsError, match="64, 128, 256"):
        WordLlamaEmbedder(model=MODEL, dimensions=384)


def test_a_missing_model_file_says_what_to_do(tmp_path: Path) -> None:
    embedder = WordLlamaEmbedder(model=StaticModel(folder=tmp_path))

    with pytest.raises(SettingsError, match="install it again"):
        embedder.embed_query("text")


def test_another_model_than_the_tuple_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "l2_supercat_256.safetensors").write_bytes(b"other")
    embedder = WordLlamaEmbedder(model=StaticModel(folder=tmp_path))

    with pytest.raises(SettingsError, match="another l2_supercat_256"):
        embedder.embed_query("text")


def test_hashing_embedders_of_two_models_name_two_spaces() -> None:
    one, other = HashingEmbedder(model="one"), HashingEmbedder(model="other")

    assert one.embedding_tuple.digest != other.embedding_tuple.digest
    assert one.embed_query("same text") != other.embed_query("same text")
