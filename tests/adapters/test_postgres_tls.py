"""What a message of libpq's says about TLS."""

import pytest

from remembrancer.adapters.postgres.tls import tls_refusal

CLEAR = (
    'FATAL:  no pg_hba.conf entry for host "192.0.2.1", user "app", database "m", no encryption'
)
WRONG = 'FATAL:  password authentication failed for user "app"'


@pytest.mark.parametrize(
    ("words", "see_to"),
    [
        ("SSL error: certificate verify failed", "store.ssl_root_cert"),
        (
            'server certificate for "a" (and 1 other name) does not match host name "b"',
            "the host in the connection string",
        ),
        ('root certificate file "/nowhere" does not exist', "store.ssl_root_cert"),
        (CLEAR, "store.sslmode"),
    ],
)
def test_what_stands_against_tls_names_where_to_look(words: str, see_to: str) -> None:
    found = tls_refusal(f'connection to server at "192.0.2.1", port 5432 failed: {words}')

    assert found is not None
    assert found.see_to == see_to


@pytest.mark.parametrize("words", [WRONG, f"{WRONG}\n{CLEAR}", "timeout expired", ""])
def test_what_is_no_matter_of_tls_is_not_told_as_one(words: str) -> None:
    """With ``prefer`` libpq tries once more in the clear, and tells of both."""
    assert tls_refusal(words) is None
