"""A memory in PostgreSQL over TLS: with whom it talks, and what it says where it doesn't."""

import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from tests.adapters.pooling_relay import PoolingRelay
from tests.adapters.postgres_server import FreshDatabase, OwnServer, server
from tests.adapters.postgres_tls import (
    HOST,
    Authority,
    TlsRelay,
    for_the_server,
    programs_with_tls,
)
from tests.adapters.server_address import address_of
from tests.application.house import a_context, a_query, an_entry, place_in

from remembrancer.composition import production
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import EmbedderSettings, Settings, StoreSettings
from remembrancer.domain.errors import StoreForbiddenError

OTHER_HOST = "other.example"


@dataclass(frozen=True, slots=True)
class Reached:
    """A database behind TLS."""

    place: StoreSettings
    fresh: FreshDatabase
    relay: TlsRelay | None

    def in_the_clear(self) -> int:
        """Return how many of the memory's sessions the server has that nothing encrypts."""
        if self.relay is not None:
            return 0 if self.relay.encrypted else 1  # It takes no others.
        with psycopg.connect(self.fresh.superuser) as connection:
            [(count, clear)] = connection.execute(
                "SELECT count(*), count(*) FILTER (WHERE NOT ssl)"
                " FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                " WHERE usename IN ('remembrancer_app', 'remembrancer_auditor')"
            ).fetchall()
        assert count
        return int(clear)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Lend a folder which a server may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="remembrancer-tls-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def authority(folder: Path) -> Authority:
    return Authority(folder, "authority")


def _write_strings(folder: Path, *, app: str, auditor: str) -> StoreSettings:
    (folder / "app.dsn").write_text(app)
    (folder / "auditor.dsn").write_text(auditor)
    return place_in(folder)


@contextmanager
def _behind_a_relay(authority: Authority, folder: Path, host: str) -> Generator[Reached]:
    certificate, key = authority.issued(host)
    with server().database() as fresh:
        relay = TlsRelay(address_of(fresh.app), certificate, key)
        place = _write_strings(
            folder, app=relay.through(fresh.app), auditor=relay.through(fresh.auditor)
        )
        yield Reached(place, fresh, relay)
        relay.close()


@contextmanager
def _of_a_server(authority: Authority, folder: Path, host: str) -> Generator[Reached]:
    programs = programs_with_tls()
    if programs is None:
        # The embedded one is built without; the relay's cases hold for the memory's side.
        pytest.skip("no PostgreSQL with OpenSSL and pgvector is installed on this machine")
    certificate, key = authority.issued(host)
    access = folder / "pg_hba.conf"
    access.write_text("hostssl all all 127.0.0.1/32 trust\n")
    for_the_server(folder)
    own = OwnServer(
        {
            "ssl": "on",
            "ssl_cert_file": str(certificate),
            "ssl_key_file": str(key),
            "hba_file": str(access),
        },
        programs=programs,
    )
    try:
        fresh = own.fresh_database()
        dsns = (
            psycopg.conninfo.make_conninfo(one, host=HOST, hostaddr="127.0.0.1")
            for one in (fresh.app, fresh.auditor)
        )
        place = _write_strings(folder, app=next(dsns), auditor=next(dsns))
        yield Reached(place, fresh, None)
    finally:
        own.stop()


KINDS = {"a relay": _behind_a_relay, "a server": _of_a_server}


@pytest.fixture(params=KINDS)
def reached(
    request: pytest.FixtureRequest, authority: Authority, folder: Path
) -> Iterator[Reached]:
    with KINDS[request.param](authority, folder, HOST) as reached:
        yield reached


@pytest.fixture(params=KINDS)
def elsewhere(
    request: pytest.FixtureRequest, authority: Authority, folder: Path
) -> Iterator[Reached]:
    """Return one whose certificate is for another host."""
    with KINDS[request.param](authority, folder, OTHER_HOST) as reached:
        yield reached


@contextmanager
def _opened(place: StoreSettings, **changes: object) -> Generator[Remembrancer]:
    changed = place.model_copy(update=changes)
    settings = Settings(store=changed, embedder=EmbedderSettings(provider="none"))
    with production(settings) as memory:
        yield memory


def _refusal(place: StoreSettings, **changes: object) -> str:
    with pytest.raises(StoreForbiddenError) as refused, _opened(place, **changes):
        pass
    return str(refused.value)


def test_a_memory_whose_server_is_known_remembers_and_recalls(
    reached: Reached, authority: Authority
) -> None:
    checked = {"sslmode": "verify-full", "ssl_root_cert": authority.certificate}

    with _opened(reached.place, **checked) as memory:
        entry_id = memory.remember(an_entry("The invoice service retries."))
        found = memory.recall(a_query("invoice"), a_context())
        counted = memory.status()

        assert reached.in_the_clear() == 0
    assert [one.entry_id for one in found.entries] == [entry_id]
    assert counted.entries == 1


def test_a_server_that_another_authority_vouches_for_is_refused(
    reached: Reached, folder: Path
) -> None:
    another = Authority(folder, "another")

    for mode in ("verify-ca", "verify-full"):
        said = _refusal(reached.place, sslmode=mode, ssl_root_cert=another.certificate)

        assert "none of store.ssl_root_cert has signed" in said


def test_a_server_under_another_name_is_refused_if_names_count(
    elsewhere: Reached, authority: Authority
) -> None:
    root = authority.certificate

    said = _refusal(elsewhere.place, sslmode="verify-full", ssl_root_cert=root)

    assert "another host name" in said
    with _opened(elsewhere.place, sslmode="verify-ca", ssl_root_cert=root) as memory:
        assert memory.status().entries == 0


def test_a_certificate_that_is_not_there_is_named(reached: Reached, folder: Path) -> None:
    said = _refusal(reached.place, sslmode="verify-full", ssl_root_cert=folder / "missing.crt")

    assert "see to store.ssl_root_cert" in said


def test_a_server_without_tls_is_refused_where_it_is_wanted(folder: Path) -> None:
    with server().database() as fresh:
        relay = PoolingRelay(fresh.app)  # Has none.
        place = _write_strings(
            folder, app=relay.through(fresh.app), auditor=relay.through(fresh.auditor)
        )

        said = _refusal(place, sslmode="require")
        relay.close()

    assert "has no TLS" in said
    assert "store.sslmode" in said


def test_a_server_that_wants_tls_says_so(authority: Authority, folder: Path) -> None:
    with _of_a_server(authority, folder, HOST) as reached:
        said = _refusal(reached.place, sslmode="disable")

    assert "wants TLS" in said
