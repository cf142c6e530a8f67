"""An audit of 200,000 events, against the bare scan of the same rows, on one core.

The bare scan reads the events by position, hashes them with SHA-256 and parses their JSON; nothing
else an auditor must do is in it.  The store is made once and kept in the temporary folder;
``REMEMBRANCER_TEST_AUDITED=1000000`` makes it a million events, which takes minutes more.  Memory
is that of a process of its own.
"""

import hashlib
import hmac
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
from tests.benchmarks.audited_log import audited_log
from tests.benchmarks.row import Row, interleaved

from remembrancer.adapters.eventlog.audit_reader import FastStateReader
from remembrancer.adapters.sqlite.audit_source import SqliteAuditSource
from remembrancer.application.audit.audit import Audit
from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import Findings
from remembrancer.application.audit.joined import Share
from remembrancer.application.audit.walk import Walk

EVENTS = int(os.environ.get("REMEMBRANCER_TEST_AUDITED", "200000"))
ROUNDS = 3
RATIO_MAX = 3.0
MEMORY_MAX = 200 * 2**20
MADE_BY = 2
"""Raised when the store is to be made anew."""
_ROWS = (
    "SELECT topic, state, predecessor_hash, event_hash FROM stored_events ORDER BY notification_id"
)
_PACKS = (
    "SELECT state, originator_id FROM stored_events"
    " WHERE topic = 'remembrancer.l3_selection.context_pack_assembled'"
)
_TEXTS = "SELECT text FROM original WHERE index_id IN (SELECT value FROM carray(?))"
_ITEMS = "SELECT items FROM session_items WHERE selection_id = ?"


def measure() -> list[Row]:
    """Audit the log alone and the whole store, and ask a fresh process how much it needs."""
    path = _store()
    log, whole, bare, everything = interleaved(
        [
            lambda: _rules(path),
            lambda: _audit(path),
            lambda: _scan(path),
            lambda: _scan_everything(path),
        ],
        rounds=ROUNDS,
    )
    against = "bare scan, SHA-256 and JSON"
    return [
        Row(
            what=f"audit of {EVENTS:,} events: the log",
            ours=log,
            baseline=bare,
            against=against,
            at_most=RATIO_MAX,
        ),
        Row(
            what="the same, with vault, packs and projections",
            ours=whole,
            baseline=bare,
            against=against,
            at_most=RATIO_MAX,
        ),
        Row(
            what="the same",
            ours=whole,
            baseline=everything,
            against="bare scan of all rows that it reads",
        ),
        Row(what="memory of that", ours=_memory(path), unit="B", at_most=MEMORY_MAX),
    ]


def _store() -> Path:
    folder = Path(tempfile.gettempdir()) / "remembrancer-bench"
    folder.mkdir(exist_ok=True)
    path = folder / f"audited-{MADE_BY}-{EVENTS}.db"
    if not path.exists():
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        sys.stderr.write(f"making {EVENTS:,} events, once\n")
        audited_log(part, EVENTS)
        part.rename(path)
    return path


def _scan(path: Path) -> None:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    for topic, state, predecessor, own in connection.execute(_ROWS):
        link = b"".join((predecessor, topic.encode(), b"\0", state))
        if hashlib.sha256(link).digest() != own:
            raise SystemExit("the log isn't what it should be")
        json.loads(state)
    connection.close()


def _scan_everything(path: Path) -> None:
    """Scan the log, and read with its texts' hashes what else an audit reads."""
    _scan(path)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    for salt, text, digest in connection.execute("SELECT salt, text, digest FROM kept_original"):
        if hmac.digest(salt, text.encode(), "sha256") != digest:
            raise SystemExit("the vault isn't what it should be")
    for table in ("spend_receipts", "sparse_document", "erased_entry", "session_key"):
        for _ in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 - named above
            pass
    for state, stream in connection.execute(_PACKS):
        quoted = [bytes.fromhex(one.replace("-", "")) for one in json.loads(state)["included"][1:]]
        texts = connection.execute(_TEXTS, (apsw.carray(tuple(quoted)),)).fetchall()
        items = connection.execute(_ITEMS, (stream,)).fetchall()
        hashlib.sha256(
            "".join(str(text) for (text,) in texts).encode() + str(items).encode()
        ).digest()
    connection.close()


def _rules(path: Path) -> None:
    """Judge the log by its own events."""
    findings = Findings()
    with SqliteAuditSource.open(path) as source:
        facts = Facts(Share())
        Walk(findings, facts, FastStateReader()).read(source.streams())
        unmet = facts.versions.unmet() or facts.preparations.unmet()
    if findings.count or unmet:
        raise SystemExit("the log isn't sound")


def _audit(path: Path) -> None:
    with SqliteAuditSource.open(path) as source:
        report = Audit(source=source, reader=FastStateReader())()
    if not report.is_green:
        raise SystemExit(f"not green: {report.findings[:3]}")


def _memory(path: Path) -> int:
    """Return the most that a process has had in memory which audits once."""
    code = "import sys; from tests.benchmarks.bench_audit import report; report(sys.argv[1])"
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    )
    return int(run.stdout)


def report(path: str) -> None:
    """Audit, and write how many bytes this process has had at most."""
    _audit(Path(path))
    # Not what getrusage says: a child's maximum begins with that of its parent, who may have made
    # the store.
    kib = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
    sys.stdout.write(str(kib * 1024))
