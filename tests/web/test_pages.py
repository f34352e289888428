"""What the pages show, and what the actions on them do."""

import asyncio
import json
import re
from urllib.parse import quote

import psycopg
import pytest

from listener.web.store import Store
from tests.sql.queue import Queue, call, one
from tests.web.serving import Visitor

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def operator(visitor: Visitor) -> Visitor:
    visitor.sign_in()
    return visitor


def last_action(queue: Queue) -> tuple[str, str, int | None]:
    row = queue.db.execute("SELECT action, who, affected FROM scheduler.audit ORDER BY id DESC LIMIT 1").fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def kill(queue: Queue, key: int, error: str) -> None:
    queue.set("Queued", key)
    claimed = queue.claim(1)
    queue.fail(claimed.run, *claimed.keys, error=error, permanent=True)


def test_every_page_shows_and_loads_nothing_from_elsewhere(operator: Visitor, queue: Queue) -> None:
    kill(queue, 4, "boom")
    queue.set("Queued", 5)
    queue.claim(1)
    for path in ("/", "/workflows/job", "/workflows/job?window=day", "/workflows/job/items/4", "/listeners", "/doctor"):
        answer = operator.get(path)
        assert answer.status_code == 200, path
        # the policy in the headers would keep these from working
        assert not re.search(r"<script(?! src=\"/static/)|<style|\sstyle=|\son[a-z]+=|https?://(?!127)", answer.text), (
            path
        )
    assert "create_workflow" in operator.get("/audit").text
    assert "boom" in operator.get("/workflows/job").text


def test_a_finding_says_what_it_means_and_what_fixes_it(operator: Visitor, queue: Queue) -> None:
    kill(queue, 4, "boom")
    text = operator.get("/doctor").text
    for said in ("1 item is in the dead letter", "waits for a person", "SELECT scheduler.requeue("):
        assert said in text


def test_scraped_text_stays_text(operator: Visitor, queue: Queue, db: psycopg.Connection) -> None:
    db.execute("GRANT SELECT ON item TO scheduler_monitor")
    kill(queue, 1, SCRIPT)
    db.execute("SELECT scheduler.pause('job', %s)", [SCRIPT])
    for path in ("/", "/workflows/job", "/workflows/job/items/1", "/audit", f"/workflows/job/items/{quote(SCRIPT)}"):
        text = operator.get(path).text
        assert SCRIPT not in text, path
        assert "&lt;script&gt;" in text, path


def test_a_row_is_shown_only_where_a_monitor_may_read_its_table(operator: Visitor, db: psycopg.Connection) -> None:
    assert "GRANT SELECT ON item TO scheduler_monitor" in operator.get("/workflows/job/items/1").text
    db.execute("GRANT SELECT ON item TO scheduler_monitor")
    assert "created_at" in operator.get("/workflows/job/items/1").text


def test_reading_cannot_write_even_as_a_superusers_login(database: str, queue: Queue) -> None:
    async def write(statement: str) -> None:
        store = Store(database)
        await store.open()
        try:
            async with store.reading() as reader:
                await reader.row(statement)
        finally:
            await store.close()

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        asyncio.run(write("SELECT scheduler.pause('job')"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        asyncio.run(write("SELECT * FROM item"))
    queue.db.execute("GRANT INSERT ON item TO scheduler_monitor")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        asyncio.run(write("INSERT INTO item (id) VALUES (99)"))


def test_what_is_not_there_is_said_plainly(operator: Visitor) -> None:
    assert operator.get("/workflows/nothing").status_code == 404
    assert operator.get("/data/nothing").status_code == 404
    assert operator.get("/do/destroy?workflow=job").status_code == 404
    wrong_key = operator.get("/workflows/job/items/not-a-number")
    assert wrong_key.status_code == 400
    assert "<h1>These are not keys of" in wrong_key.text
    assert '<a href="/workflows/job">job</a>' in wrong_key.text
    assert "There is no row" in operator.get("/workflows/job/items/12345").text
    assert operator.get("/workflows/job/items?key=3").headers["location"] == "/workflows/job/items/3"


def test_a_broken_workflow_does_not_hide_the_others(operator: Visitor, queue: Queue, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE other (id text PRIMARY KEY, status text)")
    call(db, "create_workflow", name="other", relation="other", status_column="status")
    db.execute("DROP TABLE item")
    assert operator.get("/").status_code == 200
    page = operator.get("/workflows/job").text
    assert "broken" in page
    assert "~" not in page, "what cannot be counted is no estimate"
    assert operator.get("/workflows/other").status_code == 200


def test_any_key_has_a_page(operator: Visitor, db: psycopg.Connection) -> None:
    key = "a/b?c=1&d#e %2F \u00e4"
    db.execute("CREATE TABLE other (id text PRIMARY KEY, status text)")
    db.execute("INSERT INTO other VALUES (%s, 'Queued')", [key])
    call(db, "create_workflow", name="other", relation="other", status_column="status")
    found = operator.get(f"/workflows/other/items/{quote(key, safe='')}")
    assert "It is queued" in found.text


# -- actions -----------------------------------------------------------------------------------------------------------


def test_pausing_and_resuming_names_the_person_and_the_reason(operator: Visitor, queue: Queue) -> None:
    shown = operator.get("/do/pause?workflow=job&reason=API+down").text
    assert "SELECT * FROM scheduler.pause(name =&gt; &#39;job&#39;, reason =&gt; &#39;API down&#39;);" in shown
    assert one(queue.db, "SELECT paused_at FROM scheduler.workflow") is None
    answer = operator.act("pause", workflow="job", reason="API down", next="/workflows/job")
    assert answer.headers["location"] == "/workflows/job"
    assert one(queue.db, "SELECT paused_reason FROM scheduler.workflow") == "API down"
    assert last_action(queue) == ("pause", "postgres for operator", None)
    assert "job is paused" in operator.get("/workflows/job").text
    overview = operator.get("/").text
    assert re.search(r'<div class="note">paused by postgres for operator since .* - API down</div>', overview)
    operator.act("resume", workflow="job")
    assert one(queue.db, "SELECT paused_at FROM scheduler.workflow") is None


def test_dispatching_queueing_and_cancelling(operator: Visitor, queue: Queue) -> None:
    operator.act("dispatch", workflow="job")
    assert queue.counts() == {"Queued": 3, None: 2}
    operator.act("enqueue", workflow="job", keys="4\n5")
    assert queue.counts() == {"Queued": 5}
    operator.act("cancel", workflow="job", key=["1", "2"])
    assert queue.counts() == {"Queued": 3, None: 2}
    assert last_action(queue) == ("cancel", "postgres for operator", 2)


def test_requeueing_some_dead_items_leaves_the_others(operator: Visitor, queue: Queue) -> None:
    for key, error in ((1, "timeout after 3 s"), (2, "timeout after 9 s"), (3, "no such host"), (4, "gone")):
        kill(queue, key, error)
    operator.act("requeue", workflow="job", key="4")
    assert queue.status(4) == "Queued"
    pattern = re.search(r"/do/requeue\?workflow=job&amp;error=(timeout[^\"]+)\"", operator.get("/workflows/job").text)
    assert pattern is not None
    assert pattern[1] == "timeout%20after%20%25%20s%25"
    operator.act("requeue", workflow="job", error="timeout after % s%")
    assert [queue.status(key) for key in (1, 2, 3)] == ["Queued", "Queued", "Failed"]
    operator.act("requeue", workflow="job")
    assert queue.status(3) == "Queued"


def test_requeueing_without_keys_says_how_many_items_that_takes(operator: Visitor, queue: Queue) -> None:
    queue.set("Queued")
    run = queue.claim().run
    queue.fail(run, "1", "2", error="HTTP 503", permanent=True)
    queue.fail(run, "3", error="timeout after 3 s")

    def told(**asked: str) -> str:
        page = operator.client.get("/do/requeue", params={"workflow": "job", **asked}).text
        found = re.search(r'<p id="affected">(.*?)</p>', page)
        return re.sub("<.*?>", "", found[1]) if found else ""

    assert told() == "3 items as this stands."
    assert told(error="http%") == "2 items as this stands."
    assert told(error="%never%") == "No item as this stands."
    assert told(key="1") == "", "the keys stand there themselves"


def test_settings_are_changed_and_cleared_and_only_those(operator: Visitor, queue: Queue) -> None:
    settings = {"schedule": "", "batch_size": "7", "max_instances": "", "concurrency": "10", "max_attempts": "5"}
    assert operator.act("change", workflow="job", **settings).status_code == 303
    row = queue.db.execute("SELECT schedule, batch_size, max_instances, concurrency FROM scheduler.workflow").fetchone()
    assert row == (None, 7, None, 10)
    detail = one(queue.db, "SELECT detail FROM scheduler.audit ORDER BY id DESC LIMIT 1")
    assert set(detail) == {"batch_size", "schedule"}
    assert operator.act("change", workflow="job", **settings).status_code == 400


def test_bad_settings_change_nothing_and_the_form_says_why(operator: Visitor, queue: Queue) -> None:
    before = queue.db.execute("SELECT * FROM scheduler.workflow").fetchone()
    for name, value, said in (
        ("schedule", "every now and then", "schedule"),
        ("batch_size", "0", "batch_size"),
        ("batch_size", "many", "whole number"),
        ("batch_size", "", "cannot be empty"),
    ):
        answer = operator.act("change", workflow="job", **{name: value})
        assert answer.status_code in (400, 409)
        alert = re.search(r'role="alert">([^<]*)</p>\s*<form method="post" action="/do', answer.text)
        assert alert is not None
        assert said in alert[1]
    assert queue.db.execute("SELECT * FROM scheduler.workflow").fetchone() == before


def test_cancelling_nothing_and_too_much_is_refused(operator: Visitor, queue: Queue) -> None:
    assert operator.act("cancel", workflow="job").status_code == 400
    assert operator.act("cancel", workflow="job", keys=" ".join(map(str, range(1001)))).status_code == 400
    assert operator.act("cancel", workflow="job", keys="x" * 300_000).status_code == 413


def test_everything_can_be_paused_and_resumed(operator: Visitor, queue: Queue) -> None:
    operator.act("pause_all", reason="storm")
    assert "Everything is paused" in operator.get("/").text
    operator.act("resume_all")
    assert "Everything is paused" not in operator.get("/").text


# -- tables of results -------------------------------------------------------------------------------------------------


@pytest.fixture
def contacts(db: psycopg.Connection) -> None:
    db.execute("CREATE TYPE kind AS ENUM ('corporate', 'free')")
    db.execute(
        "CREATE TABLE contact (name text, email text, phone text, email_type kind, created_at timestamptz, secret text)"
    )
    db.execute("GRANT SELECT ON contact TO scheduler_monitor")
    db.execute(
        "INSERT INTO contact VALUES"
        " (' \uff1dHYPERLINK(1)', 'a@firm.example', '+43123456789', 'corporate', now(), 'sealed'),"
        " ('Ann 100%%', 'b@free.example', NULL, 'free', now() - interval '1 day', 'sealed')".replace("%%", "%")
    )


def test_contacts_are_filtered_and_exported(operator: Visitor, contacts: None) -> None:
    assert "Contacts" in operator.get("/").text
    everyone = operator.get("/data/contacts").text
    assert "a@firm.example" in everyone
    assert "sealed" not in everyone
    assert "a@firm.example" not in operator.get("/data/contacts?q=100%25").text
    assert "b@free.example" in operator.get("/data/contacts?q=100%25").text
    assert "b@free.example" not in operator.get("/data/contacts?email_type=corporate").text
    exported = json.loads(operator.get("/data/contacts/export.json?email_type=free").text)
    assert [contact["email"] for contact in exported] == ["b@free.example"]
    assert json.loads(operator.get("/data/contacts/export.json?q=nobody").text) == []
    # a table without a key or a word to decide is looked at, not decided on
    assert 'name="key"' not in everyone
    assert operator.act("decide", table="contacts", keys="1", word="Selected").status_code == 404


def test_an_export_runs_no_formula_in_a_spreadsheet(operator: Visitor, contacts: None) -> None:
    answer = operator.get("/data/contacts/export.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "' \uff1dHYPERLINK(1),a@firm.example,corporate,+43123456789," in answer.text


def test_a_table_that_is_not_there_or_not_granted_has_no_page(operator: Visitor, db: psycopg.Connection) -> None:
    assert operator.get("/data/contacts").status_code == 404
    db.execute("CREATE TABLE contact (email text)")
    assert "Contacts" not in operator.get("/").text
    assert operator.get("/data/contacts").status_code == 404
    assert operator.get("/data/contacts/export.csv").status_code == 404
