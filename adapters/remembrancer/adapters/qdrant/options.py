"""How Qdrant is reached, and how its collections are built and asked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Quantization = Literal["none", "scalar", "binary"]
Consistency = int | Literal["majority", "quorum", "all"]


def _no_key() -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class QdrantOptions:
    """One server or cluster by ``url``, or a folder of this machine by ``path``.

    What is left None is the server's own default.
    """

    url: str | None = None
    path: Path | None = None
    grpc: bool = False
    grpc_port: int = 6334
    ca_file: Path | None = None
    api_key: Callable[[], str | None] = field(default=_no_key, repr=False)
    """Gives the key when a client is made; a refused one is asked for again."""
    timeout_s: int = 2
    """For a query, all its requests together."""
    write_timeout_s: int = 30
    """For a write, and for reading what has to be written elsewhere."""
    prefix: str = "remembrancer"
    """Begins the names of this memory's collections."""
    exact: bool = False
    """Compare with every vector that the filter lets through, instead of walking a graph."""
    hnsw_m: int | None = None
    hnsw_payload_m: int | None = None
    hnsw_ef_construct: int | None = None
    hnsw_ef: int = 128
    """How widely the graph is searched; never less than the number asked for."""
    quantization: Quantization = "none"
    oversampling: float = 2.0
    """With quantisation: how many times more are looked at before originals decide."""
    on_disk: bool = False
    """Whether original vectors stay on disk, read through the page cache."""
    shards: int | None = None
    replicas: int | None = None
    write_consistency: int | None = None
    """How many replicas must have a write before it counts."""
    read_consistency: Consistency | None = None

    @property
    def place(self) -> str:
        """What errors call it; never holds a secret."""
        return f"qdrant at {self.path if self.url is None else self.url}"
