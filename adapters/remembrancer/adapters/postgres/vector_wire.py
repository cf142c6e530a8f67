"""Vectors as pgvector sends and takes them in PostgreSQL's binary format."""

import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Any

from psycopg import Cursor
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format
from typing_extensions import override

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.domain.vector import Vector

_HEADER = struct.Struct(">HH")
"""The number of dimensions, and a zero."""
EXTENSION = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
"""The schema that pgvector is in, quoted as need be: it isn't where names are looked up."""


class Wire(bytes):
    """A vector in the binary format."""

    __slots__ = ()


class _WireDumper(Dumper):
    format = Format.BINARY
    # Without a type of its own: the server knows from the cast beside it.

    @override
    def dump(self, obj: Any) -> Buffer:
        return bytes(obj)


def to_wire(vector: Vector) -> Wire:
    """Return what stands for a vector of float32 numbers in a statement."""
    numbers = array("f", vector)
    if sys.byteorder == "little":
        numbers.byteswap()
    return Wire(_HEADER.pack(len(numbers), 0) + numbers.tobytes())


def from_wire(stored: bytes) -> "array[float]":
    """Read a vector that was selected by :func:`vectors_cursor`."""
    numbers = array("f")
    numbers.frombytes(stored[_HEADER.size :])
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def vectors_cursor(connection: Connection) -> Cursor[tuple[Any, ...]]:
    """Return a cursor that takes :class:`Wire` and gives back the bytes of vectors."""
    cursor: Cursor[tuple[Any, ...]] = connection.cursor(binary=True)
    cursor.adapters.register_dumper(Wire, _WireDumper)
    return cursor


def scaled(vector: Sequence[float], length: float) -> "array[float]":
    """Return a vector in the same direction whose length is near 1."""
    return array("f", [number / length for number in vector])
