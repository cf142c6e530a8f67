"""A ledger's state as bytes, so that loading stays cheap however long its stream grows.

A snapshot is a copy, never the truth: it may be dropped at any time, and one that can't be read
is replaced from the stream.  Its size depends on what is pending, not on what is past.
"""

from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from remembrancer.domain.canonical_json import canonical_json, parse_canonical_json
from remembrancer.domain.errors import MalformedRecordError
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import DayTotals, Reservation
from remembrancer.domain.reservation_ledger import ReservationLedger

FORMAT: Final = 1
"""Raised when the fields change; a snapshot of another format is dropped."""


class _State(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    format: Literal[1]
    tenant: str
    owner: str
    version: Annotated[int, Field(ge=1)]
    last_at: AwareDatetime
    days: dict[UtcDay, DayTotals]
    pending: list[Reservation]


def ledger_snapshot(ledger: ReservationLedger) -> bytes:
    """Return the state of a ledger without pending events, as canonical JSON.

    Raises:
        ValueError: events are pending, or there was none yet: there is nothing committed to copy.
    """
    if ledger.pending_events or ledger.version < 1:
        raise ValueError("only a committed ledger has a snapshot")
    state = _State(
        format=FORMAT,
        tenant=ledger.tenant,
        owner=ledger.owner,
        version=ledger.version,
        last_at=ledger.modified_on,
        days=dict(ledger.days),
        pending=list(ledger.pending),
    )
    return canonical_json(state.model_dump(mode="json"))


def ledger_from_snapshot(data: bytes, *, tenant: str, owner: str) -> ReservationLedger:
    """Return the ledger of (tenant, owner) as it was; apply the later events of its stream next.

    Raises:
        MalformedRecordError: not a snapshot of this format and ledger; read the stream instead.
    """
    try:
        parse_canonical_json(data)
        state = _State.model_validate_json(data)
    except (ValidationError, ValueError):
        raise _malformed(tenant, owner, "is not a ledger snapshot of this format") from None
    if (state.tenant, state.owner) != (tenant, owner):
        raise _malformed(tenant, owner, "is another ledger's snapshot")
    return ReservationLedger.restored(
        tenant,
        owner,
        version=state.version,
        last_at=state.last_at,
        days=state.days,
        pending=state.pending,
    )


def _malformed(tenant: str, owner: str, problem: str) -> MalformedRecordError:
    stream = ReservationLedger.create_id(tenant, owner)
    return MalformedRecordError(stream_id=stream, version=0, problem=problem)
