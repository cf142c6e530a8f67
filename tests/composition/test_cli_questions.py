"""``recall``, ``pack`` and ``replay`` on the command line."""

import re
from pathlib import Path

import pytest
from tests.composition.shell import Shell

ASKED = ("recall", "invoice service")


@pytest.fixture
def filled(shell: Shell) -> Shell:
    shell("init")
    (shell.folder / "notes.md").write_text(
        "".join(f"# Part {number}\nThe invoice service, part {number}.\n" for number in range(40))
    )
    shell("import", "notes.md")
    return shell


def test_a_stage_is_not_used_up_by_a_question_that_says_nothing(shell: Shell) -> None:
    shell("remember", "the invoice service")

    refused, packed = shell("pack", "s", "plan", " "), shell("pack", "s", "plan", "invoice")

    assert (refused.status, refused.err[:28]) == (2, "error: question: is missing;")
    assert "the invoice service" in packed.out
    assert "selected before" not in packed.err


def test_an_empty_pack_says_where_it_looked(shell: Shell) -> None:
    shell("remember", "the invoice service", "--scope", "work")

    done = shell("pack", "s", "plan", "invoice")

    assert "Looked in notes of local/me" in done.err
    assert "Take another stage for that." in done.err


def test_where_nothing_is_found_it_says_where_it_looked(shell: Shell) -> None:
    shell("remember", "the invoice service", "--scope", "work")

    done, data = shell("recall", "invoice"), shell("recall", "invoice", "--json")

    assert (done.status, done.out) == (0, "Nothing found.\n")
    assert done.err.startswith("Looked in notes of local/me, up to ")
    assert data.err == ""


def test_a_person_reads_texts_with_their_ids_below(filled: Shell) -> None:
    done = filled(*ASKED, "--limit", "3")

    assert done.status == 0
    assert done.out.startswith("3 found, hybrid\n")
    ids = re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", done.out)
    assert len(ids) == 3
    assert "notes.md" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_explaining_shows_ranks_scores_and_what_was_left_out(filled: Shell) -> None:
    done = filled(*ASKED, "--limit", "3", "--explain")

    assert done.status == 0
    assert "How they were found: hybrid" in done.out
    assert len(re.findall(r"^ \d +[0-9a-f-]{36} +0\.\d{5} +\d+  ", done.out, re.MULTILINE)) == 3
    assert "Left out: 37 candidates" in done.out
    assert len(re.findall(r"^ [0-9a-f-]{36} +others ranked higher", done.out, re.MULTILINE)) == 10
    assert "... and 27 more" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_program_gets_all_of_it(filled: Shell) -> None:
    found = filled.json(*ASKED, "--limit", "3")

    assert (found["mode"], found["mode_reason"]) == ("hybrid", "")
    assert len(found["entries"]) == 3
    assert found["left_out_count"] == len(found["left_out"]) == 37
    first = found["entries"][0]
    assert {"entry_id", "version", "text", "score", "ranks", "metadata", "digest"} <= set(first)
    assert set(first["ranks"]) == {"dense_rank", "dense_score", "sparse_rank", "sparse_score"}
    assert found["embedding_tuple"]["dimensions"] == 256


def test_words_alone_are_said_to_be(filled: Shell) -> None:
    done = filled(*ASKED, "--sparse", "--limit", "1")

    assert done.out.startswith("1 found, sparse (keywords alone were asked for)\n")


def test_markup_and_controls_in_a_text_are_shown_as_they_are(shell: Shell) -> None:
    shell("remember", "[bold]invoice[/] \x1b[31m red \u202e evil :smile:")

    done = shell("recall", "invoice", "--explain")

    assert "[bold]invoice[/]" in done.out
    assert ":smile:" in done.out
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out


def test_core_people_and_the_past_can_be_asked_for(shell: Shell) -> None:
    shell("remember", "stand by it", "--kind", "core")
    shell("remember", "likes tea", "--subject", "Ana")

    core = shell.json("recall", "--kind", "core")
    people = shell.json("recall", "tea", "--kind", "people", "--subject", "ana")
    past = shell.json("recall", "tea", "--kind", "historical", "--as-of", "2001-01-01T00:00:00Z")
    future = shell.json(
        "recall", "tea", "--kind", "historical", "--as-of", "2999-01-01T00:00:00+09:00"
    )

    assert [one["text"] for one in core["entries"]] == ["stand by it"]
    assert core["mode"] == "listed"
    assert [one["text"] for one in people["entries"]] == ["likes tea"]
    assert past["entries"] == []
    assert "likes tea" in [one["text"] for one in future["entries"]]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--as-of", "yesterday"], "--as-of: must be a time with its zone"),
        (["--as-of", "2026-01-01T00:00:00"], "--as-of: must be a time with its zone"),
        (["--as-of", "2026-01-01T00:00:00Z"], "--as-of: goes with kind historical"),
        (["--kind", "historical"], "--as-of: goes with kind historical"),
        (["--kind", "people"], "--subject: must name somebody"),
        (["--kind", "nope"], "Invalid value for '--kind'"),
        (["--limit", "0"], "limit: must be 1 or more"),
        (["--limit", "many"], "Invalid value for '--limit'"),
        (["--ceiling", "secret"], "--ceiling: must be one of"),
        (["--scope", "/"], "--scope: must be names joined"),
        (["--nope"], "No such option: --nope"),
    ],
    ids=str,
)
def test_a_question_out_of_bounds_is_wrong_use(
    shell: Shell, arguments: list[str], told: str
) -> None:
    shell("init")

    done, data = shell("recall", "x", *arguments), shell("recall", "x", *arguments, "--json")

    assert (done.status, data.status) == (2, 2)
    assert told in " ".join(done.err.split())
    assert told in data.data["error"]["message"]


# -- Packs -------------------------------------------------------------------


def test_a_pack_is_the_text_alone_with_a_note_beside_it(filled: Shell) -> None:
    (filled.folder / "task.txt").write_text("Explain the service.")

    done = filled(
        *("pack", "s1", "plan", "invoice service", "--budget", "600", "--limit", "3"),
        *("--item", "0:rules:Be brief:\talways \\[b].", "--require", "rules"),
        *("--item", "1:task:@task.txt"),
    )

    assert done.status == 0
    assert done.out.startswith("Be brief:\talways \\[b].\n\nExplain the service.\n\n")
    assert done.out.count("<<<memory") == 3
    assert "of 600 tokens" in done.err
    again = filled("replay", "s1", "plan")
    assert (again.status, again.out) == (0, done.out)
    assert "is what was sent" in again.err


def test_a_pack_explains_itself(filled: Shell) -> None:
    asked = ("pack", "s1", "plan", "invoice service", "--budget", "200", "--explain")

    done, data = filled(*asked), filled.json(*asked)

    assert "Selected: hybrid" in done.out
    assert "Left out: 30 candidates" in done.out
    assert "Selected or given, but not in the pack" in done.out
    assert "budget" in done.out
    assert data["tokens"] <= data["token_budget"] == 200
    assert {one["reason"] for one in data["omitted"]} == {"budget"}
    assert len(data["selection"]["entries"]) == 10
    assert len(data["included"]) + len(data["omitted"]) == 10
    assert data["number"] == 1


def test_a_replay_that_differs_is_a_finding(filled: Shell) -> None:
    pack = filled.json("pack", "s1", "plan", "invoice service", "--limit", "2")
    gone, kept = pack["included"]
    filled("erase", gone, "--reason", "user_request")

    done, data = filled("replay", "s1", "plan"), filled("replay", "s1", "plan", "--json")

    assert (done.status, data.status) == (1, 1)
    assert f"differs: {gone}: erased\n" in done.out
    assert kept in done.out
    assert data.data["differences"] == [{"id": gone, "reason": "erased"}]


def test_an_earlier_pack_can_be_replayed(filled: Shell) -> None:
    first = filled.json("pack", "s1", "plan", "invoice", "--budget", "400")
    filled.json("pack", "s1", "plan", "invoice", "--budget", "200")

    again = filled.json("replay", "s1", "plan", "--number", "1")

    assert again["digest"] == first["digest"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--budget", "-1"], "token_budget: must be a whole number from 0"),
        (["--item", "rules"], "--item: must be LAYER:NAME:TEXT"),
        (["--item", "x:rules:text"], "--item: must be LAYER:NAME:TEXT"),
        (["--item", "²:rules:text"], "--item: must be LAYER:NAME:TEXT"),
        (["--item", "3:rules:text"], "--item LAYER: must be 2 or less"),
        (["--item", "0::text"], "--item NAME: must not be blank"),
        (["--item", "0:rules:"], "--item TEXT: must not be blank"),
        (["--item", "0:a:@missing.txt"], "can't be read: No such file"),
        (["--item", "0:a:@binary"], "isn't UTF-8 text"),
        (["--item", "0:a:x", "--item", "1:a:y"], "ids must differ"),
        (["--item", "0:a:x", "--require", "b"], "--require: no --item has the name b"),
        (["--item", "0:a:" + "x " * 999, "--require", "a", "--budget", "50"], "a"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_pack_that_cannot_be_made_is_wrong_use(
    shell: Shell, arguments: list[str], told: str
) -> None:
    Path("binary").write_bytes(b"\xff\xfe")
    shell("init")

    done = shell("pack", "s1", "plan", "x", *arguments, "--json")

    assert done.status == 2
    assert told in done.data["error"]["message"]


@pytest.mark.parametrize("arguments", [["s2", "plan"], ["s1", "plan", "--number", "9"]])
def test_what_was_never_packed_cannot_be_replayed(filled: Shell, arguments: list[str]) -> None:
    filled.json("pack", "s1", "plan", "invoice")

    done = filled("replay", *arguments, "--json")

    assert done.status == 2
    assert done.data["error"]["type"] in {"UnknownSelectionError", "UnknownPackError"}


def test_a_pack_of_a_stage_that_was_selected_before_says_so(filled: Shell) -> None:
    first = filled.json("pack", "s1", "plan", "invoice")

    again, data = (filled("pack", "s1", "plan", "parrot", *more) for more in ([], ["--json"]))

    assert first["selection_reused"] is False
    assert data.data["selection_reused"] is True
    assert "plan of s1 was selected before" in again.err


def test_a_pack_number_that_is_not_there_says_which_are(filled: Shell) -> None:
    for budget in ("400", "200"):
        filled.json("pack", "s1", "plan", "invoice", "--budget", budget)

    done = filled("replay", "s1", "plan", "--number", "7")

    assert done.status == 2
    assert "there is no pack 7 of session 's1', stage 'plan'; there is 1 to 2" in done.err


def test_a_replay_that_is_not_permitted_hints_at_the_options(filled: Shell) -> None:
    filled.json("pack", "s1", "plan", "invoice")

    done = filled("replay", "s1", "plan", "--scope", "elsewhere")

    assert done.status == 1
    assert "give the scopes with --scope" in done.err


@pytest.mark.parametrize("question", [[], [" "]], ids=["missing", "blank"])
@pytest.mark.parametrize("kind", ["deliberate", "automatic"])
def test_a_kind_that_needs_a_question_says_so(
    filled: Shell, kind: str, question: list[str]
) -> None:
    done = filled("recall", *question, "--kind", kind)

    assert done.status == 2
    assert done.err.startswith(f"error: question: is missing; kind {kind} needs one")
    assert filled("recall", "--kind", "core").status == 0


def test_rows_are_not_wrapped_where_no_terminal_is(
    filled: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    words = " ".join(["invoice"] * 20)
    filled.json("remember", words)

    done = filled("recall", "invoice")

    assert words in done.out


def test_a_budget_into_which_nothing_fits_is_told(shell: Shell) -> None:
    shell("remember", "The invoice service retries three times, then gives up.")

    done = shell("pack", "s", "plan", "invoice", "--budget", "5")

    assert "Nothing of it fitted into 5 tokens" in " ".join(done.err.split())


def test_a_pack_of_what_may_not_be_shown_is_told(shell: Shell) -> None:
    shell("remember", "The invoice service retries.", "--scope", "work")
    shell("pack", "s", "plan", "invoice", "--scope", "work")

    done = shell("pack", "s", "plan", "invoice")

    assert "Nothing of what was selected may be shown: see to --scope" in " ".join(
        done.err.split()
    )


def test_a_pack_of_nothing_is_told(shell: Shell) -> None:
    shell("init")

    done = shell("pack", "s", "plan", "invoice")

    assert "Nothing was found" in done.err


def test_an_explanation_has_no_names_of_fields(shell: Shell) -> None:
    shell("remember", "The invoice service retries.")
    shell("pack", "s", "plan", "invoice")

    told = shell("explain", "s", "plan").out

    assert "Asked with:" in told
    assert "subject_count" not in told
