"""Embedding in this process, offline: the mean of a static model's token rows."""

from array import array
from collections.abc import Sequence

from typing_extensions import override

from remembrancer.adapters.wordllama.static_model import (
    DIMENSIONS,
    MODEL,
    PACKAGE,
    WEIGHTS_SHA256,
    StaticModel,
)
from remembrancer.application.ports.embedder import Embedder
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import SettingsError
from remembrancer.domain.vector import Vector

INPUT_PREPARATION = "plain-runs4096@1"
"""The text as it is, whole; only runs of over 4,096 characters without a space are cut."""

DIMENSIONS_OFFERED = (64, 128, DIMENSIONS)

_ROWS_AT_ONCE = 4_096
"""4 MB of rows: bounds the memory that a long text takes."""


class WordLlamaEmbedder(Embedder):
    """Vectors that are the same to the last bit, alone or among others, on every machine.

    Rows are float16 numbers, all of them multiples of 2^-24 below 16, so that sums of up to
    2^25 of them are exact in float64 and their order doesn't matter; one division and one
    rounding to float32 remain.
    """

    def __init__(self, *, model: StaticModel, dimensions: int = DIMENSIONS) -> None:
        """Use the first ``dimensions`` of each row.

        The model was trained so that its first 64 and 128 dimensions are models of their own.

        Raises:
            SettingsError: it has no such number of dimensions.
        """
        if dimensions not in DIMENSIONS_OFFERED:
            raise SettingsError(
                setting="embedder.dimensions",
                problem=f"{MODEL} offers {', '.join(map(str, DIMENSIONS_OFFERED))}",
            )
        self._model = model
        self._dimensions = dimensions
        self._tuple = EmbeddingTuple(
            provider=PACKAGE,
            model=MODEL,
            model_revision=f"sha256:{WEIGHTS_SHA256[:16]}",
            dimensions=dimensions,
            input_preparation=INPUT_PREPARATION,
        )

    @property
    @override
    def embedding_tuple(self) -> EmbeddingTuple:
        return self._tuple

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self._embed(text, kept=True) for text in texts]

    @override
    def embed_query(self, text: str) -> Vector | None:
        return self._embed(text, kept=False)

    def _embed(self, text: str, *, kept: bool) -> "array[float] | None":
        """Return the mean of the text's rows; None for one that is empty or only white space."""
        if not text or text.isspace():
            return None
        import numpy as np  # noqa: PLC0415 -- 70 ms: only when something is embedded

        rows = self._model.rows()
        ids = np.frombuffer(self._model.token_ids(text, asked_again=kept), dtype=np.intc)
        total = np.add.reduce(rows.take(ids[:_ROWS_AT_ONCE]), axis=0, dtype=np.float64)
        for start in range(_ROWS_AT_ONCE, len(ids), _ROWS_AT_ONCE):
            some = rows.take(ids[start : start + _ROWS_AT_ONCE])
            total += np.add.reduce(some, axis=0, dtype=np.float64)
        mean = total[: self._dimensions] / len(ids)
        vector = array("f", mean.astype(np.float32).tobytes())
        return vector if any(vector) else None
