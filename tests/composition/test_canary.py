"""No question, subject, key or original where it doesn't belong (design section 10)."""

import base64
import gc
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.composition.remote_world import (
    KEY_VARIABLE,
    WHO,
    World,
    a_context,
    a_query,
    an_entry,
    open_world,
)

from remembrancer.composition import Remembrancer
from remembrancer.contracts.loopback_provider import (
    Behaviour,
    cut_off,
    honest,
    raw,
    redirect,
    reset,
    silent,
    status,
)
from remembrancer.domain import RecallQuery
from remembrancer.domain.errors import RemembrancerError
from remembrancer.domain.provider_answer import ANSWER_BYTES_MAX

QUESTION = "Does the quetzalcanary sing at dawn?"
SUBJECT = "subjectcanary"
ORIGINAL = "An originalcanary was seen near the pond."
KEY = "keycanary" + "-for-this-run"
PRIVATE = ("quetzalcanary", "subjectcanary", "originalcanary", "keycanary")
LONG = "x" * (ANSWER_BYTES_MAX + 1)

BEHAVIOURS: dict[str, Behaviour] = {
    "honest": honest(),
    "401 that echoes the key": status(401),
    "500": status(500),
    "redirect": redirect(307, "http://127.0.0.1:9/elsewhere"),
    "reset": reset(),
    "cut off": cut_off(),
    "no HTTP": raw(b"quetzalcanary keycanary\r\n\r\n"),
    "another model": honest(change=lambda answer: answer.update(model="keycanary")),
    "usage a text": honest(change=lambda answer: answer.update(usage="quetzalcanary")),
    "too large": honest(change=lambda answer: answer.update(padding=LONG)),
}
ASKED = a_query(QUESTION, subjects=(SUBJECT,))


def found_in(data: str | bytes) -> list[str]:
    """Return which private words are in there, as they are or in base64."""
    plain = data.encode() if isinstance(data, str) else data
    return [
        word
        for word in PRIVATE
        if word.encode() in plain or base64.b64encode(word.encode())[:-4] in plain
    ]


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Log at DEBUG whatever any library says, also what it would keep to itself."""
    loggers = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict)]
    before = [(one, one.level, one.disabled, one.propagate) for one in loggers]
    caplog.set_level(logging.DEBUG)
    for one in loggers:
        one.setLevel(logging.DEBUG)
        one.disabled, one.propagate = False, True
    yield caplog
    for one, level, disabled, propagate in before:
        one.setLevel(level)
        one.disabled, one.propagate = disabled, propagate


def _worked(world: World, memory: Remembrancer) -> list[Any]:
    """Do everything that touches private things; return all that came of it."""
    results: list[Any] = []

    def tried(call: Callable[[], Any]) -> None:
        try:
            results.append(call())
        except RemembrancerError as error:
            results.append(error)

    four = [ASKED, ASKED, a_query(QUESTION, owner="bo"), a_query(f"{QUESTION} {KEY}")]
    tried(lambda: memory.remember(an_entry(ORIGINAL)))
    tried(lambda: memory.prepare(four, a_context(), **WHO))
    tried(lambda: memory.prepare([ASKED] * 5, a_context(), **WHO))
    tried(lambda: anyio.run(lambda: memory.aprepare([ASKED], a_context(), **WHO)))
    tried(lambda: memory.select("s", "t", ASKED, a_context()))
    tried(memory.reindex_missing)
    tried(lambda: memory.reindex(allow_gaps=True))
    tried(lambda: memory.spend(**WHO))
    tried(memory.gates)
    tried(memory.status)
    tried(lambda: RecallQuery(**dict(ASKED) | {"limit": KEY}))
    world.revoke()
    memory.withdraw_admission()
    tried(lambda: memory.prepare([ASKED], a_context(), **WHO))
    return results


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_nothing_private_is_where_it_does_not_belong(
    behaviour: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    everything_logged: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    sections = {"provider": {"api_key_variable": KEY_VARIABLE}}
    with open_world(tmp_path, BEHAVIOURS[behaviour], **sections) as world:
        world.admit()
        memory = world.open()

        results = _worked(world, memory)

        assert world.server.requests, "nothing was sent: this would prove nothing"
        assert KEY in world.server.requests[0].headers["authorization"]
        shown = "\n".join(map(_shown, results))
        assert not found_in(shown), shown
        parts = [memory, *_parts(memory)]
        assert not found_in("\n".join(f"{part!r} {part}" for part in parts))
        _no_event_or_receipt_holds_any(memory)
    _no_page_holds_what_was_asked(tmp_path)
    logged = "\n".join(_record(one) for one in everything_logged.records)
    assert not found_in(logged), logged
    out, err = capfd.readouterr()
    assert not found_in(out + err)


def test_what_a_cancellation_goes_through_has_nothing_private_in_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some reports of an interrupted program print them."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    reports: list[str] = []
    with open_world(tmp_path, silent(), provider={"api_key_variable": KEY_VARIABLE}) as world:
        world.admit()
        memory = world.open()

        async def ask() -> None:
            try:
                await memory.aprepare([ASKED], a_context(), **WHO)
            except anyio.get_cancelled_exc_class() as cancelled:
                told = traceback.TracebackException.from_exception(cancelled, capture_locals=True)
                reports.append("".join(told.format()))
                raise

        async def cancel_once_it_is_out() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await anyio.to_thread.run_sync(world.server.arrived.wait, 5.0)
                group.cancel_scope.cancel()

        anyio.run(cancel_once_it_is_out)

    assert len(reports) == 1
    assert "aprepare" in reports[0]
    assert found_in(reports[0]) == []


def _shown(result: Any) -> str:
    """Return a result in every way that a host may print it."""
    if isinstance(result, RemembrancerError):
        lines = traceback.TracebackException.from_exception(result).format()
        chain = f"{result.__cause__!r} {result.__context__!r}"
        return f"{result!r} {result} {vars(result)} {''.join(lines)} {chain}" + str(
            pickle.dumps(result)
        )
    return f"{result!r} {result}"


def _parts(memory: Remembrancer) -> list[object]:
    preparation = memory._container.preparation()
    assert preparation is not None
    named = [getattr(preparation, name) for name in type(preparation).__slots__]
    inner = [value for one in named for value in getattr(one, "__dict__", {}).values()]
    return [preparation, *named, *inner]


def _no_event_or_receipt_holds_any(memory: Remembrancer) -> None:
    store = memory._container.store()
    recorded = store.log.follow(after_position=0, limit=1_000)
    assert any("Reservation" in type(one.event).__name__ for one in recorded)
    for one in recorded:
        assert not found_in(f"{one.event!r} {one.event} {vars(one.event)}")
    for day in store.ledger.days("acme"):
        assert not found_in(repr(day))


def _no_page_holds_what_was_asked(folder: Path) -> None:
    """Originals lie in the vault and the index of words; what was asked lies nowhere."""
    gc.collect()
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any("memory.db" in path.name for path in files)
    for path in files:
        found = found_in(path.read_bytes())
        allowed = ["originalcanary"] if path.name.startswith("memory.db") else []
        assert [word for word in found if word not in allowed] == [], path.name


def _record(record: logging.LogRecord) -> str:
    extra = {name: value for name, value in vars(record).items() if name != "msg"}
    return f"{record.getMessage()} {record.msg!r} {extra!r}"


def test_a_canary_that_is_there_would_be_seen() -> None:
    assert found_in(QUESTION + SUBJECT + ORIGINAL + KEY) == list(PRIVATE)
    assert found_in(base64.b64encode(KEY.encode()).decode()) == ["keycanary"]
    assert not found_in("nothing of that")
