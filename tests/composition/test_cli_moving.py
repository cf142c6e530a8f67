"""Exporting and restoring on the command line: real files, packed or not."""

import errno
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.composition.shell import Shell
from tests.composition.test_cli_gates import TOML

from remembrancer.composition.export_file import created
from remembrancer.domain.errors import StoreFullError

OTHER = ("--db", "other.db")


@pytest.fixture
def filled(shell: Shell) -> Shell:
    for text in ("the invoice service", "the storage of words"):
        shell("remember", text)
    shell("pack", "s-1", "plan", "invoice", "--budget", "900", "--item", "0:rules:Be brief.")
    return shell


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_what_was_exported_is_restored_and_replayed(filled: Shell, name: str) -> None:
    exported = filled("export", "--out", name)
    restored = filled("restore", name, *OTHER)

    assert (exported.status, restored.status) == (0, 0)
    assert "4 events, 2 originals, content of 1 selection." in exported.out
    assert "of 1 owner. Found by words: 2 versions." in restored.out
    assert "`remembrancer reindex`" in restored.out
    assert filled("replay", "s-1", "plan", *OTHER).out == filled("replay", "s-1", "plan").out
    assert filled.json("recall", "invoice", *OTHER)["mode"] == "sparse"
    assert filled("reindex", *OTHER).status == 0
    assert filled.json("recall", "invoice", *OTHER)["mode"] == "hybrid"


def test_both_answer_in_json(filled: Shell) -> None:
    exported = filled.json("export", "--out", "all.jsonl")
    restored = filled.json("restore", "all.jsonl", *OTHER)

    assert exported["holds_originals"] is restored["holds_originals"] is True
    assert exported["events"] == restored["events"] == 4
    assert len(exported["sha256"]) == 64


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_the_file_is_for_its_owner_alone(filled: Shell, name: str) -> None:
    before = os.umask(0)
    try:
        done = filled("export", "--out", name)
    finally:
        os.umask(before)

    assert (filled.folder / name).stat().st_mode & 0o777 == 0o600
    assert "holds texts, their salts and sessions' keys" in done.out


def test_the_same_store_gives_the_same_packed_bytes(filled: Shell) -> None:
    for name in ("one.gz", "two.gz"):
        filled("export", "--out", name)

    one, two = ((filled.folder / name).read_bytes() for name in ("one.gz", "two.gz"))
    assert one == two


def test_a_file_that_is_there_is_left_alone(filled: Shell) -> None:
    (filled.folder / "all.jsonl").write_text("mine")

    done = filled("export", "--out", "all.jsonl")

    assert (done.status, "name another" in done.err) == (2, True)
    assert (filled.folder / "all.jsonl").read_text() == "mine"


def test_of_an_export_that_fails_no_file_is_left(filled: Shell) -> None:
    done = filled("export", "--out", "part.jsonl", "--tenant", "nobody")
    nowhere = filled("export", "--out", "no/folder/all.jsonl")

    assert (done.status, "nothing was ever recorded" in done.err) == (2, True)
    assert not (filled.folder / "part.jsonl").exists()
    assert (nowhere.status, "can't be made" in nowhere.err) == (2, True)


def test_a_part_is_exported_without_texts(filled: Shell) -> None:
    [first, *_] = filled.json("timeline")["events"]

    of_owner = filled("export", "--out", "me.jsonl", "--tenant", "local", "--owner", "me")
    of_stream = filled.json("export", "--out", "one.jsonl", "--stream", first["stream"])

    assert "No text is in it" in of_owner.out
    assert "invoice" not in (filled.folder / "me.jsonl").read_text()
    assert (of_stream["events"], of_stream["holds_originals"]) == (1, False)
    assert "held no texts" in filled("restore", "me.jsonl", *OTHER).out


def test_a_memory_with_something_in_it_is_not_restored_into(filled: Shell) -> None:
    filled("export", "--out", "all.jsonl")

    done = filled("restore", "all.jsonl")

    assert (done.status, "into an empty one; name another file with --db" in done.err) == (2, True)


@pytest.mark.parametrize(
    "command",
    [
        ("export", "--out", "-"),
        ("audit", "keygen", "--key", "-"),
        ("audit", "keygen", "--key", "key.pem", "--public-key", "-"),
        ("gates", "template", "retrieval_quality", "--into", "-"),
        ("audit", "--html", "-"),
    ],
    ids=" ".join,
)
def test_no_file_is_named_as_others_call_standard_output(
    filled: Shell, command: tuple[str, ...]
) -> None:
    (filled.folder / "remembrancer.toml").write_text(TOML)

    done = filled(*command)

    assert (done.status, done.out) == (2, "")
    assert "must " in done.err
    assert not {"-", "key.pem"} & {one.name for one in filled.folder.iterdir()}


def _cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def _flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
@pytest.mark.parametrize("harm", [_cut, _flip])
def test_a_damaged_file_is_a_finding(
    filled: Shell, name: str, harm: Callable[[bytes], bytes]
) -> None:
    filled("export", "--out", name)
    path = filled.folder / name
    path.write_bytes(harm(path.read_bytes()))

    done = filled("restore", name, *OTHER)

    assert done.status == 1
    assert done.err.startswith("error: line ")
    assert "nothing was restored" in done.err
    assert filled.json("status", *OTHER)["events"] == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"# Notes\n", "no export of remembrancer"),
        (gzip.compress(b"# Notes\n", mtime=0), "no export of remembrancer"),
        (b'{"format":"remembrancer-export","line":"header","version":2}\n', "upgrade"),
    ],
)
def test_another_file_is_wrong_use(shell: Shell, data: bytes, said: str) -> None:
    (shell.folder / "file").write_bytes(data)

    done = shell("restore", "file")

    assert (done.status, said in done.err) == (2, True)


def test_a_missing_file_is_wrong_use(shell: Shell) -> None:
    done = shell("restore", "nowhere.jsonl")

    assert (done.status, "can't be read" in done.err) == (2, True)


def test_a_full_disk_is_told_as_one(tmp_path: Path) -> None:
    with pytest.raises(StoreFullError), created(tmp_path / "all.jsonl"):
        raise OSError(errno.ENOSPC, "no room")

    assert list(tmp_path.iterdir()) == []


def test_a_restore_that_fails_says_what_it_left(filled: Shell) -> None:
    filled("export", "--out", "all.jsonl")
    lines = (filled.folder / "all.jsonl").read_bytes().splitlines(keepends=True)
    (filled.folder / "cut.jsonl").write_bytes(b"".join(lines[:-2]))

    missing = filled("restore", "nowhere.jsonl", *OTHER)
    made_by_missing = (filled.folder / "other.db").exists()
    damaged = filled("restore", "cut.jsonl", *OTHER)

    assert (missing.status, made_by_missing) == (2, False)
    assert damaged.status == 1
    assert "other.db was made for it, and is empty" in " ".join(damaged.err.split())


def test_an_owner_is_of_the_settings_tenant(filled: Shell) -> None:
    assert filled.json("export", "--out", "mine.jsonl", "--owner", "me")["events"] == 4
