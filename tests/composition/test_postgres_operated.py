"""A memory in PostgreSQL as an operator has it: commands, check-up, refusals, the server's log."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.adapters.postgres_server import FreshDatabase, OwnServer, server
from tests.application.house import (
    an_entry,
    open_house,
    postgres_place,
)
from tests.composition.shell import Shell

from remembrancer.composition import production
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import EmbedderSettings, Settings, StoreSettings
from remembrancer.domain.errors import (
    RemembrancerError,
    SettingsError,
    StoreError,
    StoreForbiddenError,
    StoreUnavailableError,
)

TEXTS = (
    "The invoice service retries three times, then gives up.",
    "Backups of the storage are one file too.",
    "Retries of the ledger are counted as requests.",
    "東京の請求書は月末に届きます。",
    "Ana prefers pre-edit hooks and v1.2.3.",
)
QUESTIONS = ("invoice retries", "pre-edit", "請求書", "storage backups", "v1.2.3 hooks", '"')


@pytest.fixture
def place(tmp_path: Path) -> Iterator[StoreSettings]:
    with postgres_place(tmp_path) as place:
        yield place


def _opened(place: StoreSettings) -> Remembrancer:
    return production(Settings(store=place, embedder=EmbedderSettings(provider="none")))


# -- As an operator has it -----------------------------------------------------


@pytest.fixture
def shell(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    place: StoreSettings,
) -> Shell:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "remembrancer.toml").write_text(
        "[store]\n"
        'backend = "postgres"\n'
        f'dsn_file = "{place.dsn_file}"\n'
        f'reader_dsn_file = "{place.reader_dsn_file}"\n'
        f'owner_dsn_file = "{place.owner_dsn_file}"\n'
        '[embedder]\nprovider = "none"\n'
    )
    return Shell(tmp_path, monkeypatch, capfd)


def test_the_command_line_works_with_it(shell: Shell) -> None:
    assert shell.json("init")["path"] == "PostgreSQL"
    entry_id = shell.json("remember", "The invoice service retries.")["entry_id"]
    found = shell.json("recall", "invoice")["entries"]
    shell("pack", "s", "plan", "invoice", "--budget", "500")
    replayed = shell("replay", "s", "plan")
    erased = shell("erase", entry_id, "--reason", "user_request", "--json").data

    assert [one["entry_id"] for one in found] == [entry_id]
    assert "retries" in replayed.out
    assert erased["pending"]
    assert shell.json("maintain", "clear")["erasures"] >= 1
    assert shell.json("status")["entries"] == 0
    assert shell("status").out.lstrip().startswith("PostgreSQL")


def test_a_file_is_no_place_in_a_server(shell: Shell) -> None:
    result = shell("status", "--db", "memory.db")

    assert (result.status, "--db" in result.err) == (2, True)


def test_a_restore_into_what_is_not_empty_names_what_a_server_can_do(shell: Shell) -> None:
    shell("remember", "The invoice service retries.")
    shell("export", "--out", "all.jsonl")

    result = shell("restore", "all.jsonl")

    assert result.status == 2
    assert "name another database in the settings, or with --config settings" in result.err
    assert "--db" not in result.err


def test_the_check_up_looks_at_the_server(shell: Shell) -> None:
    findings = {one["what"]: one for one in json.loads(shell("doctor", "--json").out)}

    assert findings.keys() >= {
        *("server", "row security", "schema", "auditor's role", "pgvector", "clocks"),
        *("pooler", "connections", "server's log", "erasures"),
    }
    assert [one for one in findings.values() if not one["ok"] and one["what"] != "vectors"] == []
    assert findings["pooler"]["found"] == "none stands between"


def test_the_check_up_tells_of_erasures_that_wait_to_be_cleared(shell: Shell) -> None:
    entry_id = shell.json("remember", "The invoice service retries.")["entry_id"]
    shell("erase", entry_id, "--reason", "user_request")

    before = {one["what"]: one for one in json.loads(shell("doctor", "--json").out)}
    shell("maintain", "clear")
    after = {one["what"]: one for one in json.loads(shell("doctor", "--json").out)}

    assert "maintain clear" in before["erasures"]["advice"]
    assert after["erasures"]["advice"] == ""


def test_the_check_up_says_what_it_can_without_the_server(
    shell: Shell, place: StoreSettings
) -> None:
    assert place.dsn_file is not None
    place.dsn_file.write_text(make_conninfo(place.dsn_file.read_text(), port="1"))

    result = shell("doctor", "--json")
    findings = {one["what"]: one for one in result.data}

    assert result.status == 1
    assert [one for one in findings if not findings[one]["ok"]] == ["server"]
    assert "takes no connection" in findings["server"]["advice"]
    assert "the application, the auditor, the owner" in findings["settings"]["found"]
    assert findings["packages"]["ok"]


def test_the_check_up_finds_what_is_missing(shell: Shell) -> None:
    settings = Path("remembrancer.toml").read_text()
    Path("remembrancer.toml").write_text(
        "\n".join(line for line in settings.splitlines() if "reader" not in line)
    )

    result = shell("doctor", "--json")
    findings = {one["what"]: one for one in result.data}

    assert result.status == 1
    assert "reader_dsn" in findings["auditor's role"]["advice"]
    assert not findings["counts"]["ok"]
    assert findings["server"]["ok"]


def test_only_what_needs_the_auditors_role_needs_its_connection_string(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_READER", raising=False)
    lines = Path("remembrancer.toml").read_text().splitlines()
    named = ['reader_dsn_variable = "NO_SUCH_READER"' if "reader" in one else one for one in lines]
    Path("remembrancer.toml").write_text("\n".join(named))
    shell("remember", "The invoice service retries.")

    recalled, counted, audited = shell("recall", "invoice"), shell("status"), shell("audit")

    assert (recalled.status, counted.status, audited.status) == (0, 2, 2)
    assert "retries" in recalled.out
    assert "NO_SUCH_READER" in audited.err


def test_a_new_vector_index_wants_its_approximate_index_anew(shell: Shell) -> None:
    settings = Path("remembrancer.toml").read_text()
    Path("remembrancer.toml").write_text(settings.replace("none", "wordllama"))
    shell("remember", "The invoice service retries.")
    shell("maintain", "vectors")

    told = shell("reindex").out
    after = {one["what"]: one for one in json.loads(shell("doctor", "--json").out)}
    shell("maintain", "vectors")
    again = {one["what"]: one for one in json.loads(shell("doctor", "--json").out)}

    assert "remembrancer maintain vectors" in told
    assert "maintain vectors" in after["approximate index"]["advice"]
    assert again["approximate index"]["found"] == "there"


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"password": "SeCrEt", "port": "1"}, StoreUnavailableError, "takes no connection"),
        ({"user": "nobody_here"}, StoreError, ""),
        ({"dbname": "nowhere_here"}, StoreUnavailableError, "database"),
        ({"dbname": "postgres"}, SettingsError, "migrate up"),
        ({"user": "(a superuser)"}, SettingsError, "superuser"),
    ],
)
def test_a_database_that_can_not_be_used_says_why(
    tmp_path: Path,
    place: StoreSettings,
    changes: dict[str, str],
    error: type[RemembrancerError],
    words: str,
) -> None:
    assert place.dsn_file is not None
    if changes.get("user") == "(a superuser)":
        superuser = conninfo_to_dict(server().dsn)
        changes = {one: str(superuser[one]) for one in ("user", "password") if one in superuser}
    other = tmp_path / "other.dsn"
    other.write_text(make_conninfo(place.dsn_file.read_text(), **changes))

    with (
        pytest.raises(error) as caught,
        _opened(place.model_copy(update={"dsn_file": other})),
    ):
        pass

    told = f"{caught.value!s} {caught.value!r} {caught.value.__cause__!r}"
    assert words in told
    assert "SeCrEt" not in told


@pytest.mark.parametrize("text", ["postgresql://u:SeCrEt@[bad", "no equals sign SeCrEt", "", " "])
def test_what_is_no_connection_string_is_never_shown(
    tmp_path: Path, place: StoreSettings, text: str
) -> None:
    other = tmp_path / "other.dsn"
    other.write_text(text)

    with (
        pytest.raises(SettingsError) as caught,
        _opened(place.model_copy(update={"dsn_file": other})),
    ):
        pass

    assert (
        "SeCrEt" not in f"{caught.value!s} {caught.value.__cause__!r} {caught.value.__context__!r}"
    )


# -- Nothing private in the server's log ---------------------------------------


def test_no_text_reaches_the_servers_log(tmp_path: Path) -> None:
    server = OwnServer({"log_min_messages": "info", "log_error_verbosity": "verbose"})
    try:
        fresh = server.fresh_database()
        _provoke_errors(fresh, tmp_path)
        with psycopg.connect(fresh.superuser) as connection:
            row: Any = connection.execute("SHOW data_directory").fetchone()
        log = (Path(row[0]).parent / "log").read_text()
    finally:
        server.stop()

    assert "ERROR" in log
    assert "canary" not in log


def _provoke_errors(fresh: FreshDatabase, folder: Path) -> None:
    """Let statements fail that have private texts for values."""
    (folder / "app.dsn").write_text(fresh.app)
    place = StoreSettings(
        backend="postgres", dsn_file=folder / "app.dsn", statement_timeout_s=30.0
    )
    with open_house(place) as house:
        house.memory.remember(an_entry("the canarybird sings"))
        for table in ("originals", "sparse_documents", "sparse_postings", "vectors"):
            with psycopg.connect(fresh.superuser, autocommit=True) as connection:
                connection.execute(
                    f"ALTER TABLE remembrancer.{table} ADD CHECK (tenant <> 'acme') NOT VALID"
                )
            with pytest.raises((StoreError, psycopg.Error)):
                house.memory.remember(an_entry("the canarybird sings again"))
            with psycopg.connect(fresh.superuser, autocommit=True) as connection:
                connection.execute(
                    f"ALTER TABLE remembrancer.{table} DROP CONSTRAINT {table}_tenant_check"
                )
        with psycopg.connect(fresh.superuser, autocommit=True) as connection:
            connection.execute("REVOKE INSERT ON remembrancer.originals FROM remembrancer_app")
        with pytest.raises(StoreForbiddenError):
            house.memory.remember(an_entry("the canarybird sings"))
