"""Where a request would go: an ``http(s)`` URL, read one way only.

Guards decide on a destination and the provider's adapter connects to it; both read it here, so
that no second reading of the same characters can lead elsewhere.  What two readers might
understand differently is refused, not repaired: user names, queries, fragments, backslashes,
blanks, escapes in the host, numbers that some resolvers take for addresses, letters that the two
versions of IDNA map differently (design 4.4; adr/0012).
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import SplitResult, urlsplit

from remembrancer.domain.errors import InvalidInputError

URL_CHARACTERS_MAX = 2_048
DEFAULT_PORTS = {"https": 443, "http": 80}

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_BRACKETED = re.compile(r"\[[^\[\]]*\](?::[0-9]*)?")
_UNREADABLE = re.compile(r"[\x00-\x20\x7f\\]|\s")
_DEVIATING = "ß\u1e9e\u03c2\u200c\u200d"
"""Letters that IDNA 2003 (which ``encodings.idna`` knows) and IDNA 2008 map to other hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A URL in one spelling: lower case, punycode, the port always there."""

    scheme: str
    host: str
    """A host name in ASCII, an IPv4 address, or an IPv6 address without brackets."""
    port: int
    path: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read ``url``.

        Raises:
            InvalidInputError: it isn't an http(s) URL that everybody reads alike; the message
                doesn't repeat it, since a URL can hold a credential.
        """
        if len(url) > URL_CHARACTERS_MAX or _UNREADABLE.search(url):
            raise _refused("is too long, or holds blanks, control characters or a backslash")
        parts, host, port = _split(url)
        if parts.scheme not in DEFAULT_PORTS:
            raise _refused("must begin with https:// (http:// for this machine only)")
        if "@" in parts.netloc:
            raise _refused("must not hold a user name or password")
        if "[" in parts.netloc and not _BRACKETED.fullmatch(parts.netloc):
            raise _refused("has something between its IPv6 address and the port")
        if not parts.path.isascii():
            raise _refused("has letters in its path that must be escaped")
        if "?" in url or "#" in url:
            raise _refused("must not hold a query or a fragment")
        return cls(
            scheme=parts.scheme,
            host=_host(host, bracketed="[" in parts.netloc),
            port=DEFAULT_PORTS[parts.scheme] if port is None else port,
            path=parts.path,
        )

    @property
    def is_loopback(self) -> bool:
        """True where the request can't leave this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def origin(self) -> str:
        """Scheme, host and port, such as ``https://api.example.com:443``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __str__(self) -> str:
        return self.origin + self.path


def _split(url: str) -> tuple[SplitResult, str, int | None]:
    # Raised outside the handler, so that no ValueError that quotes the URL hangs on it.
    try:
        parts = urlsplit(url)
        if parts.port != 0:
            return parts, parts.hostname or "", parts.port
    except ValueError:
        pass
    raise _refused("isn't a URL")


def _host(host: str, *, bracketed: bool) -> str:
    if bracketed:
        return _ipv6(host)
    if not host.isascii():
        host = _punycode(host)
    labels = host.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        return _ipv4(host)
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):  # noqa: PLR2004 (RFC 1035)
        raise _refused("has no host name that everybody reads alike")
    return host


def _ipv6(host: str) -> str:
    try:
        address = ipaddress.IPv6Address(host)
        if address.scope_id is None and address.ipv4_mapped is None:
            return str(address)
    except ValueError:
        pass
    raise _refused("has an IPv6 address that isn't plain")


def _ipv4(host: str) -> str:
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError:
        pass
    raise _refused("has a host that some resolvers read as another address")


def _punycode(host: str) -> str:
    if not any(letter in host for letter in _DEVIATING):
        try:
            return host.encode("idna").decode("ascii").lower()
        except UnicodeError:
            pass
    raise _refused("has a host that the versions of IDNA read differently; give its xn-- form")


def _refused(problem: str) -> InvalidInputError:
    return InvalidInputError(field="url", problem=problem)
