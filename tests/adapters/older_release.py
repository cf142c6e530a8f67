"""A release from before queries were paid for, frozen: how it reads and writes index receipts.

Its statements name their columns, its events know no ``kind`` and no ``deadline``, and refuse
fields that they don't know.  Nothing here may follow a change of the code.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

import psycopg

ADMITTED = "remembrancer.reservation_ledger.reservation_admitted"
SETTLED = "remembrancer.reservation_ledger.reservation_settled"
FIELDS = {
    ADMITTED: {
        "timestamp", "tenant", "owner", "reservation_id", "day", "request_digest",
        "reserved_quanta", "lease_s", "day_quanta_before", "day_requests_before",
        "ceiling_quanta", "ceiling_requests", "mechanism_version", "configuration_digest",
        "embedding_tuple_digest", "pricing_digest",
    },
    SETTLED: {
        "timestamp", "tenant", "owner", "reservation_id", "day", "reserved_quanta",
        "charged_quanta", "usage_tokens",
    },
    "remembrancer.reservation_ledger.reservation_became_unknown": {
        "timestamp", "tenant", "owner", "reservation_id", "day", "charged_quanta", "reason",
    },
    "remembrancer.reservation_ledger.reservation_reconciled": {
        "timestamp", "tenant", "owner", "reservation_id", "day", "unknown_quanta",
        "charged_quanta", "stated_quanta", "evidence_digest", "reconciled_by",
    },
}  # fmt: skip
RECEIPT_COLUMNS = (
    "tenant", "owner", "reservation_id", "request_digest", "state", "day", "admitted_at",
    "lease_s", "reserved_quanta", "charged_quanta", "usage_tokens", "unknown_reason",
    "ceiling_quanta", "ceiling_requests", "ledger_id", "admitted_version",
)  # fmt: skip
_RECEIPTS = (
    "SELECT tenant, owner, reservation_id, request_digest, state, day, admitted_at, lease_s,"
    " reserved_quanta, charged_quanta, usage_tokens, unknown_reason, ceiling_quanta,"
    " ceiling_requests, ledger_id, admitted_version FROM spend_receipts"
    " WHERE tenant = %s AND owner = %s ORDER BY admitted_version"
)
_NAMESPACE = UUID("6f0b5f9e-8d0c-5f6b-9b57-2c1d5b7e4a10")


class UnknownFieldError(Exception):
    """An event of a later release."""


@dataclass(frozen=True, slots=True)
class OlderRelease:
    """One of its processes, for one owner."""

    dsn: str
    tenant: str = "acme"
    owner: str = "ana"

    def receipts(self) -> list[dict[str, Any]]:
        """Return the owner's receipts as it shows them."""
        with self._connected() as connection:
            rows = connection.execute(
                _RECEIPTS,
                (self.tenant, self.owner),
            ).fetchall()
        return [dict(zip(RECEIPT_COLUMNS, row, strict=True)) for row in rows]

    def charged(self) -> dict[str, int]:
        """Return what counts against each day."""
        with self._connected() as connection:
            return dict(
                connection.execute(
                    "SELECT day, sum(charged_quanta)::bigint FROM spend_receipts"
                    " WHERE tenant = %s AND owner = %s GROUP BY day ORDER BY day",
                    (self.tenant, self.owner),
                ).fetchall()
            )

    def events(self, reservation_id: UUID | None = None) -> list[dict[str, Any]]:
        """Return the ledger's events, or those of one reservation.

        Raises:
            UnknownFieldError: one isn't of this release.
        """
        with self._connected() as connection:
            rows = connection.execute(
                "SELECT topic, state FROM stored_events WHERE tenant = %s AND originator_id = %s"
                " ORDER BY originator_version",
                (self.tenant, self._ledger_id),
            ).fetchall()
        events = [(topic, json.loads(state)) for topic, state in rows]
        wanted = [
            (topic, state)
            for topic, state in events
            if reservation_id in {None, UUID(state["reservation_id"]["_data_"])}
        ]
        for topic, state in wanted:
            if state.keys() != FIELDS[topic]:
                raise UnknownFieldError
        return [state for _, state in wanted]

    def reserve(self, reservation_id: UUID, charge: int) -> None:
        """Admit an index request and settle it at 1, in two transactions."""
        with self._connected() as connection:
            head = self._locked(connection)
            common = self._state(reservation_id)
            state = common | {
                "request_digest": "a" * 64, "reserved_quanta": charge, "lease_s": 15,
                "day_quanta_before": 0, "day_requests_before": 0, "ceiling_quanta": 10**9,
                "ceiling_requests": 10**6, "mechanism_version": "semantic-query@1",
                "configuration_digest": "0" * 64, "embedding_tuple_digest": "1" * 64,
                "pricing_digest": "2" * 64,
            }  # fmt: skip
            version = self._append(connection, head, ADMITTED, state)
            connection.execute(
                "INSERT INTO spend_receipts (tenant, owner, reservation_id, request_digest, state,"
                " day, admitted_at, lease_s, reserved_quanta, charged_quanta, ceiling_quanta,"
                " ceiling_requests, ledger_id, admitted_version) VALUES (%s, %s, %s, %s,"
                " 'pending', %s, %s, 15, %s, %s, 1000000000, 1000000, %s, %s)",
                (self.tenant, self.owner, reservation_id, "a" * 64, common["day"],
                 common["timestamp"]["_data_"], charge, charge, self._ledger_id, version),
            )  # fmt: skip
        with self._connected() as connection:
            head = self._locked(connection)
            state = self._state(reservation_id) | {
                "reserved_quanta": charge, "charged_quanta": 1, "usage_tokens": 1
            }  # fmt: skip
            self._append(connection, head, SETTLED, state)
            connection.execute(
                "UPDATE spend_receipts SET state = 'settled', charged_quanta = 1,"
                " usage_tokens = 1 WHERE tenant = %s AND owner = %s AND reservation_id = %s",
                (self.tenant, self.owner, reservation_id),
            )

    @property
    def _ledger_id(self) -> UUID:
        key = json.dumps(["reservation_ledger", self.tenant, self.owner], separators=(",", ":"))
        return uuid5(_NAMESPACE, key)

    def _connected(self) -> psycopg.Connection:
        connection = psycopg.connect(self.dsn)
        connection.execute(
            "SELECT set_config('search_path', 'remembrancer', true),"
            " set_config('remembrancer.tenant', %s, true),"
            " set_config('remembrancer.owner', %s, true)",
            (self.tenant, self.owner),
        )
        return connection

    def _locked(self, connection: psycopg.Connection) -> tuple[int, bytes]:
        key = (self.tenant, self.owner)
        connection.execute(
            "INSERT INTO owners (tenant, owner) VALUES (%s, %s) ON CONFLICT DO NOTHING", key
        )
        connection.execute("SELECT 1 FROM owners WHERE tenant = %s AND owner = %s FOR UPDATE", key)
        head = connection.execute(
            "SELECT originator_version, event_hash FROM stored_events WHERE tenant = %s"
            " AND originator_id = %s ORDER BY originator_version DESC LIMIT 1",
            (self.tenant, self._ledger_id),
        ).fetchone()
        return head or (0, bytes(32))

    def _append(
        self,
        connection: psycopg.Connection,
        head: tuple[int, bytes],
        topic: str,
        state: dict[str, Any],
    ) -> int:
        version, predecessor = head
        data = json.dumps(state, sort_keys=True, separators=(",", ":")).encode()
        own = hashlib.sha256(b"".join((predecessor, topic.encode(), b"\0", data))).digest()
        connection.execute(
            "SELECT pg_advisory_xact_lock_shared(6818731310815641600 + last_value)"
            " FROM event_positions"
        )
        connection.execute(
            "INSERT INTO stored_events (tenant, owner, originator_id, originator_version, topic,"
            " state, predecessor_hash, event_hash) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            (self.tenant, self.owner, self._ledger_id, version + 1, topic, data, predecessor,
             own),
        )  # fmt: skip
        return version + 1

    def _state(self, reservation_id: UUID) -> dict[str, Any]:
        return {
            "timestamp": {"_data_": "2030-01-01T08:00:00+00:00", "_type_": "datetime_iso"},
            "tenant": self.tenant,
            "owner": self.owner,
            "reservation_id": {"_data_": reservation_id.hex, "_type_": "uuid_hex"},
            "day": "2030-01-01",
        }
