"""Reading an answer's body without ever holding more than was agreed."""

import zlib

from remembrancer.application.ports.embedding_provider import ProviderError, ProviderFailure

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_TAKEN_AT_ONCE = 65_536


class BoundedBody:
    """Collects decoded bytes up to a cap.

    ``identity`` was asked for; ``gzip`` is understood all the same, since some servers pack
    whatever they are asked for.  The decoder never unfolds more than is still allowed.
    """

    def __init__(self, *, encoding: str, bytes_max: int) -> None:
        if encoding not in {"", "identity", "gzip", "x-gzip"}:
            raise ProviderError(ProviderFailure.MALFORMED)
        self._decoder = zlib.decompressobj(_GZIP_WINDOW) if "gzip" in encoding else None
        self._bytes_max = bytes_max
        self._body = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take what arrived.

        Raises:
            ProviderError: ``too_large`` or ``malformed``.
        """
        if self._decoder is None:
            self._keep(chunk)
            return
        while chunk:
            self._keep(self._unpacked(self._decoder, chunk))
            chunk = self._decoder.unconsumed_tail
            if self._decoder.unused_data:
                raise ProviderError(ProviderFailure.MALFORMED)

    def whole(self) -> bytes:
        """Return the complete body.

        Raises:
            ProviderError: ``malformed``: a packed body ended early.
        """
        if self._decoder is not None and not self._decoder.eof:
            raise ProviderError(ProviderFailure.MALFORMED)
        return bytes(self._body)

    def _unpacked(self, decoder: "zlib._Decompress", chunk: bytes) -> bytes:
        # One byte past the cap is enough to know that it was passed.
        room = min(_TAKEN_AT_ONCE, self._bytes_max - len(self._body) + 1)
        broken = False
        try:
            return decoder.decompress(chunk, room)
        except zlib.error:
            broken = True
        if broken:
            raise ProviderError(ProviderFailure.MALFORMED)
        return b""

    def _keep(self, decoded: bytes) -> None:
        if len(self._body) + len(decoded) > self._bytes_max:
            raise ProviderError(ProviderFailure.TOO_LARGE)
        self._body += decoded
