"""Reading settings: a file, the environment over it, and nothing unknown."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from remembrancer.composition.settings_sources import _SECTIONS, load_settings
from remembrancer.domain import Sensitivity
from remembrancer.domain.errors import SettingsError

TOML = """
[store]
path = "a.db"
busy_timeout_s = 2

[embedder]
dimensions = 64

[identity]
owner = "ana"
read_ceiling = "confidential"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _written(folder: Path, text: str, name: str = "remembrancer.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_nothing_given_is_the_default(here: Path) -> None:
    assert load_settings(None, {"HOME": str(here)}).identity.owner == "me"


def test_the_file_in_the_working_folder_is_read(here: Path) -> None:
    _written(here, TOML)

    settings = load_settings(None, {})

    assert settings.store.path == Path("a.db")
    assert settings.store.busy_timeout_s == 2.0
    assert settings.embedder.dimensions == 64
    assert settings.identity.read_ceiling is Sensitivity.CONFIDENTIAL


def test_the_environment_stands_over_the_file(here: Path) -> None:
    _written(here, TOML)

    settings = load_settings(
        None,
        {
            "REMEMBRANCER_STORE__PATH": "b.db",
            "REMEMBRANCER_STORE__READ_ONLY": "true",
            "REMEMBRANCER_IDENTITY__OWNER": "123",
        },
    )

    assert settings.store.path == Path("b.db")
    assert settings.store.read_only is True
    assert settings.store.busy_timeout_s == 2.0
    assert settings.identity.owner == "123"


def test_only_the_environment_that_was_given_is_read(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMEMBRANCER_STORE__PATH", str(here / "other.db"))

    assert load_settings(None, {}).store.path == Path("memory.db")


def test_a_named_file_is_read_instead(here: Path) -> None:
    _written(here, TOML)
    other = _written(here, '[identity]\nowner = "bob"', "other.toml")

    assert load_settings(other, {}).identity.owner == "bob"
    assert load_settings(None, {"REMEMBRANCER_CONFIG": str(other)}).identity.owner == "bob"


def test_a_list_is_written_with_commas_in_the_environment(here: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(None, {"REMEMBRANCER_EGRESS__ALLOWED_REGIONS": "eu, us", "HOME": str(here)})

    assert refused.value.setting == "egress.allowed_hosts"


@pytest.mark.parametrize("named", ["argument", "variable"])
def test_a_named_file_must_be_there(here: Path, named: str) -> None:
    missing = here / "missing.toml"
    file = missing if named == "argument" else None
    environment = {"REMEMBRANCER_CONFIG": str(missing)} if named == "variable" else {}

    with pytest.raises(SettingsError, match="no such settings file"):
        load_settings(file, environment)


@pytest.mark.parametrize(
    ("text", "setting", "problem"),
    [
        ("[store", "remembrancer.toml", "isn't TOML"),
        ("[stor]\npath = 'x'", "stor", "unknown; known are store"),
        ("[store]\npth = 'x'", "store.pth", "unknown; known are backend"),
        ("[store]\npath = 5", "store.path", "path"),
        ("[store]\nbusy_timeout_s = 'soon'", "store.busy_timeout_s", "number"),
        ("[store]\nbusy_timeout_s = nan", "store.busy_timeout_s", "finite"),
        ("[embedder]\ndimensions = 100", "embedder.dimensions", "64, 128, 256"),
        ("[identity]\nread_ceiling = 'secret'", "identity.read_ceiling", "restricted"),
        ("store = 3", "store", "keys and values"),
        ("path = 'x'", "path", "unknown"),
    ],
    ids=str,
)
def test_what_is_wrong_in_a_file_is_named_as_it_stands_there(
    here: Path, text: str, setting: str, problem: str
) -> None:
    _written(here, text)

    with pytest.raises(SettingsError, match=problem) as refused:
        load_settings(None, {})

    assert refused.value.setting == setting


_REMOTE = """
[provider]
url = "u"
region = "r"
model = "m"
model_revision = "1"
dimensions = 8
[pricing]
usd_per_million_tokens = "0.1"
[ceilings]
quanta_per_day = 1
requests_per_day = 1
[egress]
allowed_regions = ["a"]
allowed_hosts = ["x"]
"""
_KEYS = [(section, key) for section, kind in _SECTIONS.items() for key in kind.model_fields]
_PYTHON = re.compile(
    r"<class|Input|instance|should|valid|unable|boolean|integer|tuple|dict|fractional|Error"
)


def _with_one(section: str, key: str, value: str) -> str:
    """Return settings with all that a provider needs, where the section is one of its own."""
    head = f"[{section}]"
    lines = [] if head not in _REMOTE else _REMOTE.strip().splitlines()
    kept = [line for line in lines if not line.startswith(f"{key} =")] or [head]
    kept.insert(kept.index(head) + 1, f"{key} = {value}")
    return "\n".join(kept)


@pytest.mark.parametrize(("section", "key"), _KEYS, ids=lambda value: value)
def test_a_wrong_value_is_told_without_words_of_python(here: Path, section: str, key: str) -> None:
    told = []
    for value in ("5", "-1", "1.5", "nan", '"zzz"', '""', "[1]", "{a = 1}", "true", "2020-01-01"):
        _written(here, _with_one(section, key, value))
        with suppress(SettingsError):
            load_settings(None, {})
            continue
        with pytest.raises(SettingsError) as refused:
            load_settings(None, {})
        told.append(refused.value.problem)

    assert told
    assert not [one for one in told if _PYTHON.search(one)]


def test_a_folder_in_the_place_of_the_file_is_no_settings(here: Path) -> None:
    (here / "remembrancer.toml").mkdir()

    with pytest.raises(SettingsError, match=r"setting remembrancer\.toml: is a folder"):
        load_settings(None, {})


def test_a_file_that_is_not_text_is_said(here: Path) -> None:
    (here / "remembrancer.toml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(SettingsError, match="isn't UTF-8 text"):
        load_settings(None, {})


@pytest.mark.parametrize(
    "name",
    ["REMEMBRANCER_STORE", "REMEMBRANCER_PATH", "REMEMBRANCER_STOR__PATH", "REMEMBRANCER_"],
)
def test_an_unknown_variable_is_named(here: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="REMEMBRANCER_STORE__") as refused:
        load_settings(None, {name: "canary", "HOME": str(here)})

    assert refused.value.setting == name
    assert "canary" not in str(refused.value)


def test_an_unknown_key_in_a_variable_is_named(here: Path) -> None:
    with pytest.raises(SettingsError, match=r"known are backend") as refused:
        load_settings(None, {"REMEMBRANCER_STORE__PTH": "x", "HOME": str(here)})

    assert refused.value.setting == "store.pth"
