"""The HTTP provider against a real server on this machine; see also the contract."""

import gc
import json
import secrets
import ssl
import subprocess
import sys
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from typing_extensions import override

from remembrancer.adapters.provider import (
    NoSecret,
    OpenAICompatibleProvider,
    SecretFromEnvironment,
    SecretFromFile,
)
from remembrancer.application.ports.embedding_provider import ProviderError, ProviderFailure
from remembrancer.contracts import loopback_provider as server_side
from remembrancer.contracts.embedding_provider import (
    ENOUGH_S,
    SHORT_S,
    TEXTS,
    EmbeddingProviderContract,
    every_word_of,
)
from remembrancer.contracts.loopback_provider import Behaviour, LoopbackProvider
from remembrancer.domain.errors import InvalidInputError, SettingsError


class TestOpenAICompatibleProvider(EmbeddingProviderContract):
    @override
    def provider_for(self, url: str, *, key: str) -> OpenAICompatibleProvider:
        secret = SecretFromEnvironment(name="KEY", environment={"KEY": key})
        return OpenAICompatibleProvider(url=url, model="small", secret=secret)


def ask(provider: OpenAICompatibleProvider, timeout_s: float = ENOUGH_S) -> bytes:
    return anyio.run(lambda: provider.request(TEXTS, timeout_s=timeout_s))


def failure_of(provider: OpenAICompatibleProvider, timeout_s: float = ENOUGH_S) -> ProviderError:
    with pytest.raises(ProviderError) as failure:
        ask(provider, timeout_s)
    return failure.value


def keyless(url: str, **settings: object) -> OpenAICompatibleProvider:
    return OpenAICompatibleProvider(url=url, model="small", secret=NoSecret(), **settings)  # type: ignore[arg-type] # each test names real settings


# -- What is sent --------------------------------------------------------------------------------


def test_sends_no_authorization_without_a_key() -> None:
    with LoopbackProvider() as server:
        ask(keyless(server.url))

    assert "authorization" not in server.requests[0].headers


def test_sends_dimensions_only_when_they_are_configured() -> None:
    with LoopbackProvider() as server:
        ask(keyless(server.url))
        ask(keyless(server.url, dimensions=8))

    assert [request.json.get("dimensions") for request in server.requests] == [None, 8]


def test_takes_the_complete_endpoint_as_well_as_the_base() -> None:
    assert (
        keyless("http://localhost:11434/v1/").destination
        == keyless("http://localhost:11434/v1/embeddings").destination
        == "http://localhost:11434/v1/embeddings"
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/v1",
        "http://10.0.0.7/v1",
        "https://user:word@api.example.com/v1",
        "https://api.example.com/v1?key=1",
        "https://api.example.com/v1#part",
        "ftp://api.example.com/v1",
        "api.example.com/v1",
    ],
)
def test_refuses_urls_that_are_not_plain_https(url: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        keyless(url)

    assert "example" not in str(refusal.value)


def test_goes_through_a_proxy_only_where_settings_name_one() -> None:
    with LoopbackProvider() as proxy:
        provider = keyless("http://127.0.0.1:9/v1", proxy_url=f"http://127.0.0.1:{proxy.port}")
        ask(provider)

    assert proxy.requests[0].target == "http://127.0.0.1:9/v1/embeddings"


def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with LoopbackProvider() as trap, LoopbackProvider() as server:
        trap_url = f"http://127.0.0.1:{trap.port}"
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, trap_url)
            monkeypatch.setenv(name.upper(), trap_url)
        monkeypatch.setenv("OPENAI_API_KEY", "not-this-one")
        monkeypatch.setenv("OPENAI_BASE_URL", trap_url)
        monkeypatch.setenv("OPENAI_ORG_ID", "nor-this")
        netrc = tmp_path / "netrc"
        netrc.write_text("machine 127.0.0.1 login somebody password " + secrets.token_hex(8))
        monkeypatch.setenv("NETRC", str(netrc))
        ask(keyless(server.url))

    assert trap.connections == 0
    assert set(server.requests[0].headers) == {
        "host",
        "user-agent",
        "accept",
        "accept-encoding",
        "content-type",
        "content-length",
        "connection",
    }


def test_making_a_provider_imports_no_http_client() -> None:
    program = (
        "import sys\n"
        "from remembrancer.adapters.provider import NoSecret, OpenAICompatibleProvider\n"
        "OpenAICompatibleProvider(url='https://a.example/v1', model='m', secret=NoSecret())\n"
        "print(sorted({'httpcore2', 'httpx2', 'h11', 'anyio', 'ssl'} & set(sys.modules)))"
    )

    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert printed.strip() == "[]"


# -- Memory --------------------------------------------------------------------------------------


BOMB_MIB = 300
GROWTH_MIB = 20
CHILD = """
import resource, sys, anyio
from remembrancer.adapters.provider import NoSecret, OpenAICompatibleProvider
from remembrancer.application.ports.embedding_provider import ProviderError

def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

def ask(url):
    provider = OpenAICompatibleProvider(url=url, model='m', secret=NoSecret())
    try:
        return anyio.run(lambda: provider.request(['a'], timeout_s=20.0))
    except ProviderError as failure:
        return failure.reason

ask(sys.argv[1])
before = peak_kib()
reason = ask(sys.argv[1])
print(reason, peak_kib() - before)
"""


def test_a_bomb_is_stopped_at_the_cap_in_constant_memory() -> None:
    packed = server_side.bomb(BOMB_MIB << 20)
    assert 250_000 < len(packed) < 350_000

    with LoopbackProvider(server_side.honest(), server_side.packed(packed)) as server:
        printed = subprocess.run(
            [sys.executable, "-c", CHILD, server.url], capture_output=True, text=True, check=True
        ).stdout

    reason, grown_kib = printed.split()
    assert reason == "too_large"
    assert int(grown_kib) < GROWTH_MIB * 1024


# -- TLS -----------------------------------------------------------------------------------------


def certificate(folder: Path, host: str) -> Path:
    """Write a self-signed certificate and its key for ``host``; return the file of both."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{host}.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


def tls_of(file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_named_certificate_is_trusted(tmp_path: Path) -> None:
    file = certificate(tmp_path, "localhost")

    with LoopbackProvider(tls=tls_of(file), host="localhost") as server:
        body = ask(keyless(server.url, ca_file=file))

    assert len(json.loads(body)["data"]) == len(TEXTS)


def test_an_unknown_certificate_is_refused_whatever_the_environment_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path, "localhost")
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, str(file))

    with LoopbackProvider(tls=tls_of(file), host="localhost") as server:
        failure = failure_of(keyless(server.url))

    assert failure.failure is ProviderFailure.TLS
    assert server.requests == []


def test_another_hosts_certificate_is_refused(tmp_path: Path) -> None:
    file = certificate(tmp_path, "other.example")

    with LoopbackProvider(tls=tls_of(file), host="localhost") as server:
        failure = failure_of(keyless(server.url, ca_file=file))

    assert failure.failure is ProviderFailure.TLS
    assert server.requests == []


def test_session_keys_are_not_written_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path, "localhost")
    keys = tmp_path / "session-keys"
    monkeypatch.setenv("SSLKEYLOGFILE", str(keys))

    with LoopbackProvider(tls=tls_of(file), host="localhost") as server:
        ask(keyless(server.url, ca_file=file))

    assert not keys.exists()


def test_a_deadline_amid_the_handshake_leaves_no_socket_open(tmp_path: Path) -> None:
    file = certificate(tmp_path, "localhost")
    before = open_files()

    with LoopbackProvider() as server:  # It waits for a request and shakes no hands.
        provider = keyless(f"https://localhost:{server.port}/v1", ca_file=file)
        failure = failure_of(provider, SHORT_S)
        assert server.gone.wait(ENOUGH_S)

    gc.collect()  # A forgotten socket would warn here, and warnings are errors.
    assert failure.failure is ProviderFailure.TIMEOUT
    assert open_files() <= before


def test_a_certificate_file_without_certificates_is_a_tls_failure(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")

    failure = failure_of(keyless("https://127.0.0.1:9/v1", ca_file=empty))

    assert failure.failure is ProviderFailure.TLS


# -- Keys ----------------------------------------------------------------------------------------


def test_a_key_is_read_from_a_file_anew_for_each_request(tmp_path: Path) -> None:
    file = tmp_path / "key"

    with LoopbackProvider() as server:
        provider = OpenAICompatibleProvider(
            url=server.url, model="small", secret=SecretFromFile(path=file)
        )
        for key in ("first", "second"):
            file.write_text(f"{key}\n")
            ask(provider)

    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("content", [None, b"", b" \n", b"two\nlines", b"\xff\xfe", b"a" * 9_000])
def test_without_a_usable_key_nothing_is_sent(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)

    with LoopbackProvider() as server:
        failure = failure_of(
            OpenAICompatibleProvider(
                url=server.url, model="small", secret=SecretFromFile(path=file)
            )
        )

    assert failure.failure is ProviderFailure.NO_KEY
    assert server.connections == 0


def test_a_source_shows_the_place_and_never_the_key() -> None:
    key = secrets.token_hex(16) + "\u00e9"
    source = SecretFromEnvironment(name="EMBEDDING_KEY", environment={"EMBEDDING_KEY": key})

    with pytest.raises(SettingsError) as refusal:
        source.read()

    assert key not in repr(source) + every_word_of(refusal.value)
    assert "EMBEDDING_KEY" in str(refusal.value)


@pytest.mark.parametrize("behaviour", [server_side.status(401), server_side.reset()])
def test_no_variable_of_a_failures_traceback_holds_the_key(behaviour: Behaviour) -> None:
    """Some hosts show variables in tracebacks."""
    key = secrets.token_hex(16)
    secret = SecretFromEnvironment(name="KEY", environment={"KEY": key})

    with LoopbackProvider(behaviour) as server:
        failure = failure_of(
            OpenAICompatibleProvider(url=server.url, model="small", secret=secret)
        )

    shown = [
        repr(frame.f_locals)
        for frame, _ in traceback.walk_tb(failure.__traceback__)
        if frame.f_globals["__name__"].startswith("remembrancer.adapters")
    ]
    assert shown
    assert not [variables for variables in shown if key in variables]
