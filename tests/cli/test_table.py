"""Tables: whatever is in them, they fit and do no harm."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from listener.cli.table import Estimate, columns_of, cut, duration, moment, plain, show, table

ROWS = [
    ["domain_extraction", 12, timedelta(seconds=90), "connection refused by the other side after a very long time"],
    ["deep_scan", 100000, None, "ok"],
]
NAMES = ["workflow", "queued", "age", "error"]


def test_without_a_width_nothing_is_cut() -> None:
    assert "after a very long time" in table(NAMES, ROWS)


@pytest.mark.parametrize("width", [120, 80, 60, 50])
def test_long_texts_are_cut_until_the_lines_fit_and_numbers_stay_whole(width: int) -> None:
    text = table(NAMES, ROWS, width=width)
    assert max(columns_of(line) for line in text.splitlines()) <= width
    assert "domain_extraction" in text
    assert "100000" in text
    assert "1m 30s" in text


def test_where_even_that_is_too_wide_columns_are_left_out_by_name() -> None:
    text = table(NAMES, ROWS, width=30)
    assert "connection" not in text
    assert text.splitlines()[-1].startswith("(no room for age, error")


def test_numbers_and_durations_stand_to_the_right() -> None:
    lines = table(["n", "took"], [[1, timedelta(seconds=12)], [200, timedelta(minutes=3)]]).splitlines()
    assert lines[2:] == ["  1     12s", "200  3m 00s"]


def test_chinese_takes_two_columns_and_accents_none() -> None:
    assert columns_of("工作") == 4
    assert columns_of("e\u0301") == 1
    assert columns_of(cut("工作流程", 5)) <= 5


def test_an_id_keeps_its_beginning_and_its_end() -> None:
    assert cut("0189c3f4-5d2e-7c3a-9b1f-0123456789ab", 13) == "0189c3…6789ab"


def test_no_control_character_of_scraped_text_reaches_the_terminal() -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07line\r\nnext\u202eevil\u2028"
    shown = show(hostile)
    assert all(character.isprintable() for character in shown)
    assert "owned" in shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0004, "1ms"),
        (0.085, "85ms"),
        (4.2, "4.2s"),
        (59, "59s"),
        (59.7, "1m 00s"),
        (192, "3m 12s"),
        (3600 * 47, "47h 00m"),
        (3600 * 99, "4d 3h"),
        (-30, "-30s"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text


def test_moments_are_told_from_now_on() -> None:
    now = datetime.now(UTC)
    assert moment(now) == "now"
    assert moment(now + timedelta(minutes=5, seconds=0.5)) == "in 5m 00s"
    assert moment(now - timedelta(hours=3)) == "3h 00m ago"


def test_programs_get_numbers_and_iso_times() -> None:
    assert [plain(value) for value in (timedelta(minutes=1), Decimal("0.5"), Decimal(3), None)] == [60.0, 0.5, 3, None]
    assert plain(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00+00:00"


def test_an_error_keeps_more_room_than_the_id_beside_it() -> None:
    row = ("a27db22f-e78c-4729-a49b-9129989ffba5", "no such host: old-bakery.example")
    shown = table(["key", "error"], [row], width=44)
    assert "no such host: old-bakery.example" in shown
    assert "a27db…fba5" in shown


def test_an_estimate_looks_like_one_and_stands_with_the_numbers() -> None:
    assert table(["queued"], [(Estimate(30494),), (7,)]).splitlines()[2:] == ["~30494", "     7"]
    assert plain(Estimate(5)) == 5


def test_an_error_keeps_room_to_be_read_where_it_is_narrow() -> None:
    error = "no connection to pecan-street-plumbing.com: connection refused"
    shown = table(
        ["workflow", "attempts", "error", "reason"], [["domain_metadata", 3, error, "attempts used up"]], width=60
    )
    assert error[:30] in shown
    assert "(no room for reason)" in shown
