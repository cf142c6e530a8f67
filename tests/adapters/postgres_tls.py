"""PostgreSQL over TLS: certificates made for the test, a relay that speaks it, a server that does.

The server from PyPI is built without OpenSSL.  So a relay that ends the TLS, as a pooler may,
stands before the tests' server; and where a PostgreSQL with OpenSSL and pgvector is installed, one
of its servers runs as well.
"""

import os
import select
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from psycopg.conninfo import make_conninfo
from tests.adapters.postgres_server import embedded_programs, unprivileged
from tests.adapters.server_address import ServerAddress, at_once

HOST = "localhost"
_TLS_WANTED = 80877103
_CHUNK = 65536


class Authority:
    """Signs certificates; its own is :attr:`certificate`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._signed(
            self._name, self._key, x509.BasicConstraints(ca=True, path_length=None)
        )
        self.certificate = folder / f"{name}.crt"
        self.certificate.write_bytes(made)

    def issued(self, host: str) -> tuple[Path, Path]:
        """Return a certificate for a host and its key, as files."""
        key = ec.generate_private_key(ec.SECP256R1())
        named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        certificate, key_file = self._folder / f"{host}.crt", self._folder / f"{host}.key"
        hosts = x509.SubjectAlternativeName([x509.DNSName(host)])
        certificate.write_bytes(self._signed(named, key, hosts))
        key_file.touch(mode=0o600)
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, key_file

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> bytes:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
            .public_bytes(serialization.Encoding.PEM)
        )


@dataclass
class TlsRelay:
    """Speaks TLS, and nothing else, for a server; close it at the end."""

    server: ServerAddress
    certificate: Path
    key: Path
    encrypted: int = 0
    """How many sessions there were."""

    def __post_init__(self) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, self.key)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def through(self, dsn: str) -> str:
        """Return a connection string that leads through here, by :data:`HOST`."""
        port: int = self._listening.getsockname()[1]
        return make_conninfo(dsn, host=HOST, hostaddr="127.0.0.1", port=port, gssencmode="disable")

    def close(self) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.append(at_once(client))
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, self.server.connected() as server:
            if struct.unpack(">II", client.recv(8)) != (8, _TLS_WANTED):
                return
            client.sendall(b"S")
            with self._context.wrap_socket(client, server_side=True) as tls:
                self.encrypted += 1
                while _passed_on(tls, server):
                    pass


def _passed_on(tls: ssl.SSLSocket, server: socket.socket) -> bool:
    """Pass on what there is; return whether both are still there."""
    ready = [tls] if tls.pending() else select.select([tls, server], [], [])[0]
    for source, target in ((tls, server), (server, tls)):
        if source in ready:
            data = source.recv(_CHUNK)
            if not data:
                return False
            target.sendall(data)
    return True


def programs_with_tls() -> Path | None:
    """Return the programs of a PostgreSQL that has OpenSSL and pgvector, or None."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    first = [] if on_path is None else [Path(on_path).parent]
    return next(filter(_fit, [embedded_programs(), *first, *installed]), None)


def for_the_server(folder: Path) -> None:
    """Let the role that a server runs as read the keys in a folder."""
    user = unprivileged()
    for one in [folder, *folder.iterdir()] if user else []:
        os.chown(one, user["user"], user["group"])


def _fit(programs: Path) -> bool:
    asking = programs / "pg_config"
    if not (asking.exists() and (programs / "initdb").exists()):
        return False
    told = [
        subprocess.run([asking, what], capture_output=True, text=True, check=True).stdout.strip()
        for what in ("--configure", "--sharedir")
    ]
    return "ssl" in told[0] and (Path(told[1]) / "extension" / "vector.control").exists()
