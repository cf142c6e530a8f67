"""Use case: import documents, one entry per section.

A section's entry id follows from where the section stands: the file's absolute path, the path of
headings, and which of several equal headings it is.  So importing again finds what is there, and
the digest of the section's text as it was imported, kept with the entry, says whether the file has
changed since: where it hasn't, nothing changes, whatever was corrected by hand meanwhile; where it
has, the file is newer and becomes a correction.  What is gone is reported, never erased, since a
moved file looks the same as a deleted one.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import BeforeValidator, Field

from remembrancer.application.entry_index import HEADING
from remembrancer.application.ports import (
    Document,
    DocumentFault,
    DocumentFile,
    DocumentReader,
    DocumentSection,
    EntryVault,
    FoundDocuments,
    Original,
    Transactions,
)
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.entry import NewEntry
from remembrancer.domain.errors import UnreadableDocumentError
from remembrancer.domain.identity import EntryId, entry_id_for_key
from remembrancer.domain.parsed import Name, Parsed
from remembrancer.domain.scope import Scope
from remembrancer.domain.sensitivity import Sensitivity

KIND = "document"
METADATA_PATH = "path"
METADATA_HEADING = HEADING
METADATA_ROOT = "import_root"
METADATA_DIGEST = "import_digest"
"""SHA-256 of the section's text as the file had it.  Like all metadata it is in the vault only,
and goes with an erasure: the digest of a guessable text would give it away."""
HEADING_JOINT = " > "
REASON = "reimported"
"""The reason code of corrections that an import makes."""

SECTIONS_AT_ONCE = 256
CHARACTERS_AT_ONCE = 4_194_304
"""Sections are remembered when so many, or so much text, have come together."""

_LOOKED_UP_AT_ONCE = 512

Progress = Callable[[int, int], None]
"""Called with (files done, files found)."""

RememberMany = Callable[[Sequence[NewEntry]], Sequence[EntryId]]
"""Remembers entries, all or none, and returns the ids of those that weren't here before: another
import may have brought some of them meanwhile."""


class CorrectEntry(Protocol):
    """Puts a new version in the place of an entry's current one."""

    def __call__(
        self,
        entry_id: EntryId,
        *,
        reason: str,
        text: str | None = None,
        sensitivity: Sensitivity | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> object:
        """Change what is given, keep the rest."""
        ...


def _named(root: object) -> object:
    # `Path` takes it for the current folder; who gives it has forgotten to set something.
    if root == "":
        raise ValueError("must not be empty; . is the folder that one is in")
    return root


class ImportRequest(Parsed):
    """What to import, and as whose."""

    roots: Annotated[
        tuple[Annotated[Path, Field(strict=False), BeforeValidator(_named)], ...],
        Field(strict=False),
    ]
    """Files, and folders with all below them."""
    tenant: Name
    owner: Name
    scope: Scope
    """Sections of one file in two scopes are two entries."""
    sensitivity: Annotated[Sensitivity, Field(strict=False)]
    kind: Name = KIND


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSection:
    """A section and its entry."""

    entry_id: EntryId
    path: str
    """Relative to ``root``, POSIX."""
    root: str
    """The folder that was imported, or the one that the file lies in."""
    heading: str = field(repr=False)
    """Joined from the outermost down, such as ``Setup > Linux``; empty before the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did; every section that was read counts in one of the first four."""

    added: tuple[ImportedSection, ...]
    corrected: tuple[ImportedSection, ...]
    unchanged: int
    """Their file says what it said at the last import; a correction by hand stays."""
    replaced_by_hand: tuple[ImportedSection, ...]
    """Those of ``corrected`` that had been corrected by hand: the file, which is newer, won."""
    erased: tuple[ImportedSection, ...]
    """Their entries were erased, and an erased entry isn't remembered again."""
    vanished: tuple[ImportedSection, ...]
    """Entries of an earlier import whose section is no longer there."""
    problems: tuple[UnreadableDocumentError, ...]
    repeated: tuple[tuple[str, str], ...]
    """Links to documents that were imported where they lie, each with that document's path."""
    skipped: int
    """Files in the folders that aren't documents, by their suffix."""


class ImportDocuments:
    """Read, compare, remember what is new and correct what was edited."""

    def __init__(
        self,
        *,
        reader: DocumentReader,
        vault: EntryVault,
        remember_many: RememberMany,
        correct: CorrectEntry,
        transactions: Transactions,
    ) -> None:
        self._reader = reader
        self._transactions = transactions
        self._vault = vault
        self._remember_many = remember_many
        self._correct = correct

    def __call__(
        self, request: ImportRequest, *, progress: Progress | None = None
    ) -> ImportReport:
        """Import what lies under ``request.roots``; what can't be read is reported, not raised.

        Sections are taken in batches, each all or none.  After a failure in between, importing
        again goes on from there.  A section whose file has not changed keeps what was corrected
        by hand; one whose file has changed becomes a correction in any case.  An entry's
        sensitivity is raised where ``request`` asks for more, and never lowered.

        Raises:
            UnreadableDocumentError: none of the roots can be read; nothing was done.
        """
        with self._transactions.acting_for(request.tenant, request.owner):
            return self._imported(request, progress)

    def _imported(self, request: ImportRequest, progress: Progress | None) -> ImportReport:
        run = _Run(request)
        for root in request.roots:
            try:
                run.found.append(self._reader.find(root))
            except UnreadableDocumentError as problem:
                run.problems.append(problem)
        if run.problems and not run.found:
            raise run.problems[0]
        files = run.files()
        total = len(files)
        for done, (found, file) in enumerate(files, start=1):
            run.take(found, file.path, self._reader.read(file))
            if run.is_full() or done == total:
                self._settle(run)
                if progress is not None:
                    progress(done, total)
        return run.report(self._vanished(run))

    def _settle(self, run: "_Run") -> None:
        """Write what has come together."""
        waiting, run.waiting = run.waiting, []
        current = self._vault.current([section.entry_id for section, _ in waiting])
        new: list[tuple[ImportedSection, NewEntry]] = []
        for section, entry in waiting:
            known = current.get(section.entry_id)
            if known is not None:
                self._compare(run, section, entry, known)
            elif self._vault.tenant_of_erased(section.entry_id) is not None:
                run.erased.append(section)
            else:
                new.append((section, entry))
        if new:
            came = set(self._remember_many([entry for _, entry in new]))
            run.added += [section for section, _ in new if section.entry_id in came]
            run.unchanged += len(new) - len(came)

    def _compare(
        self, run: "_Run", section: ImportedSection, entry: NewEntry, known: Original
    ) -> None:
        sensitivity = max(entry.sensitivity, known.sensitivity)
        imported = self._imported_digest(known)
        digest = entry.metadata[METADATA_DIGEST]
        if imported == digest:
            if known.sensitivity is sensitivity:
                run.unchanged += 1
                return
            self._correct(section.entry_id, reason=REASON, sensitivity=sensitivity)
        else:
            self._correct(
                section.entry_id,
                reason=REASON,
                text=entry.text,
                sensitivity=sensitivity,
                metadata={**entry.metadata, **known.metadata, METADATA_DIGEST: digest},
            )
            if _digest(known.text) != imported:
                run.replaced_by_hand.append(section)
        run.corrected.append(section)

    def _imported_digest(self, known: Original) -> str:
        """Return the digest of the text that the last import brought.

        A correction by hand may have put other metadata in the place of the import's: then an
        earlier version tells it.
        """
        digest = known.metadata.get(METADATA_DIGEST)
        if digest is not None:
            return digest
        history = self._vault.history(known.entry_id)
        told = (one.metadata.get(METADATA_DIGEST) for one in reversed(history))
        return next((one for one in told if one is not None), _digest(known.text))

    def _vanished(self, run: "_Run") -> list[ImportedSection]:
        """Return the entries of earlier imports that this one covered and didn't meet."""
        request = run.request
        kept = self._vault.entries_of(tenant=request.tenant, owner=request.owner)
        unmet = [entry_id for entry_id in kept if entry_id not in run.met]
        vanished = [
            ImportedSection(
                entry_id=original.entry_id,
                path=original.metadata[METADATA_PATH],
                root=original.metadata[METADATA_ROOT],
                heading=original.metadata.get(METADATA_HEADING, ""),
            )
            for start in range(0, len(unmet), _LOOKED_UP_AT_ONCE)
            for original in self._vault.current(unmet[start : start + _LOOKED_UP_AT_ONCE]).values()
            if run.covers(original)
        ]
        return sorted(vanished, key=lambda one: (one.path, one.heading, one.root))


class _Run:
    """One import as it goes on."""

    def __init__(self, request: ImportRequest) -> None:
        self.request = request
        self.found: list[FoundDocuments] = []
        self.waiting: list[tuple[ImportedSection, NewEntry]] = []
        self.added: list[ImportedSection] = []
        self.corrected: list[ImportedSection] = []
        self.replaced_by_hand: list[ImportedSection] = []
        self.unchanged = 0
        self.erased: list[ImportedSection] = []
        self.problems: list[UnreadableDocumentError] = []
        self.met: set[EntryId] = set()
        self._unread: list[str] = []

    def files(self) -> list[tuple[FoundDocuments, DocumentFile]]:
        """Return what was found, root by root; roots may overlap."""
        files = dict[str, tuple[FoundDocuments, DocumentFile]]()
        for found in self.found:
            self._note(found, found.problems)
            for file in found.files:
                files.setdefault(_location(found.root, file.path), (found, file))
        return list(files.values())

    def take(self, found: FoundDocuments, path: str, document: Document) -> None:
        """Make entries of a document's sections."""
        self._note(found, document.problems)
        for section in document.sections:
            key = _key(self.request.scope, _location(found.root, path), section)
            entry = NewEntry(
                tenant=self.request.tenant,
                owner=self.request.owner,
                scope=self.request.scope,
                text=section.text,
                kind=self.request.kind,
                sensitivity=self.request.sensitivity,
                metadata={
                    METADATA_PATH: path,
                    METADATA_HEADING: HEADING_JOINT.join(filter(None, section.headings)),
                    METADATA_ROOT: found.root,
                    METADATA_DIGEST: _digest(section.text),
                },
                idempotency_key=key,
            )
            imported = ImportedSection(
                entry_id=entry_id_for_key(entry.tenant, entry.owner, key),
                path=path,
                root=found.root,
                heading=entry.metadata[METADATA_HEADING],
            )
            self.met.add(imported.entry_id)
            self.waiting.append((imported, entry))

    def is_full(self) -> bool:
        """Say whether enough has come together to be written."""
        return (
            len(self.waiting) >= SECTIONS_AT_ONCE
            or sum(len(entry.text) for _, entry in self.waiting) >= CHARACTERS_AT_ONCE
        )

    def covers(self, original: Original) -> bool:
        """Say whether an entry's section would have been met if it were still there."""
        root = original.metadata.get(METADATA_ROOT)
        path = original.metadata.get(METADATA_PATH)
        if root is None or path is None or original.scope != self.request.scope:
            return False
        place = _location(root, path)
        return any(_asked_for(found, place) for found in self.found) and not any(
            _is_under(place, unread) for unread in self._unread
        )

    def _note(self, found: FoundDocuments, problems: Sequence[UnreadableDocumentError]) -> None:
        """Keep the problems, and where they leave open what is still there."""
        for problem in problems:
            problem.root = found.root
        self.problems += problems
        # An empty file was read: its sections are gone indeed.
        self._unread += [
            _location(found.root, one.path) for one in problems if one.fault != DocumentFault.EMPTY
        ]

    def report(self, vanished: list[ImportedSection]) -> ImportReport:
        """Sum up."""
        return ImportReport(
            added=tuple(self.added),
            corrected=tuple(self.corrected),
            unchanged=self.unchanged,
            replaced_by_hand=tuple(self.replaced_by_hand),
            erased=tuple(self.erased),
            vanished=tuple(vanished),
            problems=tuple(self.problems),
            repeated=tuple(dict.fromkeys(one for found in self.found for one in found.repeated)),
            skipped=sum(found.skipped for found in self.found),
        )


def _key(scope: str, location: str, section: DocumentSection) -> str:
    """Return the idempotency key of a section; a hash, since paths may be long."""
    place = canonical_json([scope, location, list(section.headings), section.ordinal])
    return f"document:{hashlib.sha256(place).hexdigest()}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _asked_for(found: FoundDocuments, place: str) -> bool:
    if found.is_folder:
        return _is_under(place, found.root)
    return any(place == _location(found.root, file.path) for file in found.files)


def _location(root: str, path: str) -> str:
    return f"{root.rstrip('/')}/{path}"


def _is_under(place: str, folder: str) -> bool:
    return place == folder or place.startswith(f"{folder.rstrip('/')}/")
