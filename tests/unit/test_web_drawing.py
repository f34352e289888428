"""The picture, the charts and the words of the web page."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from listener.web import charts, words
from listener.web.picture import draw, inferred
from listener.web.reads import Point
from services.web import pipeline

STYLE = Path(charts.__file__).parent / "static" / "style.css"
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_the_seven_steps_of_the_pipeline_stand_in_one_line() -> None:
    steps = ["place_search", "deep_scan", "domain_extraction", "domain_metadata"]
    steps += ["sitemap_analysis", "sitemap_import", "page_curation"]
    picture = draw(sorted(steps), pipeline.handovers)
    assert [list(row) for row in picture.rows] == [steps]
    assert len(picture.edges) == 6


def test_branches_stand_below_each_other_and_never_on_each_other() -> None:
    picture = draw(["a", "b", "c", "d"], [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    assert picture.rows == (("a", "b", None), (None, "c", "d"))


def test_workflows_that_follow_nothing_are_wrapped_below() -> None:
    picture = draw([*"abcdefgh", "x", "y"], [("x", "y")])
    assert picture.rows[0][:2] == ("x", "y")
    assert picture.rows[1] == tuple("abcdefg")
    assert picture.rows[2][0] == "h"


def test_a_workflow_that_waits_for_the_word_of_another_on_its_table_follows_it() -> None:
    rows = [
        {"workflow": "invoice", "relation": "orders", "status_column": "invoice_status", "ready": "paid"},
        {"workflow": "mail", "relation": "orders", "status_column": "mail_status", "ready": "shipping_status = 'Sent'"},
        {
            "workflow": "shipping",
            "relation": "orders",
            "status_column": "shipping_status",
            "ready": "invoice_status = 'Completed' AND shipping_status IS NULL",
        },
        {"workflow": "other", "relation": "elsewhere", "status_column": "s", "ready": "mail_status = 'Sent'"},
    ]
    assert set(inferred(rows)) == {("invoice", "shipping"), ("shipping", "mail")}


def test_a_circle_and_unknown_names_do_not_break_the_picture() -> None:
    picture = draw(["a", "b"], [("a", "b"), ("b", "a"), ("a", "a"), ("a", "gone"), ("a", "b")])
    assert [(edge.source, edge.target) for edge in picture.edges] == [("a", "b")]
    assert draw([], []).rows == ()


def test_bars_stack_failures_on_successes_under_a_round_top() -> None:
    drawn = charts.bars([Point(NOW, 30, 10), Point(NOW)])
    assert drawn.top == 50
    assert (drawn.total, drawn.failed) == (30, 10)
    first = drawn.bars[0]
    assert first.good_height == charts.HEIGHT * 30 / 50
    assert first.bad_y + first.bad_height == pytest.approx(first.good_y)
    assert drawn.bars[1].good_height == 0


def test_a_line_has_a_gap_where_nothing_finished() -> None:
    drawn = charts.lines([Point(NOW, 1, 0, 0.1, 1.0), Point(NOW), Point(NOW, 1, 0, 0.1, 1.0)])
    assert len(drawn.p50) == len(drawn.p95) == 2
    assert [seconds for _, seconds in drawn.marks] == [0.1, 1.0]
    assert charts.lines([Point(NOW)]).is_empty


def test_a_spark_of_nothing_is_nothing() -> None:
    assert charts.spark([]) == ""
    assert charts.spark([Point(NOW), Point(NOW)]) == ""
    assert charts.spark([Point(NOW, 1), Point(NOW, 2), Point(NOW, 9)]).count("L") == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (timedelta(0), "0 s"),
        (timedelta(milliseconds=120), "120 ms"),
        (timedelta(seconds=3.21), "3.2 s"),
        (59.9, "59.9 s"),
        (timedelta(minutes=3, seconds=12), "3 min 12 s"),
        (timedelta(hours=2), "2 h"),
        (timedelta(days=400, hours=3), "400 d"),
        (-65, "-1 min 5 s"),
        (None, "\N{EN DASH}"),
    ],
)
def test_durations_read_like_durations(value: timedelta | float | None, shown: str) -> None:
    assert words.duration(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(9999, "9\N{NARROW NO-BREAK SPACE}999"), (30511, "30.5k"), (2_500_000, "2.5M"), (0, "0")]
)
def test_large_numbers_stay_short(value: int, shown: str) -> None:
    assert words.short(value) == shown


def test_an_error_group_becomes_a_pattern_for_all_of_its_kind() -> None:
    assert words.like("HTTP # from <url>") == "HTTP % from %%"


def test_the_address_of_an_item_holds_any_key() -> None:
    assert words.item_path("job", "a/b ?#") == "/workflows/job/items/a%2Fb%20%3F%23"


def _luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ink", ["ink", "soft-ink", "faint", "accent", "warn", "bad"])
@pytest.mark.parametrize("ground", ["paper", "raised", "hover"])
def test_every_text_can_be_read_by_weak_eyes(scheme: int, ink: str, ground: str) -> None:
    blocks = re.findall(r":root \{(.*?)\}", STYLE.read_text("utf-8"), re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", blocks[scheme]))
    darker, lighter = sorted((_luminance(colours[ink]), _luminance(colours[ground])))
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5  # WCAG 2, level AA


@pytest.mark.parametrize(
    ("said", "queries"),
    [
        ("It is gated: x. To let it through: UPDATE t SET a = 'b'", ["UPDATE t SET a = 'b'"]),
        ("It is dead. A new start: SELECT scheduler.requeue('j', '{1}')", ["SELECT scheduler.requeue('j', '{1}')"]),
        ("Paused: SELECT scheduler.resume('j'). Its row is locked.", ["SELECT scheduler.resume('j')"]),
        ("Either: UPDATE a SET b = true; UPDATE c SET d = true.", ["UPDATE a SET b = true", "UPDATE c SET d = true"]),
        ("It is done.", []),
    ],
)  # fmt: skip
def test_what_is_to_be_copied_is_told_from_what_is_to_be_read(said: str, queries: list[str]) -> None:
    pieces = words.passages(said)
    assert "".join(piece for _, piece in pieces) == said, "nothing is lost"
    assert [piece for is_sql, piece in pieces if is_sql] == queries


def test_the_detail_of_an_audit_row_reads_as_settings() -> None:
    assert words.facts({"batch_size": 10, "reason": "API down"}) == "batch_size = 10, reason = API down"
    assert words.facts({}) == words.facts(None) == ""
