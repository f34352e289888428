"""The pipeline's commands, as a person or a script runs them."""

import csv
import io
import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import typer
from typer.testing import CliRunner, Result

from listener import cli
from listener.cli.plugins import add_commands
from listener.errors import UserError
from listener.postgres.choose import URL_VARIABLE
from services.imports import SOURCES, import_file
from tests.conftest import Connect
from tests.pipeline.rows import column, fill, places, row

Run = Callable[..., Result]


@pytest.fixture
def run(database: str) -> Run:
    """`scrapersky …` on this test's database; errors that a person can put right are raised."""

    def invoke(*arguments: str, code: int = 0, stdin: bytes | str | None = None) -> Result:
        result = CliRunner().invoke(cli.app, list(arguments), env={URL_VARIABLE: database}, input=stdin)
        if isinstance(result.exception, UserError | psycopg.Error):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return invoke


def test_a_search_is_a_row_that_waits_to_be_run(run: Run, db: psycopg.Connection) -> None:
    key = run("search", "plumber", "Austin, TX", "--near", "30.27,-97.74", "--radius", "5000", "--max", "20").stdout
    found = "SELECT id::text, business_type, location, latitude, radius, max_results, status FROM place_search"
    assert row(db, found) == (key.strip(), "plumber", "Austin, TX", 30.27, 5000, 20, "pending")
    assert json.loads(run("search", "plumber", "Bonn", "--json").stdout)["status"] == "pending"


NO_SEARCH = [
    (["", "Austin"], "WHAT is empty"),
    (["plumber", " "], "WHERE is empty"),
    (["plumber", "Austin", "--radius", "10"], "--near"),
    (["plumber", "Austin", "--near", "here"], "not a point"),
    (["plumber", "Austin", "--near", "91,0"], "not on the globe"),
]


def test_a_search_that_cannot_be_is_refused_with_the_way_out(run: Run, db: psycopg.Connection) -> None:
    for arguments, message in NO_SEARCH:
        with pytest.raises(UserError, match=message):
            run("search", *arguments)
    assert column(db, "SELECT count(*) FROM place_search") == [0]


def told(result: Result) -> list[tuple[str, str]]:
    """(result, why) of each row of the report."""
    return [(line["result"], line["why"]) for line in csv.DictReader(io.StringIO(result.stdout))]


def test_each_row_of_an_import_gets_its_result_and_the_rest_goes_in(run: Run, db: psycopg.Connection) -> None:
    file = (
        b"\xef\xbb\xbfName;Website;Country Code\r\n"
        b"Acme;https://www.ACME.com/contact?x=1;us\r\n"
        b"Again;acme.com;\r\n"
        b"Social;https://facebook.com/acme;\r\n"
        b"\r\n"
        b"Bad;not a host;\r\n"
        b"Other;example.co.uk;GB;too;many\r\n"
        b"NUL;nul\x00.com;\r\n"
        b"Latin;m\xfcller.de;\r\n"
        b'Quote;"open.com;\r\n'
        b"Fine;fine.org;\r\n"
    )
    result = run("import", "domains", "-", stdin=file, code=3)
    outcomes = told(result)
    assert [outcome for outcome, _ in outcomes] == [
        *("added", "duplicate", "invalid", "invalid", "invalid", "invalid", "invalid", "invalid", "added"),
    ]
    for (_, why), expected in zip(
        outcomes[1:8], ["in this file", "facebook", "", "cells", "NUL", "UTF-8", "quote"], strict=True
    ):
        assert expected in why
        assert why
    assert "2 added, 1 duplicate, 6 invalid" in result.stderr
    stored = db.execute("SELECT domain, country_code, status FROM domain ORDER BY 1").fetchall()
    assert stored == [("acme.com", "US", "pending"), ("fine.org", None, "pending")]
    again = json.loads(run("import", "domains", "-", "--json", stdin=b"acme.com\nnew.com\n").stdout)
    assert again["counts"] == {"added": 1, "duplicate": 1}
    assert [row["why"] for row in again["rows"]] == ["domain has it already", None]


def test_a_huge_field_or_a_quote_that_never_closes_spoils_only_its_own_row(run: Run) -> None:
    file = b'domain\n"' + b"x" * 200_000 + b"\n" + b'"open.com\n' * 3 + b"".join(b"a%d.com\n" % n for n in range(40))
    outcomes = [outcome for outcome, _ in told(run("import", "domains", "-", stdin=file, code=3))]
    assert outcomes == ["invalid"] * 4 + ["added"] * 40


def test_a_cell_over_several_lines_is_one_cell(run: Run, db: psycopg.Connection) -> None:
    file = b'place_id,address,rating\np1,"1 Main St\nAustin",4.5\np2,"2 Main St",9\np3,,\n'
    assert [outcome for outcome, _ in told(run("import", "places", "-", "--select", stdin=file, code=3))] == [
        *("added", "invalid", "added"),
    ]
    stored = db.execute("SELECT place_id, address, rating, status FROM place ORDER BY 1").fetchall()
    assert [tuple(map(str, line)) for line in stored] == [
        ("p1", "1 Main St\nAustin", "4.5", "Selected"),
        ("p3", "None", "None", "Selected"),
    ]


def test_pages_and_sitemaps_bring_their_domain_along(run: Run, db: psycopg.Connection) -> None:
    urls = (
        "url\nhttps://www.example.com/Contact#top\nhttps://user:secret@example.com/\nftp://example.com/\n"
        "https://example.com/\u00e4\nhttps://10.0.0.1/\nhttps:\\\\user:secret@example.com\n"
    ).encode()
    result = run("import", "pages", "-", stdin=urls, code=3)
    assert [outcome for outcome, _ in told(result)] == ["added", "invalid", "invalid", "added", "invalid", "invalid"]
    assert column(db, "SELECT url FROM page ORDER BY url") == [
        "https://example.com/%C3%A4",
        "https://www.example.com/Contact",
    ]
    run("import", "sitemaps", "-", "--select", stdin=b"https://example.com/sitemap.xml\n")
    found = "SELECT found_by, deep_scrape_curation_status FROM sitemap_file"
    assert row(db, found) == ("import", "Selected")
    assert column(db, "SELECT domain FROM domain") == ["example.com"]


def test_a_file_of_another_kind_is_refused_as_a_whole(run: Run, db: psycopg.Connection) -> None:
    with pytest.raises(UserError, match="names no column that is known"):
        run("import", "domains", "-", stdin=b"first,second\na.com,b.com\n")
    with pytest.raises(UserError, match="names no column place_id"):
        run("import", "places", "-", stdin=b"name,address\nAcme,Austin\n")
    assert column(db, "SELECT count(*) FROM domain") == [0]


def test_a_row_the_database_refuses_does_not_take_its_neighbours_along(run: Run, db: psycopg.Connection) -> None:
    db.execute("ALTER TABLE domain ADD CONSTRAINT no_b CHECK (domain <> 'b.com')")
    outcomes = told(run("import", "domains", "-", stdin=b"a.com\nb.com\nc.com\n", code=3))
    assert [outcome for outcome, _ in outcomes] == ["added", "invalid", "added"]
    assert "no_b" in outcomes[1][1]


def test_two_imports_of_the_same_rows_at_once_both_end_and_add_each_once(
    db: psycopg.Connection, connect: Connect
) -> None:
    names = [f"a{n}.com" for n in range(3000)]
    counts: list[Counter[str]] = []

    def take(session: psycopg.Connection, file: list[str]) -> None:
        text = io.BytesIO("\n".join(file).encode())
        counts.append(Counter(result.outcome for result in import_file(session, SOURCES["domains"], text)))

    threads = [threading.Thread(target=take, args=[connect(), file]) for file in (names, names[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(counts, Counter()) == {"added": 3000, "duplicate": 3000}
    assert column(db, "SELECT count(*) FROM domain") == [3000]


def test_an_import_report_opened_in_a_spreadsheet_runs_nothing(run: Run) -> None:
    result = run("import", "domains", "-", stdin=b"domain\n=cmd|' /C calc'!A0\n", code=3)
    assert "'=cmd" in result.stdout


EVIL = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", " =1", "'=1", "\uff1d1"]


def test_an_exported_cell_is_never_a_formula_and_a_phone_stays_a_phone(run: Run, db: psycopg.Connection) -> None:
    fill(db)
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO contact (domain_id, email, phone, name) SELECT id, %s, '+15125550100', %s FROM domain",
            [(f"a{n}@example.org", name) for n, name in enumerate(EVIL)],
        )
    exported = run("export", "contacts").stdout
    rows = list(csv.DictReader(io.StringIO(exported, newline="")))
    assert len(rows) == len(EVIL) + 1
    assert [line["name"] for line in rows[:-1]] == [f"'{name}" for name in EVIL]
    assert {line["phone"] for line in rows[:-1]} == {"+15125550100"}
    assert json.loads(run("export", "contacts", "--json").stdout)[0]["name"] == EVIL[0], "JSON is exact"
    assert len(run("export", "contacts", "-f", "jsonl").stdout.splitlines()) == len(EVIL) + 1


def test_an_export_holds_what_was_asked_for(run: Run, db: psycopg.Connection, tmp_path: Path) -> None:
    fill(db)
    db.execute("INSERT INTO contact (domain_id, phone) SELECT id, '+15125550100' FROM domain")
    search = column(db, "SELECT id::text FROM place_search")[0]

    def emails(*filters: str) -> list[str | None]:
        return [contact["email"] for contact in json.loads(run("export", "contacts", "--json", *filters).stdout)]

    assert emails() == ["info@example.org", None]
    assert emails("--with-email") == ["info@example.org"]
    assert emails("--without-email") == [None]
    assert emails("--domain", "EXAMPLE.org", "--search", search, "--since", "2020-01-01") == ["info@example.org", None]
    assert emails("--curation", "selected") == []
    assert emails("--text", "fo@ex") == ["info@example.org"]
    assert emails("--text", "%") == [], "a filter is text, not a pattern"
    run("export", "contacts", "-o", str(tmp_path / "out.csv"))
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3


def test_a_filter_that_means_nothing_is_told_what_would(run: Run) -> None:
    for wrong in (["--curation", "Great"], ["--since", "soon"], ["--search", "1"]):
        with pytest.raises(UserError) as caught:
            run("export", "contacts", *wrong)
        assert caught.value.hint


def test_contacts_can_be_added_shown_changed_listed_and_deleted(run: Run, db: psycopg.Connection) -> None:
    fill(db)
    key = run(
        "contact", "add", "example.org", "--email", "Jo@Example.org", "--phone", "+1 (512) 555-0100"
    ).stdout.strip()
    shown = json.loads(run("contact", "show", "jo@example.org", "--json").stdout)
    assert (shown["id"], shown["phone"], shown["email_type"], shown["domain"]) == (
        *(key, "+15125550100", "corporate", "example.org"),
    )
    run("contact", "edit", key, "--name", "Jo", "--phone", "", "--curation", "maybe")
    assert row(db, f"SELECT name, phone, contact_curation_status FROM contact WHERE id = '{key}'") == (
        "Jo",
        None,
        "Maybe",
    )
    assert "Jo" in run("contact", "show", key).stdout
    listed = json.loads(run("contact", "list", "--curation", "Maybe", "--json").stdout)
    assert [contact["email"] for contact in listed] == ["jo@example.org"]
    with pytest.raises(UserError, match="Nothing was deleted"):
        run("contact", "delete", key, stdin="n\n")
    assert run("contact", "delete", key, "--yes").stdout == "1 deleted\n"
    assert run("contact", "list").stdout.count("@") == 1


NO_CONTACT = [
    (["add", "example.org", "--name", "Nobody"], "needs a way to reach it"),
    (["add", "nowhere.org", "--email", "a@nowhere.org"], "no domain 'nowhere.org'"),
    (["add", "example.org", "--email", "info@example.org"], "has this contact already"),
    (["add", "example.org", "--email", "logo@2x@png"], "no email address"),
    (["add", "example.org", "--phone", "5125550100"], "no international phone number"),
    (["edit", "info@example.org"], "nothing to change"),
    (["edit", "info@example.org", "--email", ""], "needs a way to reach it"),
    (["edit", "info@example.org", "--email", "two@example.org"], "another contact with this email"),
    (["edit", "info@example.org", "--curation", "Great"], "one of"),
    (["show", "nobody@example.org"], "no contact"),
    (["delete", "info@example.org", "nobody@example.org", "--yes"], "no contact"),
]


def test_a_contact_that_cannot_be_is_refused_and_nothing_changes(run: Run, db: psycopg.Connection) -> None:
    fill(db)
    db.execute("INSERT INTO contact (domain_id, email) SELECT domain_id, 'two@example.org' FROM contact LIMIT 1")
    before = db.execute("SELECT * FROM contact").fetchall()
    for arguments, message in NO_CONTACT:
        with pytest.raises(UserError, match=message):
            run("contact", *arguments)
    assert db.execute("SELECT * FROM contact").fetchall() == before


def test_an_email_that_two_domains_have_must_be_named_by_id(run: Run, db: psycopg.Connection) -> None:
    fill(db)
    db.execute("INSERT INTO domain (domain) VALUES ('other.org')")
    db.execute(
        "INSERT INTO contact (domain_id, email) SELECT id, 'info@example.org' FROM domain WHERE domain = 'other.org'"
    )
    with pytest.raises(UserError, match="2 domains have a contact"):
        run("trace", "info@example.org")


def test_a_trace_leads_from_the_contact_back_to_the_search_with_times_and_attempts(
    run: Run, db: psycopg.Connection, connect: Connect
) -> None:
    fill(db)
    db.execute("INSERT INTO sitemap_file (domain_id, url) SELECT id, 'https://example.org/index.xml' FROM domain")
    db.execute(
        "UPDATE sitemap_file AS s SET parent_id = i.id FROM sitemap_file AS i"
        " WHERE i.url LIKE '%%index.xml' AND s.id <> i.id"
    )
    # the deep scan fails twice before it succeeds
    db.execute("SELECT scheduler.alter_workflow('deep_scan', backoff => '0')")
    db.execute("UPDATE place SET status = 'Selected', name = 'Acme', deep_scan_status = 'Queued'")
    for _ in range(2):
        db.execute("SELECT scheduler.fail(c.run, c.keys, '{timeout}', '{f}') FROM scheduler.claim('deep_scan') AS c")
        db.execute("UPDATE scheduler.attempt SET retry_at = now()")
        db.execute("SELECT scheduler.dispatch('deep_scan')")
    db.execute("SELECT scheduler.succeed(c.run) FROM scheduler.claim('deep_scan') AS c")
    db.execute("UPDATE place SET deep_scanned_at = now()")

    steps = json.loads(run("trace", "info@example.org", "--json").stdout)
    assert [step["kind"] for step in steps] == [
        *("place_search", "place", "local_business", "domain", "domain"),
        *("sitemap_file", "sitemap_file", "page", "contact"),
    ]
    place = steps[1]
    assert (place["what"], place["status"], place["attempts"]) == ("Acme", "Completed", 3)
    assert place["done_at"]
    assert place["created_at"]
    assert [step["what"] for step in steps if step["kind"] == "sitemap_file"] == [
        *("https://example.org/index.xml", "https://example.org/sitemap.xml"),
    ]
    assert steps[3]["attempts"] == 0, "its metadata was never fetched"
    assert "plumber in Austin, TX" in run("trace", "info@example.org").stdout
    monitor = connect("scheduler_monitor")
    assert column(monitor, f"SELECT count(*) FROM scheduler.trace('{steps[-1]['id']}')") == [9]


def test_selecting_by_filter_asks_first_and_counts(run: Run, db: psycopg.Connection) -> None:
    places(db, 10)
    with pytest.raises(UserError, match="Nothing was changed"):
        run("select", "place", "--where", "rating >= 3", stdin="n\n")
    counted = json.loads(run("select", "place", "--where", "rating >= 3", "--dry-run", "--json").stdout)
    assert counted == [{"matched": 4, "changed": 4, "again": 0, "unchanged": 0, "in_progress": 0}]
    run("select", "place", "--where", "rating >= 3", "--limit", "3", "--yes")
    assert column(db, "SELECT count(*) FROM place WHERE status = 'Selected'") == [3]
    run("select", "place", "--where", "true", "--as", "Archived", "--yes")
    assert column(db, "SELECT DISTINCT status FROM place") == ["Archived"]
    with pytest.raises(UserError, match="cannot be used"):
        run("select", "place", "--where", "true; DROP TABLE place", "--yes")


@pytest.mark.parametrize(
    "command",
    [
        *(["search"], ["import"], ["export", "contacts"], ["trace"], ["select"], ["schedules", "show"]),
        *(["schedules", "apply"], *(["contact", verb] for verb in ("add", "show", "edit", "delete", "list"))),
    ],
    ids=" ".join,
)
def test_every_command_shows_an_example(command: list[str]) -> None:
    result = CliRunner().invoke(cli.app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example: scrapersky" in result.output.replace("Example: DEEP_SCAN", "Example: scrapersky DEEP_SCAN")


def test_a_package_whose_command_is_broken_does_not_break_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.metadata import EntryPoint

    app = typer.Typer()
    app.command()(lambda: None)
    group = "scrapersky.commands"
    add_commands(
        app,
        [
            EntryPoint("broken", "services.no_such_module:app", group),
            EntryPoint("contact", "services.cli.contact:app", group),
            EntryPoint("trace", "services.cli.trace:trace", group),
        ],
    )
    assert [entry.name for entry in app.registered_groups] == ["contact"]
    assert [entry.name for entry in app.registered_commands] == [None, "trace"]
    assert "broken cannot be loaded" in capsys.readouterr().err
