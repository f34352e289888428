"""Why a fetch failed: each reason in its own words, and whether trying again can help."""

from collections.abc import Iterator
from contextlib import contextmanager

from listener import Reject, Retry
from listener.redact import redact


class FetchError(Exception):
    """One fetch that gave nothing. The text is fit for an error column: no credentials, no query string."""

    retryable = False
    spends = True
    """Whether trying again costs an attempt."""

    def __init__(self, words: str, *, url: str = "", retry_after: float | None = None) -> None:
        super().__init__(redact(words))
        self.url = url
        """The hop that failed, without credentials."""
        self.retry_after = retry_after
        """Seconds the server, or our own manners, ask to wait."""

    def verdict(self) -> Retry | Reject:
        """The same in the engine's terms."""
        return Retry(str(self), after=self.retry_after, spend=self.spends) if self.retryable else Reject(str(self))


class InvalidUrlError(FetchError):
    """No URL at all."""


class RefusedSchemeError(FetchError):
    """Neither http nor https."""


class RefusedPortError(FetchError):
    """A port no website of ours is on."""


class RefusedAddressError(FetchError):
    """An address that is not public; nothing was connected to."""


class DeadHostError(FetchError):
    """DNS says: no such name."""


class ResolveError(FetchError):
    """DNS did not answer."""

    retryable = True


class ConnectError(FetchError):
    """Nobody listens there, or the way there is cut."""

    retryable = True


class TlsError(FetchError):
    """A certificate that does not hold, or no TLS at all."""


class ConnectTimeoutError(FetchError):
    retryable = True


class ReadTimeoutError(FetchError):
    """Connected, and then silence."""

    retryable = True


class TotalTimeoutError(FetchError):
    """It came, but too slowly."""

    retryable = True


class BrokenAnswerError(FetchError):
    """No HTTP, or an answer that ends too early."""

    retryable = True


class TooLargeError(FetchError):
    """More bytes than the cap, counted after decompression, or a decompression bomb."""


class UndecodableError(FetchError):
    """Compressed in a way nobody asked for, or damaged."""


class RedirectError(FetchError):
    """On and on, or in a circle."""


class UnwantedTypeError(FetchError):
    """Not the kind of document that was asked for."""

    def __init__(self, words: str, media_type: str, *, url: str = "") -> None:
        super().__init__(words, url=url)
        self.media_type = media_type


class DisallowedError(FetchError):
    """The site's robots.txt asks us not to."""


class RobotsError(FetchError):
    """The site has rules but cannot tell them now, so nothing is fetched."""

    retryable = True


class BusyError(FetchError):
    """This host asked for a pause, or has failed again and again."""

    retryable = True


class TurnError(BusyError):
    """This host has had its share for the moment: our own manners, and nobody's failure."""

    spends = False


class StatusError(FetchError):
    """An answer of 400 or above, or one that brings no document."""

    # What passes by itself; 520 to 524 are a CDN's words for an origin that is down, 202 is a firewall's for "wait".
    TRANSIENT = frozenset({202, 408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})

    def __init__(self, words: str, status: int, *, url: str = "", retry_after: float | None = None) -> None:
        super().__init__(words, url=url, retry_after=retry_after)
        self.status = status
        self.retryable = status in self.TRANSIENT


@contextmanager
def verdicts() -> Iterator[None]:
    """Inside, a FetchError becomes Retry or Reject, as `work` must raise them."""
    try:
        yield
    except FetchError as error:
        raise error.verdict() from error
