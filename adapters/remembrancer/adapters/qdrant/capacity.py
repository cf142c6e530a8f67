"""How much memory and disk a node needs: a formula, so that nobody has to believe a table.

Python for an operator: ``capacity(vectors=100_000_000, dimensions=384, quantization="scalar")``.
"""

from dataclasses import dataclass

from remembrancer.adapters.qdrant.options import Quantization

FLOAT_BYTES = 4
LINK_BYTES = 4
GRAPH_M = 16
"""Qdrant's default; the lowest level holds twice as many links a point, all others a fifth."""
BOOKKEEPING_BYTES = 200
"""Ids, versions and the seven indexed fields, a point."""
LABEL_BYTES = 300
"""Of labels and ids on disk, a point."""
HEADROOM = 1.5
"""For segments that are built anew beside the ones that answer, and for what comes in."""
_CODE_BYTES = {"none": 0.0, "scalar": 1.0, "binary": 1 / 8}


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one copy of a collection takes; times the replicas it is for the cluster."""

    memory_bytes: int
    disk_bytes: int


def capacity(
    *, vectors: int, dimensions: int, quantization: Quantization = "none", m: int = GRAPH_M
) -> Capacity:
    """Return what ``vectors`` of so many dimensions take.

    Without quantisation the originals stand in memory; with it (and ``on_disk = true``) their
    codes do, and the originals are read from disk for the few that are scored again.
    """
    original = FLOAT_BYTES * dimensions
    code = _CODE_BYTES[quantization] * dimensions
    graph = 2 * m * LINK_BYTES * 1.2
    resident = original if quantization == "none" else code
    memory = resident + graph + BOOKKEEPING_BYTES
    # The numbers as they were given lie in the payload too, in base64: four bytes for three.
    disk = original + original * 4 / 3 + code + graph + LABEL_BYTES
    return Capacity(
        memory_bytes=round(vectors * memory * HEADROOM),
        disk_bytes=round(vectors * disk * HEADROOM),
    )
