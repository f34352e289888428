"""Why Google gave no answer: each reason in Google's own words, and what the engine should make of it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, time, timedelta, timezone

from listener import Hold, Reject, Retry
from listener.redact import redact

_MINUTE_QUOTA_SECONDS = 60.0
_REFUSED_SECONDS = 600.0
_NEXT_DAY_MARGIN = 60.0
# Google's day ends at midnight Pacific time. Standard time all year: in summer an hour late, and never early.
_PACIFIC = timezone(timedelta(hours=-8))


class PlacesError(Exception):
    """One call that gave nothing. The text is fit for an error column: no key, no project number."""

    def __init__(self, words: str) -> None:
        super().__init__(re.sub(r"(project(?:_number)?[:/ ]+)\d+", r"\1***", redact(words))[:500])

    def verdict(self, now: datetime) -> Hold | Retry | Reject:
        """The same in the engine's terms."""
        raise NotImplementedError


class NoKeyError(PlacesError):
    """There is none in the settings."""

    def verdict(self, now: datetime) -> Hold:  # noqa: ARG002
        return Hold(str(self), after=_REFUSED_SECONDS)


class KeyRefusedError(PlacesError):
    """A bad or blocked key, an API not switched on, no billing: no item can succeed until a person acts."""

    def verdict(self, now: datetime) -> Hold:  # noqa: ARG002
        return Hold(str(self), after=_REFUSED_SECONDS)


class MinuteQuotaError(PlacesError):
    """Too many calls in this minute."""

    def verdict(self, now: datetime) -> Hold:  # noqa: ARG002
        return Hold(str(self), after=_MINUTE_QUOTA_SECONDS)


class DayQuotaError(PlacesError):
    """No more calls today."""

    def verdict(self, now: datetime) -> Hold:
        return Hold(str(self), after=until_next_day(now))


class BudgetError(PlacesError):
    """Our own limit for today is reached; Google was not even asked."""

    def __init__(self, words: str, resumes_at: datetime | None) -> None:
        super().__init__(words)
        self.resumes_at = resumes_at

    def verdict(self, now: datetime) -> Hold:
        left = (self.resumes_at - now).total_seconds() if self.resumes_at else _REFUSED_SECONDS
        return Hold(str(self), after=max(left, 1.0))


class GoneError(PlacesError):
    """The place is no more, or never was."""

    def verdict(self, now: datetime) -> Reject:  # noqa: ARG002
        return Reject(str(self))


class BadRequestError(PlacesError):
    """Google does not understand the request; it will not tomorrow either."""

    def verdict(self, now: datetime) -> Reject:  # noqa: ARG002
        return Reject(str(self))


class UnavailableError(PlacesError):
    """Google cannot be reached, or has trouble of its own."""

    def verdict(self, now: datetime) -> Retry:  # noqa: ARG002
        return Retry(str(self))


def until_next_day(now: datetime) -> float:
    """Seconds until Google counts a new day."""
    local = now.astimezone(_PACIFIC)
    midnight = datetime.combine(local.date() + timedelta(days=1), time(), _PACIFIC)
    return (midnight - local).total_seconds() + _NEXT_DAY_MARGIN


@contextmanager
def verdicts(now: datetime) -> Iterator[None]:
    """Inside, a PlacesError becomes Hold, Retry or Reject, as `work` must raise them."""
    try:
        yield
    except PlacesError as error:
        raise error.verdict(now) from error
