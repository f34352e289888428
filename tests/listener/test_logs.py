"""Log lines: one JSON object each, readable on a terminal, and never a secret."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from listener import logs
from listener.redact import know, know_url, redact
from tests.listener.started import Bench
from tests.sql.queue import one


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.slow
def test_a_run_leaves_one_summary_line_and_the_start_names_what_is_served(bench: Bench) -> None:
    bench.adopt(schedule="*/5 * * * *", batch_size=7, max_instances=2, max_attempts=1, idle="Idle")
    bench.queue("ok", "ok", "reject", "break")
    process = bench.start(SOME_API_KEY="AIzaSyD-1234567890abcdefghijklmnopq")
    bench.wait_for("Completed", "Completed", "Failed", "Failed")
    summary = process.wait_line("run finished")
    shown = {
        name: summary[name] for name in ("workflow", "logger", "level", "found", "succeeded", "failed", "rejected")
    }
    assert shown == {
        "workflow": "job",
        "logger": "scrapersky.job",
        "level": "info",
        "found": 4,
        "succeeded": 2,
        "failed": 2,
        "rejected": 1,
    }
    assert summary["seconds"] >= 0
    assert summary["ts"].endswith("Z")
    serving = process.lines("serving")[0]
    assert serving["event"] == "serving job (*/5 * * * *, batch 7, instances 2)"
    failed = process.lines("item failed")[0]
    assert failed["item"] == "4"
    assert failed["attempt"] == 1
    assert "ZeroDivisionError" in failed["traceback"]
    assert (failed["error_class"], failed["table"]) == ("ZeroDivisionError", "item")
    assert failed["duration_ms"] >= 0
    # two listeners that write into one place can be told apart
    listener = one(bench.db, "SELECT id::text FROM scheduler.listener")
    assert {line.get("listener") for line in process.lines() if line["ts"] >= serving["ts"]} == {listener}
    assert "hunter22" not in process.log()
    # one object a line, whatever is in it
    assert all(json.loads(line) for line in process.log().splitlines())
    assert len(process.lines("run finished")) == 1
    assert process.stop() == 0


@pytest.mark.usefixtures("restored")
def test_on_a_terminal_a_line_is_for_people_and_elsewhere_for_machines() -> None:
    for stream, wanted in (
        (Terminal(), "job: it happened  run=7  why='a b'  names=a,b"),
        (io.StringIO(), '"run": 7, "why": "a b", "workflow": "job", "names": ["a", "b"]'),
    ):
        logs.configure(stream=stream)
        extra = {"run": 7, "why": "a b", "workflow": "job", "names": ["a", "b"]}
        logs.log_of("job").info("it happened", extra=extra)
        assert wanted in stream.getvalue()


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("form", ["json", "text"])
def test_secrets_are_taken_out_of_the_message_the_fields_and_the_traceback(form: str) -> None:
    know_url("postgresql://me:p%40ss-word@host/x")
    stream = io.StringIO()
    logs.configure("INFO", form, stream)
    logs.log_of("job").error(
        "calling with token=abc123",
        extra={"headers": {"Authorization": "Bearer abcdefghij"}, "url": "://u:pw@h"},
        exc_info=RuntimeError("https://maps/api?key=AIzaSyD-1234567890abcdefghijklmnopq&q=1 p@ss-word"),
    )
    text = stream.getvalue()
    for secret in ("p@ss-word", "AIzaSyD", "abc123", "abcdefghij", "u:pw"):
        assert secret not in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:secret@h/x", "postgresql://***@h/x"),
        ("?key=abc&page=2", "?key=***&page=2"),
        ('{"api_key": "abc", "n": 1}', '{"api_key": "***", "n": 1}'),
        ("Authorization: Token abcdef123", "Authorization: Token ***"),
        ("{'authorization': 'abcdef123'}", "{'authorization': '***'}"),
        ("Cookie: a=b; c=d", "Cookie: ***"),
        ("the keyboard is fine", "the keyboard is fine"),
        ("password='x y'", "password='***'"),
        ("host=h password='it is long", "host=h password='*** is long"),
        ('{"secret": "two words", "n": "one"}', '{"secret": "***", "n": "one"}'),
    ],
)
def test_what_smells_of_a_secret_is_starred(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_a_secret_too_short_to_be_one_is_not_starred_everywhere() -> None:
    know("abc")
    assert redact("abcdef") == "abcdef"


@pytest.mark.usefixtures("restored")
def test_http_clients_do_not_write_urls_into_our_log() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    logging.getLogger("httpx").info("GET https://maps/?key=1")
    assert stream.getvalue() == ""
