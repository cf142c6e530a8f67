"""What finding the nearest vectors costs on a server that knows nothing of them yet."""

from typing import Any

from tests.adapters.postgres_server import server

from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.vector_indexes import PostgresVectorIndexes
from remembrancer.application.ports import VectorPoint
from remembrancer.contracts.vector_examples import NORTH, random_vectors
from remembrancer.contracts.vector_indexes import SPACE

ANA = {"tenant": "acme", "owner": "ana", "scope": "s1"}


def test_an_exact_answer_reads_each_vector_once_though_nothing_was_analysed() -> None:
    with server().database() as fresh, Database.open(fresh.app) as database:
        indexes = PostgresVectorIndexes(database=database)
        store = indexes.store(indexes.activate(indexes.begin(SPACE)))
        store.upsert_many([VectorPoint(*one, ANA) for one in random_vectors(300).items()])
        with database.acting_for("acme", "ana"):
            store.query(NORTH, 50)
        with database.read_common() as connection:
            connection.execute("SELECT pg_stat_force_next_flush()")
        with database.read_common() as connection:
            read: Any = connection.execute(
                "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'vectors'"
            ).fetchone()

    assert read[0] <= 300
