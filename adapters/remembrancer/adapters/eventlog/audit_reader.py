"""States of events for an audit, read in a third of the time.

msgspec decodes a state straight into a structure with the event's fields, of their types, and
writes it back: what comes out as it went in is canonical.  Whatever it can't vouch for (another
spelling of a float, anything that isn't as usual) the exact reader decides.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Any, Final, Literal, get_type_hints
from uuid import UUID

from eventsourcing.domain import AggregateEvent
from typing_extensions import override

from remembrancer.adapters.eventlog.codec import CanonicalTranscoder
from remembrancer.application.audit.reading import (
    ENTRIES,
    RANKS_ARE_SOUND,
    StateReader,
    utc_time,
)
from remembrancer.domain.stored_format import EVENTS

_IDENTITY: Final = ("originator_id", "originator_version")
_TIMESTAMP: Final = "timestamp"
_SPACE: Final = "embedding_tuple"
_TYPE: Final = "_type_"
_TYPE_MARK: Final = b'"_type_":'
"""A key: a text that says the same is followed by no colon."""
_ID_DIGITS: Final = 32
_ALIKE_FROM, _ALIKE_TO = 1e-4, 1e16
"""Between these msgspec spells floats as Python does."""

_Hints = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Readers:
    """How states of one event are read: the usual ones first."""

    decoders: tuple[Callable[[bytes], Any], ...]
    id_name: str
    """The one field that holds an id, if there is one."""
    time_name: str
    """The one that holds a time, beside the time of the event, if there is one."""
    has_entries: bool


class FastStateReader(StateReader):
    """Reads what is as usual, and leaves the rest to the exact reader."""

    def __init__(self) -> None:
        super().__init__(CanonicalTranscoder().parsed)
        import msgspec  # noqa: PLC0415 - 11 ms, wanted only where a log is audited

        self._encode = msgspec.json.Encoder(order="sorted").encode
        self._parse = msgspec.json.Decoder().decode
        structures = _Structures()
        self._readers = {topic: structures.readers(event) for topic, event in EVENTS.items()}
        self._usual = {
            topic: (one.decoders[0], one.id_name, one.time_name)
            for topic, one in self._readers.items()
            if not one.has_entries
        }

    @override
    def spell(self, value: Any) -> bytes:
        return self._encode(value)

    @override
    def parse(self, data: bytes) -> Any:
        return self._parse(data)

    @override
    def read(self, topic: str, data: bytes) -> tuple[Any, str]:
        usual = self._usual.get(topic)
        if usual is None:
            return self._read_entries(topic, data)
        decode, id_name, time_name = usual
        try:
            state = decode(data)
            if self._encode(state) != data:
                return super().read(topic, data)
            state.timestamp = utc_time(state.timestamp._data_)
            if id_name:
                text = getattr(state, id_name)._data_
                if len(text) != _ID_DIGITS or bytes.fromhex(text).hex() != text:
                    return super().read(topic, data)
                setattr(state, id_name, text)
            if time_name:
                value = getattr(state, time_name)
                if value is not None:
                    setattr(state, time_name, utc_time(value._data_))
        except (AttributeError, ValueError, RecursionError):  # Among them msgspec's own.
            return super().read(topic, data)
        return state, ""

    def _read_entries(self, topic: str, data: bytes) -> tuple[Any, str]:
        """Read a selection: its embedding tuple is of any type, so a typed value might hide."""
        for decode in self._readers[topic].decoders:
            try:
                state = decode(data)
                if (
                    self._encode(state) == data
                    and (state.embedding_tuple is None or data.count(_TYPE_MARK) == 1)
                    and _TYPE not in state.filter
                    and (hasattr(state, RANKS_ARE_SOUND) or all(map(_is_alike, state.entries)))
                ):
                    state.timestamp = utc_time(state.timestamp._data_)
                    return state, ""
                break
            except (AttributeError, ValueError, RecursionError):  # As above.
                continue
        return super().read(topic, data)


class _Structures:
    """Makes structures for each event class."""

    def __init__(self) -> None:
        import msgspec  # noqa: PLC0415 - as above

        self._msgspec = msgspec
        self._typed = {UUID: self._made("uuid_hex"), datetime: self._made("datetime_iso")}
        # What msgspec proves while it decodes costs a tenth of asking each number for it.
        rank = Annotated[int, msgspec.Meta(ge=1)]
        number = Annotated[float, msgspec.Meta(ge=_ALIKE_FROM, lt=_ALIKE_TO)]
        usual = {"score": number, "sparse_rank": rank | None, "sparse_score": number | None}
        self._entries: list[tuple[_Hints, Any]] = [
            ({_SPACE: None}, self._entry(usual, dense_rank=None, dense_score=None)),
            (
                {_SPACE: dict[str, Any]},
                self._entry(usual, dense_rank=rank | None, dense_score=number | None),
            ),
        ]
        """What a selection's entries usually are: without a space of vectors, and with one."""
        self._any_entry = self._entry(
            {"score": float, "sparse_rank": int | None, "sparse_score": float | None},
            dense_rank=int | None,
            dense_score=float | None,
        )

    def readers(self, event: type[AggregateEvent]) -> _Readers:
        """Return how states of ``event`` are read.  Every event has a ``timestamp``."""
        hints = get_type_hints(event)
        names = sorted(one.name for one in fields(event) if one.name not in _IDENTITY)
        made: _Hints = {}
        found: dict[type, list[str]] = {UUID: [], datetime: []}
        for name in names:
            hint = hints[name]
            for kind, structure in self._typed.items():
                if hint in {kind, kind | None}:
                    found[kind].append(name)
                    hint = structure
            made[name] = hint
        optional = {name for name in names if hasattr(event, name)}
        [id_name] = found[UUID] or [""]
        [time_name] = [one for one in found[datetime] if one != _TIMESTAMP] or [""]
        return _Readers(
            decoders=tuple(self._decoders(event.__name__, made, optional)),
            id_name=id_name,
            time_name=time_name,
            has_entries=ENTRIES in made,
        )

    def _decoders(
        self, event: str, hints: _Hints, optional: set[str]
    ) -> Iterator[Callable[[bytes], Any]]:
        if ENTRIES not in hints:
            yield self._decoder(event, hints, optional, {})
            return
        for others, entry in self._entries:
            usual = {**hints, **others, ENTRIES: _list_of(entry)}
            yield self._decoder(event, usual, optional, {RANKS_ARE_SOUND: True})
        rare = {**hints, ENTRIES: _list_of(self._any_entry)}
        yield self._decoder(event, rare, optional, {})

    def _decoder(
        self, event: str, hints: _Hints, optional: set[str], proven: dict[str, bool]
    ) -> Callable[[bytes], Any]:
        structure = self._msgspec.defstruct(
            event,
            [
                (name, hint | None, None) if name in optional else (name, hint)
                for name, hint in hints.items()
            ],
            namespace=proven,
            forbid_unknown_fields=True,
            kw_only=True,
            omit_defaults=True,
            gc=False,
        )
        return self._msgspec.json.Decoder(structure).decode

    def _entry(self, numbers: _Hints, **dense: Any) -> Any:
        """Return the structure of a selected entry."""
        hints = {"digest": str, "entry_id": str, "version": int, **numbers, **dense}
        return self._msgspec.defstruct(
            "Entry", sorted(hints.items()), forbid_unknown_fields=True, gc=False
        )

    def _made(self, kind: str) -> Any:
        """Return the structure of a typed value."""
        return self._msgspec.defstruct(
            "Typed",
            [("_data_", str), ("_type_", Literal[kind])],
            forbid_unknown_fields=True,
            gc=False,
        )


def _list_of(structure: Any) -> Any:
    return list[structure]


def _is_alike(entry: Any) -> bool:
    # Thirty numbers a selection: written out, it takes a third.
    score, dense, sparse = entry.score, entry.dense_score, entry.sparse_score
    return (
        (_ALIKE_FROM <= score < _ALIKE_TO or score == 0)
        and (dense is None or _ALIKE_FROM <= abs(dense) < _ALIKE_TO or dense == 0)
        and (sparse is None or _ALIKE_FROM <= sparse < _ALIKE_TO or sparse == 0)
    )
