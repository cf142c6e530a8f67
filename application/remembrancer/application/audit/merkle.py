"""The root of a Merkle tree over any number of leaves, with a hash for each of its levels.

As RFC 6962 (certificate transparency) defines it: leaves and inner nodes are hashed under
different first bytes, so that no inner node can be passed off as a leaf.
"""

from hashlib import sha256
from typing import Final

EMPTY_ROOT: Final = sha256(b"").digest()

_LEAF, _NODE = b"\x00", b"\x01"


class MerkleRoot:
    """Takes leaves in one by one."""

    def __init__(self) -> None:
        self._peaks: list[tuple[int, bytes]] = []
        """Roots of whole subtrees, the largest first: height and hash."""

    def add(self, leaf: bytes) -> None:
        """Take in the next leaf."""
        height, node = 0, sha256(_LEAF + leaf).digest()
        while self._peaks and self._peaks[-1][0] == height:
            node = _joined(self._peaks.pop()[1], node)
            height += 1
        self._peaks.append((height, node))

    def root(self) -> bytes:
        """Return the root over the leaves so far, 32 bytes."""
        if not self._peaks:
            return EMPTY_ROOT
        node = self._peaks[-1][1]
        for _, left in reversed(self._peaks[:-1]):
            node = _joined(left, node)
        return node


def _joined(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()
