"""Where nothing could be sent, nothing is reserved: no key, or no certificates to trust."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.composition.remote_world import (
    KEY_VARIABLE,
    WHO,
    a_context,
    a_query,
    an_entry,
    open_world,
)

from remembrancer.domain.eligibility import QueryStatus

KEY_FILES: dict[str, Callable[[Path], object]] = {
    "is not there": lambda _: None,
    "is empty": lambda path: path.touch(),
    "has two lines": lambda path: path.write_text("one\nkey: two"),
    "is no text": lambda path: path.write_bytes(b"\xff\xfe"),
    "is a folder": lambda path: path.mkdir(),
    "is a pipe that nobody writes to": os.mkfifo,
}


@pytest.mark.parametrize("kind", KEY_FILES)
def test_a_key_file_that_gives_no_key_costs_nothing(kind: str, tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    KEY_FILES[kind](key_file)
    with open_world(tmp_path, provider={"api_key_file": key_file}) as world:
        world.admit()
        memory = world.open()

        report = memory.prepare([a_query("Who holds the key?")], a_context(), **WHO)

        [outcome] = report.outcomes
        assert (outcome.status, outcome.reason) == (QueryStatus.REFUSED, "no_key")
        assert (report.reservation_id, report.charged_quanta) == (None, 0)
        assert memory.spend(**WHO) == []
        assert world.server.connections == 0


def test_entries_are_kept_without_a_key_and_bought_once_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with open_world(tmp_path, provider={"api_key_variable": KEY_VARIABLE}) as world:
        world.admit()
        memory = world.open()
        entry_id = memory.remember(an_entry("The ladder is in the shed."))
        spent_without = memory.spend(**WHO)

        monkeypatch.setenv(KEY_VARIABLE, "drawn-for-this-run")
        added = memory.reindex_missing()

        assert spent_without == []
        assert added == 1
        found = memory.recall(a_query("ladder"), a_context())
        assert [entry.entry_id for entry in found.entries] == [entry_id]


def test_certificates_that_are_none_cost_nothing(tmp_path: Path) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_text("nothing to trust")
    with open_world(tmp_path, provider={"ca_file": trusted}) as world:
        world.admit()
        memory = world.open()

        report = memory.prepare([a_query("Whom to trust?")], a_context(), **WHO)

        [outcome] = report.outcomes
        assert (outcome.status, outcome.reason) == (QueryStatus.REFUSED, "tls")
        assert memory.spend(**WHO) == []
