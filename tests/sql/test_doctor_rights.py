"""The doctor answers those who may only look, also where pg_cron keeps its tables from them."""

import pytest

from tests.conftest import Connect


@pytest.mark.cron
@pytest.mark.slow
def test_a_monitor_can_ask_the_doctor_beside_pg_cron(cron_database: str, connect: Connect) -> None:
    monitor = connect("scheduler_monitor", url=cron_database)
    findings = monitor.execute("SELECT severity FROM scheduler.doctor()").fetchall()
    assert ("error",) not in findings
