"""A remote request: texts out, an answer in."""

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, Protocol

from remembrancer.domain.errors import RemembrancerError, Retry


class ProviderFailure(StrEnum):
    """Why a request brought no answer.  Whether it was charged can't be known from here."""

    NO_KEY = "no_key"
    """The API key could not be read; nothing was sent."""
    CONNECTION = "connection"
    """No connection, or it broke."""
    TLS = "tls"
    """The other side could not prove who it is; no text was sent."""
    TIMEOUT = "timeout"
    """The deadline passed, whatever had arrived by then."""
    STATUS = "status"
    """An answer other than 200 and not a redirect."""
    REDIRECT = "redirect"
    """A 3xx answer; it was not followed."""
    TOO_LARGE = "too_large"
    """More decoded bytes than allowed; reading stopped there."""
    MALFORMED = "malformed"
    """Not HTTP, cut off, or packed in a way that wasn't asked for."""


class ProviderError(RemembrancerError):
    """A request brought no answer.

    Holds no body, no header, no text and no key, nor does anything that it refers to: providers
    echo keys in their answers.
    """

    retry: ClassVar[Retry] = Retry.LATER

    def __init__(self, failure: ProviderFailure, *, status: int | None = None) -> None:
        super().__init__(
            f"the embedding provider gave no answer: {failure.value}"
            + (f" {status}" if status is not None else "")
        )
        self.failure = failure
        self.status = status

    @property
    def reason(self) -> str:
        """A code such as ``timeout`` or ``status_429``."""
        return f"status_{self.status}" if self.failure is ProviderFailure.STATUS else self.failure


class EmbeddingProvider(Protocol):
    """Asks a remote model for vectors, once.

    One call is at most one request: no retries, no redirects, nothing from the environment.  No
    state is kept between calls: two owners never share a connection.
    """

    @property
    def destination(self) -> str:
        """The URL that requests go to, as guards must judge it; holds no credential."""
        ...

    def unready(self) -> ProviderFailure | None:
        """Say why nothing could be sent now, such as ``no_key``; None where a request may go out.

        Asked before money is set aside: what will not leave reserves nothing.  Blocking; may read
        a file, sends nothing.
        """
        return None

    async def request(self, texts: Sequence[str], *, timeout_s: float) -> bytes:
        """Send ``texts`` (1 or more) and return the answer's body as it came.

        The body has at most ``ANSWER_BYTES_MAX`` bytes and is trusted in nothing:
        :func:`remembrancer.domain.provider_answer.read_answer` judges it.  Only the texts, the
        model's name and the form of the answer are sent.

        ``timeout_s`` bounds everything from the name's look-up to the last byte.  Cancelling the
        call closes the connection at once and propagates.

        Raises:
            ProviderError: there is no answer; the request may have arrived and cost all the same,
                except for ``no_key`` and ``tls``.
            InvalidInputError: a text isn't valid Unicode; nothing was sent.
        """
        ...
