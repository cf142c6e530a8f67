"""The embedding tuple: everything that decides which space a vector lies in."""

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.parsed import Name, Parsed

DIMENSIONS_MAX = 16_384


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
