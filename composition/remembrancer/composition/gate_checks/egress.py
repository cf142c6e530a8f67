"""Gate ``egress_denial``: texts, labels, destinations and redirects against the real guards."""

import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer

from remembrancer.adapters.provider import NoSecret, OpenAICompatibleProvider
from remembrancer.application.blocking import run_blocking
from remembrancer.application.document_vectors import DocumentText
from remembrancer.application.ports.embedding_provider import ProviderError
from remembrancer.composition.gate_checks.counting_provider import CountingProvider
from remembrancer.composition.gate_checks.egress_texts import forbidden_texts
from remembrancer.composition.gate_checks.measured import Measured, require
from remembrancer.composition.gate_checks.rehearsal import (
    TENANT,
    Rehearsal,
    asked,
    context,
    query,
)
from remembrancer.composition.preparation import Preparation
from remembrancer.domain.bounds import QUERY_TEXT_BYTES_MAX
from remembrancer.domain.destination import Destination
from remembrancer.domain.eligibility import QueryReason
from remembrancer.domain.gate import Gate
from remembrancer.domain.sensitivity import Sensitivity

_OWNER = "owner"
_HARMLESS = "Which rule binds this release?"
_WITHHELD_LABELS = (Sensitivity.CONFIDENTIAL, Sensitivity.RESTRICTED)
REDIRECTS = (301, 302, 303, 307, 308)
ANSWER_WITHIN_S = 5.0


def check(rehearsal: Rehearsal) -> dict[Gate, Measured]:
    """Ask for everything that must be withheld; count what arrived all the same."""
    provider = CountingProvider(rehearsal.configuration)
    with rehearsal.store("egress") as store:
        preparation = rehearsal.preparation(store, provider)
        left = _texts_that_left(preparation, provider)
        _labelled(preparation)
        _ask(preparation, "x" * QUERY_TEXT_BYTES_MAX)
        labelled_left = provider.requests
        destinations = _other_destinations(rehearsal.destination)
        for destination in destinations:
            elsewhere = rehearsal.preparation(store, provider, destination=destination)
            _ask(elsewhere, _HARMLESS)
        reached = provider.requests - labelled_left
        require(
            QueryReason.PREPARED in _ask(preparation, _HARMLESS),
            "not even a harmless question was admitted: see ceilings and guards",
        )
    followed = _redirects_followed()
    tried = [what for what, _ in forbidden_texts()]
    return {
        Gate.EGRESS_DENIAL: Measured(
            figures={
                "texts_to_withhold": len(tried) + 2 * len(_WITHHELD_LABELS) + 1,
                "destinations_to_refuse": len(destinations) + len(REDIRECTS),
                "texts_that_left": max(labelled_left, len(left)),
                "destinations_reached": reached + followed,
            },
            raw={"tried": tried, "left": left, "destinations": destinations},
        )
    }


def _texts_that_left(preparation: Preparation, provider: CountingProvider) -> list[str]:
    """Ask with each text as a question, as a subject, and as an entry; return what got through."""
    left = []
    for what, text in forbidden_texts():
        before = provider.requests
        reasons = _ask(preparation, text)
        if "\n" not in text:  # No subject holds a line break.
            asked(preparation, _OWNER, query(_OWNER, _HARMLESS, subjects=(text,)))
        preparation.documents.embedded([_entry(text, Sensitivity.PUBLIC)])
        if provider.requests != before or QueryReason.PREPARED in reasons:
            left.append(what)
    return left


def _labelled(preparation: Preparation) -> None:
    """Ask with a harmless text under labels that stay here."""
    for label in _WITHHELD_LABELS:
        within = context(sensitivity_floor=label)
        asked(preparation, _OWNER, query(_OWNER, _HARMLESS), within=within)
        preparation.documents.embedded([_entry("A harmless rule.", label)])


def _ask(preparation: Preparation, question: str) -> set[str]:
    report = asked(preparation, _OWNER, query(_OWNER, question))
    return {outcome.reason for outcome in report.outcomes}


def _entry(text: str, label: Sensitivity) -> DocumentText:
    return DocumentText(tenant=TENANT, owner=_OWNER, sensitivity=label, text=text)


def _other_destinations(configured: str) -> list[str]:
    """Return URLs that look like the configured one and aren't."""
    ours = Destination.parse(configured)
    scheme = "http" if ours.scheme == "https" else "https"
    host = f"[{ours.host}]" if ":" in ours.host else ours.host
    path = ours.path
    return [
        f"{scheme}://{host}:{ours.port}{path}",
        f"{ours.scheme}://{host}:{ours.port % 65_535 + 1}{path}",
        f"{ours.scheme}://{host}.example:{ours.port}{path}",
        f"{ours.scheme}://x{host.strip('[]').replace(':', '')}:{ours.port}{path}",
        f"{ours.scheme}://{host}@elsewhere.example{path}",
        f"{ours.scheme}://user:secret@{host}:{ours.port}{path}",
        f"{ours.scheme}://elsewhere.example/{host}{path}",
        f"{ours.scheme}://elsewhere.example:{ours.port}{path}#{host}",
        f"{ours.scheme}://elsewhere.example:{ours.port}{path}?{host}",
        f"{ours.scheme}://203.0.113.7:{ours.port}{path}",
        f"{ours.scheme}://elsewhere.example\\@{host}:{ours.port}{path}",
        f"file://{host}{path}",
        "elsewhere",
    ]


def _redirects_followed() -> int:
    """Let the real adapter meet redirects on this machine; return how many it followed."""
    with _server(None) as (elsewhere, arrived):
        for code in REDIRECTS:
            with _server((code, elsewhere)) as (url, asked):
                adapter = OpenAICompatibleProvider(url=url, model="none", secret=NoSecret())
                with suppress(ProviderError):
                    run_blocking(partial(adapter.request, [_HARMLESS], timeout_s=ANSWER_WITHIN_S))
                require(len(asked) == 1, "the adapter did not ask once")
        return len(arrived)


@contextmanager
def _server(redirect: tuple[int, str] | None) -> Generator[tuple[str, list[str]]]:
    """Serve on this machine's loopback address; yield its URL and the paths asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            code, location = redirect or (200, "")
            self.send_response(code)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815  # the library's name

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
