"""What a person reads is in words: no codes, no plural of one thing."""

import re

import pytest
from tests.composition.shell import Shell

from remembrancer.composition.cli.words import in_words
from remembrancer.domain.recall import LeftOutReason

ONE = re.compile(
    r"(?<![\d.,/])1 (?:\w+ )?(?:events|streams|entries|packs|tokens|bytes|files|versions|vectors"
    r"|candidates|originals|selections|owners|items|pieces|erasures|positions|documents)\b"
)
CODE = re.compile(r"\b[a-z]+_[a-z_]+\b")


@pytest.fixture
def lived(shell: Shell) -> Shell:
    """One of everything."""
    (shell.folder / "a.md").write_text("x")
    shell("import", "a.md")
    shell("pack", "s", "plan", "x", "--budget", "900", "--item", "0:rules:Be brief.")
    return shell


COMMANDS = [
    ("init",),
    ("import", "a.md"),
    ("recall", "x", "--explain"),
    ("recall", "nothing like it", "--sparse", "--explain"),
    ("explain", "s", "plan"),
    ("timeline",),
    ("timeline", "--session", "s"),
    ("audit",),
    ("status",),
    ("doctor",),
    ("reindex",),
    ("reindex", "--missing"),
    ("project",),
    ("export", "--out", "all.jsonl"),
    ("erase-session", "s"),
    ("erase-owner", "--yes", "--reason", "privacy"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_one_thing_is_told_in_the_singular(lived: Shell, command: tuple[str, ...]) -> None:
    done = lived(*command)

    assert not ONE.findall(done.out + done.err)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_code_is_told_to_a_person(
    lived: Shell, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Also where recall goes by keywords, which has the most reasons."""
    monkeypatch.setenv("REMEMBRANCER_EMBEDDER__PROVIDER", "none")

    done = lived(*command)

    assert not CODE.findall(done.out)


def test_whatever_is_left_out_is_told_in_words() -> None:
    told = {reason: in_words(reason) for reason in LeftOutReason}

    assert all(" " in words or words == "erased" for words in told.values())


def test_a_code_without_words_of_its_own_is_still_readable() -> None:
    assert in_words("over_money_ceiling") == "over money ceiling"
