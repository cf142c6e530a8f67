"""The embedding tuple: everything that decides which space a vector lies in."""

import hashlib
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field

from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.parsed import Name, Parsed

DIMENSIONS_MAX = 16_384


TUPLES_REMEMBERED = 32
"""All selections of a store name the same few; to check one takes longer than to find it."""


class EmbeddingTuple(Parsed):
    """Names one vector space.  Vectors of two tuples are never compared."""

    provider: Name
    model: Name
    model_revision: Name
    dimensions: Annotated[int, Field(ge=1, le=DIMENSIONS_MAX)]
    distance: Literal["cosine"] = "cosine"
    input_preparation: Name
    """Version of how a text is made ready for the model, such as ``plain@1``."""

    def __eq__(self, other: object) -> bool:
        # Three times in each write: pydantic's own comparing takes five times as long.
        return self is other or (type(other) is EmbeddingTuple and vars(self) == vars(other))

    def __hash__(self) -> int:
        return hash((self.provider, self.model, self.model_revision, self.dimensions))

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits; names indexes."""
        return hashlib.sha256(canonical_json(self.model_dump(mode="json"))).hexdigest()

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}@{self.model_revision} ({self.dimensions} dimensions)"


@lru_cache(maxsize=TUPLES_REMEMBERED, typed=True)  # 256.0 isn't 256, though they are equal.
def recorded_tuple(**fields: Any) -> EmbeddingTuple:
    """Return the tuple that a record names.

    Raises:
        InvalidInputError, TypeError: none could be recorded so.
    """
    return EmbeddingTuple(**fields)
