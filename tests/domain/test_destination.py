"""A URL is read one way only, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.destination import Destination
from remembrancer.domain.errors import InvalidInputError


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("https://API.Example.com/v1/embeddings", "https://api.example.com:443/v1/embeddings"),
        ("https://api.example.com:8443", "https://api.example.com:8443"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        ("http://[0:0:0:0:0:0:0:1]/x", "http://[::1]:80/x"),
        ("https://bücher.example/", "https://xn--bcher-kva.example:443/"),
        ("https://ａｐｉ.example/", "https://api.example:443/"),  # noqa: RUF001 - full width
    ],
)
def test_one_spelling_for_each_destination(url: str, read: str) -> None:
    assert str(Destination.parse(url)) == read


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.example.com",
        "ftp://api.example.com/",
        "https://",
        "https:///v1",
        "https://user@api.example.com/",
        "https://user:word@api.example.com/",
        "https://@api.example.com/",
        "https://api.example.com/?key=1",
        "https://api.example.com/?",
        "https://api.example.com/#here",
        "https://api.example.com\\@evil.example/",
        "https://api.example.com /",
        "https://api.example.com/\r\nHost: evil.example",
        "https://api.example.com\t/",
        "https://api.example.com./",
        "https://api..example.com/",
        "https://-api.example.com/",
        "https://api_1.example.com/",
        "https://%61pi.example.com/",
        "https://api.example.com:0/",
        "https://api.example.com:65536/",
        "https://api.example.com:x/",
        "https://127.1/",
        "https://0177.0.0.1/",
        "https://0x7f.0.0.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://[::1]evil.example.com/",
        "https://[::1]evil.example.com:443/",
        "https://api.example.com/vé/embeddings",
        "https://straße.example/",
        "https://a\u200db.example/",
        "https://" + "a" * 64 + ".example/",
        "https://" + "a." * 127 + "example/",
        "https://api.example.com/" + "a" * 2_048,
    ],
)
def test_what_two_readers_might_read_differently_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        Destination.parse(url)

    assert "example" not in str(refusal.value)
    assert refusal.value.__cause__ is refusal.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1/", True),
        ("http://127.255.0.9/", True),
        ("http://[::1]/", True),
        ("http://localhost/", True),
        ("http://localhost.example/", False),
        ("http://10.0.0.1/", False),
        ("http://0.0.0.0/", False),
        ("http://127.0.0.1.example/", False),
    ],
)
def test_knows_this_machine(url: str, *, here: bool) -> None:
    assert Destination.parse(url).is_loopback is here


@given(st.from_regex(r"https?://[a-zA-Z0-9.\-\[\]:@%ß/\\ ü]{0,40}", fullmatch=True))
def test_what_is_read_reads_back_as_itself(url: str) -> None:
    try:
        destination = Destination.parse(url)
    except InvalidInputError:
        return

    assert Destination.parse(str(destination)) == destination
