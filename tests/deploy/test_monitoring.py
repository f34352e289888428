"""Alerts and dashboards: they parse, ask for what exists, and lead to the runbook."""

import json
import re
from typing import Any

import promql_parser
import psycopg
import pytest
from psycopg import sql

from tests.conftest import Connect
from tests.deploy.files import DEPLOY, ROOT, documents
from tests.docs.pages import anchors
from tests.sql.queue import Queue

RULES: list[dict[str, Any]] = documents(DEPLOY / "prometheus" / "rules.yml")[0]["groups"][0]["rules"]
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in (DEPLOY / "grafana" / "dashboards").glob("*.json")}
WEB = sorted((ROOT / "listener" / "web").glob("*.py"))


def promql() -> list[str]:
    targets = [target for panel in DASHBOARDS["scrapersky"]["panels"] for target in panel["targets"]]
    return [rule["expr"] for rule in RULES] + [target["expr"] for target in targets]


@pytest.mark.parametrize("expression", promql())
def test_prometheus_can_read_it(expression: str) -> None:
    promql_parser.parse(expression.replace("$workflow", ".*"))


def test_only_metrics_that_exist_are_asked_for() -> None:
    added = [name for path in WEB for name in re.findall(r'\.add\(\s*"(\w+)"', path.read_text())]
    served = {f"scrapersky_{name}" for name in added}
    assert served
    served |= {name + part for name in served for part in ("_bucket", "_sum", "_count")}
    assert {name for text in promql() for name in re.findall(r"\bscrapersky_\w+", text)} - served == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_what_it_means_and_where_to_read_on(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"page", "warning", "info"}
    assert rule["annotations"]["summary"].endswith(".")
    page, _, section = rule["annotations"]["runbook"].partition("#")
    assert section in anchors(ROOT / page)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_can_be_imported_anywhere(name: str) -> None:
    dashboard = DASHBOARDS[name]
    assert dashboard["uid"] == name
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    named = [panel["datasource"]["uid"] for panel in panels]
    named += [target["datasource"]["uid"] for panel in panels for target in panel["targets"]]
    assert set(named) == {"${datasource}"}


def test_the_dashboard_without_prometheus_asks_what_a_monitor_may_read(
    db: psycopg.Connection, connect: Connect
) -> None:
    Queue(db, rows=1, schedule="* * * * *")
    reader = connect("scheduler_monitor")
    dashboard = DASHBOARDS["scrapersky-postgres"]
    (variable,) = (item for item in dashboard["templating"]["list"] if item["type"] == "query")
    names = [row[0] for row in reader.execute(variable["query"].encode()).fetchall()]
    assert names == ["job"]
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = target["rawSql"].replace("$workflow", sql.Literal(names[0]).as_string(reader))
            query = re.sub(r"\$__timeFilter\((\w+)\)", r"\1 > now() - interval '1 hour'", query)
            cursor = reader.execute(query.encode())
            shown = [column.name for column in cursor.description or ()]
            assert shown[:3] == ["time", "metric", "value"] or target["format"] == "table"
