"""OpenTelemetry traces, with the extra `scrapersky[otel]`: one span for each run and one for each of its items.

Names and attributes are those of OpenTelemetry for messaging: a run is received, an item is processed. An item begins a
trace of its own, linked to its run: a thousand items are a thousand stories, not one with a thousand branches. What
`work` traces, such as its requests, becomes part of its item's.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from listener import __version__
from listener.logs import log_of
from listener.redact import redact
from listener.run import Deferral, Failure, Job, Outcome, Release, Run, Success
from listener.threads import Threads

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

SYSTEM = "scrapersky"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_FLUSH_SECONDS = 3.0
"""How long the last spans may take to leave; a collector that is away must not hold up a drain."""

_log = log_of("traces")


class Traces:
    """Makes the spans of one listener."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry import trace
        from opentelemetry.context import Context

        self._trace = trace
        self._nowhere = Context()
        self._provider = provider
        self._tracer = provider.get_tracer(SYSTEM, __version__)

    def began(self, workflow: str, run: Run) -> "Span":
        """The span of a run, from its claim to its last item's commit."""
        return self._tracer.start_span(
            f"receive {workflow}",
            self._nowhere,
            self._trace.SpanKind.CONSUMER,
            {
                **_about(workflow, "receive"),
                "messaging.batch.message_count": run.claimed,
                "scrapersky.run": run.id,
            },
        )

    def finished(self, run: Run) -> None:
        """The last of its items is settled."""
        span = run.span
        for name in ("succeeded", "failed", "rejected", "released", "refused"):
            if count := getattr(run, name):
                span.set_attribute(f"scrapersky.{name}", count)
        if run.lost:
            self._mark(span, "lease_lost", "its lease ran out or it was closed")
        span.end()

    async def item(self, workflow: str, job: Job, work: "Coroutine[Any, Any, Outcome | None]") -> Outcome | None:
        """Do the work inside a span."""
        with self._tracer.start_as_current_span(
            f"process {workflow}",
            self._nowhere,
            self._trace.SpanKind.CONSUMER,
            {
                **_about(workflow, "process"),
                "messaging.message.id": job.key,
                "scrapersky.run": job.run.id,
                "scrapersky.attempt": job.attempt,
            },
            links=[self._trace.Link(job.run.span.get_span_context())] if job.run.span is not None else [],
            record_exception=False,  # with it would go whatever the text of an exception says
            set_status_on_exception=False,
        ) as span:
            outcome = await work
            span.set_attribute("scrapersky.outcome", _called(outcome))
            return outcome

    def failed(self, error: BaseException, text: str) -> None:
        """Say in the item's span how its work failed."""
        self._mark(self._trace.get_current_span(), type(error).__qualname__, text)

    def _mark(self, span: "Span", kind: str, text: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._trace.StatusCode.ERROR, redact(text))

    async def close(self) -> None:
        """Send what has not been sent, unless that takes too long."""
        flush = getattr(self._provider, "force_flush", None)
        if flush is None:
            return
        threads = Threads("traces")
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await threads.call(flush)
        except Exception as error:
            _log.warning("the last traces are lost", extra={"error": type(error).__name__})
        finally:
            threads.close()


def configured() -> Traces | None:
    """As the OTEL_ variables say, or the provider that `opentelemetry-instrument` has put in place; usually none."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        return None
    wanted = any(os.environ.get(name) for name in _ENDPOINTS)
    if not wanted and "opentelemetry.sdk.trace" not in sys.modules:
        return None  # nothing is imported, so whoever does not trace pays nothing
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        provider = trace.get_tracer_provider()
        if not isinstance(provider, TracerProvider):
            if not wanted:
                return None
            provider = _exporting()
    except ImportError as error:
        _log.warning(
            "no traces: the extra is not installed; pip install 'scrapersky[otel]'", extra={"missing": error.name}
        )
        return None
    _label_logs()
    return Traces(provider)


def _exporting() -> "TracerProvider":
    """Spans in batches, from a thread of its own, to the collector at OTEL_EXPORTER_OTLP_ENDPOINT."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", SYSTEM)})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _label_logs() -> None:
    """Each line that is logged inside a span carries its trace_id."""
    from opentelemetry.trace import format_trace_id, get_current_span

    make = logging.getLogRecordFactory()

    def labelled(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        context = get_current_span().get_span_context()
        if context.is_valid:
            record.trace_id = format_trace_id(context.trace_id)
        return record

    logging.setLogRecordFactory(labelled)


def _about(workflow: str, operation: str) -> dict[str, str]:
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": workflow,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


def _called(outcome: Outcome | None) -> str:
    match outcome:
        case Success():
            return "succeeded"
        case Failure():
            return "rejected" if outcome.permanent else "failed"
        case Release() | Deferral():
            return "released"
    return "taken away"
