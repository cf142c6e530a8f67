"""Originals for the suites: plain ones by hand, odd ones by Hypothesis."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from remembrancer.application.ports.entry_vault import Original
from remembrancer.domain.identity import EntryId
from remembrancer.domain.original_digest import original_digest
from remembrancer.domain.sensitivity import Sensitivity

FIRST, SECOND, THIRD = (EntryId(UUID(int=number)) for number in (1, 2, 3))
UNKNOWN = EntryId(UUID(int=99))
MORNING = datetime(2030, 1, 1, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
SALT = bytes(range(32))


def an_original(entry_id: EntryId = FIRST, version: int = 1, **changes: Any) -> Original:
    """Return a version with plain labels, recorded at :data:`MORNING` plus ``version`` hours."""
    text = changes.pop("text", f"version {version} of {entry_id.int}")
    salt = changes.pop("salt", SALT)
    plain = Original(
        tenant="acme",
        owner="ana",
        entry_id=entry_id,
        version=version,
        scope="project/alpha",
        kind="note",
        sensitivity=Sensitivity.INTERNAL,
        text=text,
        salt=salt,
        digest=original_digest(salt, text),
        tokens=len(text) // 4,
        token_counter="test@1",  # noqa: S106  # Not a password.
        subjects=(),
        metadata={},
        recorded_at=MORNING + version * HOUR,
    )
    return plain._replace(**changes)


texts = st.text(st.characters(exclude_categories=["Cs"]))
originals = st.builds(
    an_original,
    text=texts,
    salt=st.binary(min_size=32, max_size=32),
    sensitivity=st.sampled_from(Sensitivity),
    tokens=st.integers(0, 2**40),
    subjects=st.lists(texts, max_size=3).map(tuple),
    metadata=st.dictionaries(texts, texts, max_size=3),
    reason=texts,
    recorded_at=st.datetimes(timezones=st.just(UTC)),
)
