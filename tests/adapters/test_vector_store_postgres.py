"""pgvector's adapters: their contracts, exactly and by an approximate index, and their limits."""

from array import array
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.adapters.postgres_named import ClearingTransactions, emptied
from tests.adapters.postgres_named_indexes import NamedVectorIndexes, NamedVectorOutbox
from tests.adapters.postgres_server import FreshDatabase
from typing_extensions import override

from remembrancer.adapters.postgres import maintenance, nearest
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.adapters.postgres.vector_indexes import DIMENSIONS_MAX, PostgresVectorIndexes
from remembrancer.adapters.postgres.vector_store import PostgresVectorStore, VectorSearch
from remembrancer.application.ports import (
    Clock,
    Transactions,
    VectorIndexes,
    VectorOutbox,
    VectorPoint,
    VectorStore,
)
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.erasure import bytes_under
from remembrancer.contracts.vector_examples import (
    DIMENSIONS,
    EAST,
    FIRST,
    NORTH,
    SECOND,
    brute_force,
    random_vectors,
)
from remembrancer.contracts.vector_indexes import SPACE, VectorIndexesContract
from remembrancer.contracts.vector_outbox import VectorOutboxContract
from remembrancer.contracts.vector_store import VectorStoreContract
from remembrancer.contracts.vector_store_in_transactions import VectorStoreInTransactionsContract
from remembrancer.domain.errors import InvalidInputError, StoreUnavailableError
from remembrancer.domain.identity import EntryId

ANA = {"tenant": "acme", "owner": "ana", "scope": "s1"}
BEN = {"tenant": "acme", "owner": "ben", "scope": "s1"}


@pytest.fixture
def fresh() -> Iterator[FreshDatabase]:
    with emptied() as fresh:
        yield fresh


@pytest.fixture
def database(fresh: FreshDatabase) -> Iterator[Database]:
    with Database.open(fresh.app, reader_dsn=fresh.auditor) as database:
        yield database


@pytest.fixture
def store(database: Database) -> PostgresVectorStore:
    indexes = PostgresVectorIndexes(database=database)
    return indexes.store(indexes.activate(indexes.begin(SPACE)))


class TestPostgresVectorStore(VectorStoreContract, VectorStoreInTransactionsContract):
    durable = True

    @pytest.fixture(autouse=True)
    def _lending(self) -> Iterator[None]:
        with ExitStack() as self.lent:
            self.folder: Path | None = None
            yield

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[VectorStore]:
        with self.opened_with_transactions(folder) as (store, _):
            yield store

    @override
    @contextmanager
    def opened_with_transactions(
        self, folder: Path
    ) -> Generator[tuple[VectorStore, Transactions]]:
        if folder != self.folder:  # The same folder is the same database.
            self.lent.close()
            self.fresh, self.folder = self.lent.enter_context(emptied()), folder
        with Database.open(self.fresh.app) as database:
            indexes = NamedVectorIndexes(database)
            yield indexes.store(indexes.begin(SPACE)), PostgresTransactions(database=database)


class TestPostgresVectorIndexes(VectorIndexesContract):
    durable = True

    @pytest.fixture(autouse=True)
    def _fresh(self) -> Iterator[None]:
        with emptied() as self.fresh:
            yield

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[tuple[VectorIndexes, Transactions]]:
        with Database.open(self.fresh.app) as database:
            yield NamedVectorIndexes(database), PostgresTransactions(database=database)


class TestPostgresVectorOutbox(VectorOutboxContract):
    @override
    @contextmanager
    def opened(self, folder: Path, clock: Clock) -> Generator[tuple[VectorOutbox, Transactions]]:
        with (
            emptied() as self.fresh,
            Database.open(self.fresh.app, reader_dsn=self.fresh.auditor) as database,
        ):
            yield NamedVectorOutbox(database), PostgresTransactions(database=database)

    @override
    def wait(self, clock: FixedClock, seconds: float) -> None:
        """Let leases be as much older: the time is the server's."""
        with psycopg.connect(self.fresh.superuser) as connection:
            connection.execute(
                "UPDATE remembrancer.vector_outbox_leases"
                " SET until = until - make_interval(secs => %s)",
                (seconds,),
            )


# -- Whose vectors -----------------------------------------------------------------


def test_vectors_by_id_need_a_tenant_to_ask_for(store: PostgresVectorStore) -> None:
    store.upsert(FIRST, EAST, ANA)

    for call in (
        lambda: store.vectors([FIRST]),
        lambda: store.delete(FIRST),
        lambda: store.query(EAST, 5),
        store.count,
        store.clear,
    ):
        with pytest.raises(InvalidInputError, match="name the tenant"):
            call()
    with pytest.raises(InvalidInputError, match="name the tenant"):
        store.upsert(SECOND, EAST, {})


def test_a_filter_for_another_tenant_is_refused_inside_a_block(
    database: Database, store: PostgresVectorStore
) -> None:
    store.upsert(FIRST, EAST, {**ANA, "tenant": "other"})

    with (
        database.acting_for("acme", "ana"),
        pytest.raises(InvalidInputError, match="acted for"),
    ):
        store.query(EAST, 5, {"tenant": "other"})


def test_an_owners_block_finds_no_others_whatever_is_asked(
    database: Database, store: PostgresVectorStore
) -> None:
    store.upsert_many([VectorPoint(FIRST, EAST, ANA), VectorPoint(SECOND, EAST, BEN)])

    with database.acting_for("acme", "ana"):
        assert [one.id for one in store.query(EAST, 5)] == [FIRST]
        assert store.query(EAST, 5, {"owner": ("ben", "cem")}) == []
        assert store.vectors([SECOND]) == {}


def test_dropping_an_index_takes_the_vectors_of_all_tenants(
    fresh: FreshDatabase, database: Database
) -> None:
    """As the application's role, which row security keeps from seeing them."""
    indexes = PostgresVectorIndexes(database=database)
    building = indexes.begin(SPACE)
    store = indexes.store(building)
    for number in range(3):
        one = EntryId(UUID(int=number))
        store.upsert(one, EAST, {"tenant": f"t{number}", "owner": "o"})

    indexes.drop(building)

    with psycopg.connect(fresh.superuser) as connection:
        left = connection.execute("SELECT count(*) FROM remembrancer.vectors").fetchone()
    assert left == (0,)


def test_a_writer_of_a_dropped_index_hears_of_it(database: Database) -> None:
    indexes = PostgresVectorIndexes(database=database)
    building = indexes.begin(SPACE)
    store = indexes.store(building)

    def write_after_it_is_dropped() -> None:
        with database.begin():
            with ThreadPoolExecutor(1) as other:
                other.submit(indexes.drop, building).result()
            store.upsert(FIRST, EAST, ANA)

    with pytest.raises(StoreUnavailableError, match="dropped"):
        write_after_it_is_dropped()


def test_two_that_come_first_make_one_index(database: Database) -> None:
    indexes = PostgresVectorIndexes(database=database)

    def first(number: int) -> int:
        with database.begin():
            index = indexes.active() or indexes.activate(indexes.begin(SPACE))
            indexes.store(index).upsert(EntryId(UUID(int=number)), EAST, ANA)
            return index.number

    with ThreadPoolExecutor(4) as pool:
        numbers = set(pool.map(first, range(4)))

    assert len(numbers) == 1
    with database.acting_for("acme"):
        assert indexes.store(indexes.all()[0]).count() == 4


# -- Limits ------------------------------------------------------------------------


def test_refuses_more_dimensions_than_pgvector_stores(database: Database) -> None:
    indexes = PostgresVectorIndexes(database=database)
    widest = SPACE.model_copy(update={"dimensions": DIMENSIONS_MAX})
    store = indexes.store(indexes.begin(widest))
    vector = array("f", [1.0, *[0.0] * (DIMENSIONS_MAX - 1)])

    store.upsert(FIRST, vector, ANA)

    with database.acting_for("acme"):
        assert store.query(vector, 1)[0].score == 1.0
    with pytest.raises(InvalidInputError, match="16,000"):
        indexes.begin(widest.model_copy(update={"dimensions": DIMENSIONS_MAX + 1}))


def test_an_approximate_index_of_too_many_dimensions_is_refused(
    fresh: FreshDatabase, database: Database
) -> None:
    indexes = PostgresVectorIndexes(database=database)
    indexes.begin(SPACE.model_copy(update={"dimensions": 4_001}))

    with pytest.raises(InvalidInputError, match="4,000"):
        maintenance.make_approximate(fresh.owner)


# -- By an approximate index -------------------------------------------------------


@pytest.fixture
def approximate(
    fresh: FreshDatabase, database: Database, monkeypatch: pytest.MonkeyPatch
) -> PostgresVectorStore:
    """Return a store with an approximate index that is used as early as can be."""
    monkeypatch.setattr(nearest, "READ_MAX", 100)
    indexes = PostgresVectorIndexes(database=database, search=VectorSearch.AUTO)
    store = indexes.store(indexes.activate(indexes.begin(SPACE)))
    maintenance.make_approximate(fresh.owner)
    return store


def test_the_approximate_index_answers_with_exact_scores(
    database: Database, approximate: PostgresVectorStore
) -> None:
    vectors = random_vectors(3_000)
    approximate.upsert_many([VectorPoint(one, vector, ANA) for one, vector in vectors.items()])

    with database.acting_for("acme", "ana"):
        found = approximate.query(NORTH, 20, {"owner": "ana", "scope": ("s1", "s2")})

    right = brute_force(vectors, {}, NORTH, 3_000, {})
    scores = {match.id: match.score for match in right}
    assert all(match.score == scores[match.id] for match in found)
    assert found == sorted(found, key=lambda match: (-match.score, match.id))
    assert len({match.id for match in found} & {match.id for match in right[:20]}) >= 18
    assert _was_used(database)


def _was_used(database: Database) -> bool:
    """Say whether an approximate index was scanned; the session that did it knows at once."""
    with database.read_common() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    with database.read_common() as connection:
        row: Any = connection.execute(
            "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_all_indexes"
            " WHERE indexrelname LIKE 'vectors_near_%'"
        ).fetchone()
    return bool(row[0] > 0)


@pytest.mark.parametrize("top_k", [5, 50])
@pytest.mark.parametrize("wanted", [{"owner": "ben"}, {"owner": "ben", "scope": "s1"}, {}])
def test_a_crowd_of_nearer_neighbours_hides_nobody(
    database: Database, approximate: PostgresVectorStore, wanted: dict[str, str], top_k: int
) -> None:
    """Case 11, with an approximate index that the crowd fills."""
    chance = Random(4)  # noqa: S311 - the same on every run
    crowd = [
        array("f", [1.0, *(chance.random() / 100 for _ in range(DIMENSIONS - 1))])
        for _ in range(5_000)
    ]
    few = [EntryId(UUID(int=10_000 + number)) for number in range(200)]
    approximate.upsert_many(
        [
            VectorPoint(EntryId(UUID(int=number)), vector, ANA)
            for number, vector in enumerate(crowd, start=1)
        ]
    )
    approximate.upsert_many([VectorPoint(one, NORTH, BEN) for one in few])

    with database.acting_for("acme", "ben"):
        found = approximate.query(EAST, top_k, wanted)

    assert len({match.id for match in found}) == top_k
    assert {match.id for match in found} <= set(few)


def test_settings_may_ask_for_exact_answers_only(
    database: Database, approximate: PostgresVectorStore
) -> None:
    vectors = random_vectors(1_000)
    approximate.upsert_many([VectorPoint(one, vector, ANA) for one, vector in vectors.items()])
    indexes = PostgresVectorIndexes(database=database, search=VectorSearch.EXACT)
    exact = indexes.store(indexes.all()[0])

    with database.acting_for("acme", "ana"):
        assert exact.query(NORTH, 50) == brute_force(vectors, {}, NORTH, 50, {})
    assert not _was_used(database)


@pytest.mark.usefixtures("approximate")
def test_making_approximate_indexes_again_keeps_them_and_drops_others(
    fresh: FreshDatabase, database: Database
) -> None:
    before = maintenance.make_approximate(fresh.owner)
    indexes = PostgresVectorIndexes(database=database)
    first = indexes.all()[0].number
    other = SPACE.model_copy(update={"model": "other"})
    second = indexes.activate(indexes.begin(other)).number

    after = maintenance.make_approximate(fresh.owner)

    assert before == [f"vectors_near_{first}"]
    assert after == [f"vectors_near_{second}"]
    assert maintenance.drop_approximate(fresh.owner) == [f"vectors_near_{second}"]


# -- Erasing -----------------------------------------------------------------------


def test_no_byte_of_an_erased_vector_is_left(
    fresh: FreshDatabase, database: Database, store: PostgresVectorStore, tmp_path: Path
) -> None:
    canary = array("f", [0.71, 0.62, 0.53, 0.44])
    store.upsert(FIRST, canary, ANA)
    store.upsert(SECOND, EAST, ANA)
    maintenance.make_approximate(fresh.owner)
    with psycopg.connect(fresh.superuser, autocommit=True) as connection:
        connection.execute("ANALYZE")

    with database.acting_for("acme"):
        store.delete(FIRST)
        sampled = _sampled_vectors(fresh)
    cleared = ClearingTransactions(database=database, fresh=fresh, folder=tmp_path).scrub()

    assert cleared
    assert sampled == 0
    assert canary.tobytes() not in bytes_under(tmp_path)


def _sampled_vectors(fresh: FreshDatabase) -> Any:
    """Count the samples of vectors that the planner's statistics keep."""
    with psycopg.connect(fresh.superuser) as connection:
        row: Any = connection.execute(
            "SELECT count(*) FROM pg_statistic JOIN pg_attribute"
            " ON attrelid = starelid AND attnum = staattnum JOIN pg_type ON pg_type.oid = atttypid"
            " WHERE typname IN ('vector', 'halfvec')"
        ).fetchone()
    return row[0]
