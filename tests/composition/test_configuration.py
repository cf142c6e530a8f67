"""Settings that decide what leaves, where to and through whom are all part of what is admitted."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
import pytest
from tests.composition.remote_world import WHO, a_context, a_query, open_world, settings_for

from remembrancer.composition.remote import current_configuration
from remembrancer.composition.settings import (
    CeilingSettings,
    EgressSettings,
    PricingSettings,
    ProviderSettings,
)
from remembrancer.contracts.loopback_provider import LoopbackProvider
from remembrancer.domain.errors import NotAdmittedError, RemembrancerError

if TYPE_CHECKING:
    from remembrancer.domain.parsed import Parsed

URL = "http://127.0.0.1:9/v1"
OTHER_VALUES: dict[str, dict[str, Any]] = {
    "provider": {
        "url": "http://127.0.0.1:9/v2",
        "region": "there",
        "model": "large",
        "model_revision": "2",
        "dimensions": 9,
        "input_preparation": "as-is@2",
        "ask_for_dimensions": True,
        "ca_file": Path(certifi.where()),
        "proxy_url": "http://127.0.0.1:3128",
    },
    "pricing": {
        "usd_per_million_tokens": "101",
        "input_overhead_tokens": 3,
        "request_overhead_tokens": 1,
    },
    "ceilings": {"quanta_per_day": 1, "requests_per_day": 1},
    "egress": {
        "allowed_regions": ["here"],
        "allowed_hosts": ["http://127.0.0.1:9", "api.example.com"],
        "second_engine": "kingfisher",
    },
}
SECRETS = {"api_key_variable", "api_key_file"}
"""Where the key is read from: it may be rotated, and decides about nothing."""
EACH = [(section, name) for section, values in OTHER_VALUES.items() for name in values]
ALLOWED: dict[str, dict[str, Any]] = {"egress": {"allowed_regions": ["here", "there"]}}


def test_no_setting_of_the_four_sections_was_left_out() -> None:
    models: dict[str, type[Parsed]] = {
        "provider": ProviderSettings,
        "pricing": PricingSettings,
        "ceilings": CeilingSettings,
        "egress": EgressSettings,
    }

    fields = {section: set(model.model_fields) - SECRETS for section, model in models.items()}

    assert fields == {section: set(values) for section, values in OTHER_VALUES.items()}


@pytest.mark.parametrize(("section", "name"), EACH)
def test_another_value_is_another_configuration(section: str, name: str, tmp_path: Path) -> None:
    change = {section: ALLOWED.get(section, {}) | {name: OTHER_VALUES[section][name]}}
    as_it_was = current_configuration(settings_for(URL, tmp_path, **ALLOWED))

    changed = current_configuration(settings_for(URL, tmp_path, **ALLOWED | change))

    assert changed.digest != as_it_was.digest


def test_other_certificates_in_the_same_file_are_another_configuration(tmp_path: Path) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_text("one")
    settings = settings_for(URL, tmp_path, provider={"ca_file": trusted})
    as_it_was = current_configuration(settings).digest

    trusted.write_text("two")

    assert current_configuration(settings).digest != as_it_was


def test_certificates_that_cannot_be_read_make_no_configuration(tmp_path: Path) -> None:
    settings = settings_for(URL, tmp_path, provider={"ca_file": tmp_path / "none.pem"})

    with pytest.raises(RemembrancerError, match="ca_file"):
        current_configuration(settings)


def test_a_proxy_set_after_the_admission_receives_nothing(tmp_path: Path) -> None:
    with open_world(tmp_path) as world, LoopbackProvider() as proxy:
        world.admit()
        world.change(provider={"proxy_url": f"http://127.0.0.1:{proxy.port}"})
        memory = world.open()

        with pytest.raises(NotAdmittedError):
            memory.prepare([a_query("Who reads this?")], a_context(), **WHO)

        assert (proxy.connections, world.server.connections) == (0, 0)
