"""The bounds of mechanism version ``semantic-query@1`` (design section 9).

Safety bounds of the mechanism, not measured claims and not settings.  Changing one makes a new
mechanism version, which needs an admission of its own.
"""

from typing import Final

MECHANISM_VERSION: Final = "semantic-query@1"

QUERIES_MAX: Final = 4
"""Queries a preparation."""
REQUESTS_MAX: Final = 1
"""Requests a preparation."""
RETRIES_MAX: Final = 0
REDIRECTS_MAX: Final = 0
QUEUED_MAX: Final = 0
"""Pieces of work that may wait for later."""

DEADLINE_S: Final = 10
"""A whole preparation, from the call."""
LEASE_S: Final = 15
"""A reservation's life on the store's clock; at this age it is expired."""
CLEANUP_S: Final = 3
"""After a failure, for marking the reservation unknown."""
CHECK_INTERVAL_S: Final = 1
"""Between looks at admission, context generation and lease while a request is out."""

CACHE_VECTORS_MAX: Final = 128
CACHE_LIFETIME_S: Final = 300

QUERY_TEXT_BYTES_MAX: Final = 4_096
"""Canonical query text, UTF-8; a longer one is withheld, never cut."""

PENDING_QUERIES_MAX: Final = 1
"""Pending query reservations an owner."""

QUANTA_PER_USD: Final = 1_000_000
"""A quantum is 0.000001 USD, the store's ``numeric(14,6)``; every rounding goes up."""
