"""What a collector of traces is told about runs and items, with OpenTelemetry's own exporter for tests."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from listener import Tools, Workflow
from listener.traces import Traces
from tests.listener.inside import Inside
from tests.listener.started import Bench
from tests.listener.workflows import Item
from tests.waiting import wait_until


async def _work(item: Item, _tools: Tools) -> None:
    with trace.get_tracer("a library", tracer_provider=_PROVIDER).start_as_current_span("GET"):
        if item.task == "break":
            raise ZeroDivisionError("token=abcdef0123 in it")


_EXPORTER = InMemorySpanExporter()
_PROVIDER = TracerProvider()
_PROVIDER.add_span_processor(SimpleSpanProcessor(_EXPORTER))


@pytest.fixture
def spans(bench: Bench) -> Sequence[ReadableSpan]:
    """Of one run of two items, the second of which fails."""
    _EXPORTER.clear()
    bench.adopt(max_attempts=1)
    bench.queue("ok", "break")
    inside = Inside(bench.url, {"job": Workflow("job", Item, _work)}, traces=Traces(_PROVIDER))
    inside.ready()
    bench.wait_for("Completed", "Failed")
    assert inside.stop() == 0
    wait_until(lambda: len(_EXPORTER.get_finished_spans()) == 5, what="five spans")
    return _EXPORTER.get_finished_spans()


def _named(spans: Sequence[ReadableSpan], name: str) -> list[ReadableSpan]:
    return sorted(
        (span for span in spans if span.name == name), key=lambda span: str(_said(span, "messaging.message.id"))
    )


def _said(span: ReadableSpan, name: str) -> Any:
    return (span.attributes or {}).get(name)


def test_a_run_and_each_of_its_items_are_a_span_and_linked(spans: Sequence[ReadableSpan]) -> None:
    (run,) = _named(spans, "receive job")
    good, bad = _named(spans, "process job")
    assert _said(run, "messaging.system") == "scrapersky"
    assert _said(run, "messaging.destination.name") == "job"
    assert _said(run, "messaging.batch.message_count") == 2
    assert (_said(run, "scrapersky.succeeded"), _said(run, "scrapersky.rejected")) == (1, None)
    for item, key in ((good, "1"), (bad, "2")):
        assert _said(item, "messaging.message.id") == key
        assert item.kind is trace.SpanKind.CONSUMER
        assert item.parent is None
        assert [link.context for link in item.links] == [run.get_span_context()]


def test_a_failure_is_told_by_its_kind_and_without_its_secrets(spans: Sequence[ReadableSpan]) -> None:
    good, bad = _named(spans, "process job")
    assert good.status.is_unset
    assert _said(good, "scrapersky.outcome") == "succeeded"
    assert _said(bad, "error.type") == "ZeroDivisionError"
    assert "***" in str(bad.status.description)
    assert not bad.events
    assert "abcdef0123" not in "".join(span.to_json() for span in _named(spans, "process job"))


def test_what_the_work_traces_belongs_to_its_item(spans: Sequence[ReadableSpan]) -> None:
    parents = {span.parent and span.parent.span_id for span in _named(spans, "GET")}
    contexts = [item.get_span_context() for item in _named(spans, "process job")]
    assert parents == {context.span_id for context in contexts if context}


def test_whoever_does_not_trace_imports_nothing_of_it() -> None:
    code = (
        "import sys; from listener.traces import configured; from listener import process;"
        " assert configured() is None; print([m for m in sys.modules if m.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={})
    assert done.stdout.strip() == "[]"


def test_an_endpoint_without_the_extra_is_said_and_no_reason_to_stop() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None; from listener import logs; logs.configure(form='text');"
        " from listener.traces import configured; print(configured())"
    )
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "None"
    assert "pip install 'scrapersky[otel]'" in done.stderr
