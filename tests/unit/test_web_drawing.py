"""The picture, the charts and the words of the web page."""

from datetime import UTC, datetime, timedelta

import pytest

from listener.web import charts, words
from listener.web.picture import draw
from listener.web.reads import Point
from services.web import pipeline

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
