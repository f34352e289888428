"""Queued rows through a real listener to their final word."""

from tests.listener.started import Bench


def test_rows_queued_before_and_after_the_start_are_completed_and_their_results_saved(bench: Bench) -> None:
    bench.adopt()
    bench.queue("ok", "ok")
    bench.start()
    bench.wait_for("Completed", "Completed")
    bench.queue("ok", first=3)
    bench.wait_for("Completed", "Completed", "Completed")
    assert bench.effects() == [1, 2, 3]
