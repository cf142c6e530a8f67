"""The page from end to end: what the command line asks for."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Self

from remembrancer.application.audit.finding import AuditReport, AuditScope
from remembrancer.application.audit.invariants import INVARIANTS
from remembrancer.application.audit.reading import StateReader
from remembrancer.application.ports.audit_source import AuditSource
from remembrancer.composition.report.charts import ChartLibrary, chart_library
from remembrancer.composition.report.collecting import collect
from remembrancer.composition.report.page import Cover, page_of
from remembrancer.composition.report.writing import require_writable, write_page
from remembrancer.domain.fences import escaped


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlReport:
    """A page that will be written once the audit is done."""

    path: Path
    replace: bool
    library: ChartLibrary

    @classmethod
    def prepare(cls, path: Path, *, replace: bool) -> Self:
        """Refuse before the long work what can't be done after it.

        ``replace`` allows that an earlier report is replaced; nothing else ever is.

        Raises:
            InvalidInputError: something is there already, or there is no folder.
            SettingsError: the extra ``report`` isn't installed.
        """
        require_writable(path, replace=replace)
        return cls(path=path, replace=replace, library=chart_library())

    def write(
        self,
        source: AuditSource | None,
        report: AuditReport,
        *,
        scope: AuditScope,
        at: datetime,
        reader: StateReader,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Read the log once more, for what the page shows, and write the page.

        Without a source, because it couldn't be opened, the page has the findings alone.  ``at``
        is now; ``progress`` is called with the number of events read so far.

        Raises:
            InvalidInputError: something has appeared where the page should be.
            OSError: the system says no; nothing is left behind.
        """
        streams = () if source is None else source.streams()
        picture = collect(streams, reader=reader, scope=scope, progress=progress)
        cover = Cover(
            made_at=at.astimezone(UTC), version=version("remembrancer"), scope=in_words(scope)
        )
        sentences = {one.name: one.sentence for one in INVARIANTS}
        page = page_of(picture, report, cover=cover, library=self.library, sentences=sentences)
        write_page(self.path, page, replace=self.replace)


def in_words(scope: AuditScope) -> str:
    """Return what an audit was asked for; empty for everything."""
    parts = [
        f"tenant {scope.tenant}" if scope.tenant is not None else "",
        f"owner {scope.owner}" if scope.owner is not None else "",
        f"since {scope.since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if scope.since else "",
    ]
    return escaped(", ".join(filter(None, parts)))
