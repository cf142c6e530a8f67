"""What may be chosen, and within which bounds."""

from pathlib import Path
from typing import Any

import pytest

from remembrancer.composition import Settings
from remembrancer.composition.settings import (
    WIDTHS,
    EmbedderSettings,
    IdentitySettings,
    StoreSettings,
)
from remembrancer.domain import Sensitivity
from remembrancer.domain.errors import InvalidInputError


def test_without_a_word_everything_works_offline_in_one_file() -> None:
    settings = Settings()

    assert settings.store == StoreSettings(path=Path("memory.db"))
    assert settings.embedder.provider == "wordllama"
    assert settings.identity.sensitivity is Sensitivity.INTERNAL
    assert settings.provider is None


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (StoreSettings, {"backend": "mysql"}),
        (StoreSettings, {"busy_timeout_s": 0}),
        (StoreSettings, {"busy_timeout_s": float("nan")}),
        (StoreSettings, {"busy_timeout_s": 601}),
        (StoreSettings, {"path": 5}),
        (StoreSettings, {"read_only": "maybe"}),
        (StoreSettings, {"pth": "x"}),
        (EmbedderSettings, {"dimensions": 100}),
        (EmbedderSettings, {"provider": "openai"}),
        (IdentitySettings, {"tenant": ""}),
        (IdentitySettings, {"scope": "a//b"}),
        (IdentitySettings, {"read_ceiling": "secret"}),
    ],
    ids=str,
)
def test_what_breaks_its_bounds_is_refused(kind: Any, values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=kind.__name__):
        kind(**values)


@pytest.mark.parametrize("width", WIDTHS)
def test_widths_may_come_as_text(width: int) -> None:
    assert EmbedderSettings.parse({"dimensions": str(width)}).dimensions == width


def test_settings_do_not_change() -> None:
    with pytest.raises(InvalidInputError, match="can't be changed"):
        Settings().store = StoreSettings()
