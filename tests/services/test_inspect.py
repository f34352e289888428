"""`scrapersky inspect`: what a person sees must be what the workflows would store."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from listener.errors import UserError
from services.cli.inspect import app
from services.inspection import page as inspected_page
from services.inspection import sitemap
from tests.services.site import page, site


def inspect(*arguments: str) -> Any:
    done = CliRunner().invoke(app, arguments)
    if done.exception is not None:
        raise done.exception
    return json.loads(done.stdout)


def test_a_website() -> None:
    found = inspect("website", "HTTPS://www.Müller.de/x")
    assert (found["domain"], found["shown"]) == ("xn--mller-kva.de", "müller.de")
    found = inspect("website", "https://facebook.com/joes")
    assert (found["domain"], found["kind"]) == (None, "platform")
    assert "social network" in found["reason"]


def test_a_saved_page_with_evidence_and_refusals(tmp_path: Path) -> None:
    path = tmp_path / "contact.html"
    path.write_text('<title>Hi</title><p id=c><a href="mailto:Ann@joes.de">x</a> no-reply@joes.de Tel 030 901820')
    found = inspect("page", str(path), "--url", "https://joes.de/kontakt")
    (ann, phone) = found["contacts"]
    assert (ann["email"], ann["email_type"], phone["phone"]) == ("ann@joes.de", "corporate", "+4930901820")
    assert ann["evidence"][0] == {
        "rule": "mailto", "where": "p#c > a:nth-of-type(1)", "snippet": "x no-reply@joes.de Tel 030 901820",
    }  # fmt: skip
    assert found["metadata"]["title"] == {"value": "Hi", "evidence": {"rule": "element", "where": "title"}}
    assert [(one["value"], one["reason"]) for one in found["refused"]] == [
        ("no-reply@joes.de", "nobody reads it: a no-reply address")
    ]
    assert found["category"]["category"] == "contact"


def test_a_saved_sitemap(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"  # a gzip file whatever it is called
    path.write_bytes(gzip.compress(b"https://joes.de/kontakt\nhttps://joes.de/x.jpg\nhttps://evil.de/"))
    found = inspect("sitemap", str(path), "--url", "https://joes.de/sitemap.xml")
    assert (found["format"], found["gzip"], found["url_count"], found["note"]) == (
        "text", True, 3, "1 dropped: on another site",
    )  # fmt: skip
    assert [(one["category"], one["page_processing_status"]) for one in found["pages"]] == [
        ("contact", "Queued"), ("media", "Filtered"),
    ]  # fmt: skip
    path.write_text("<!doctype html><html>")
    assert inspect("sitemap", str(path)) == {"url": "", "sitemap": False, "reason": "an HTML page"}


def test_a_saved_robots_txt(tmp_path: Path) -> None:
    path = tmp_path / "robots.txt"
    path.write_text("User-agent: *\nDisallow: /private\nCrawl-delay: 3\nSitemap: https://joes.de/s.xml")
    found = inspect("robots", str(path), "--url", "https://joes.de/private/x")
    assert found["allows"] == {"https://joes.de/private/x": False}
    assert (found["crawl_delay"], found["sitemaps"]) == (3.0, ["https://joes.de/s.xml"])


async def test_a_url_is_fetched_with_all_manners(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    async with site({"/s.xml": page("<urlset><url><loc>/contact</loc></url></urlset>")}) as web:
        monkeypatch.setenv("FETCH_REPLAY", f"*.test=127.0.0.1:{web.port}")
        monkeypatch.setenv("FETCH_HOST_SECONDS", "0")
        found = await asyncio.to_thread(sitemap, "https://joes.test/s.xml")
        assert [one["url"] for one in found["pages"]] == ["https://joes.test/contact"]
        assert web.paths == ["/robots.txt", "/s.xml"]
        with pytest.raises(UserError, match="was not fetched: HTTP 404"):
            await asyncio.to_thread(sitemap, "https://joes.test/none.xml")


def test_what_is_neither_file_nor_url_is_refused() -> None:
    with pytest.raises(UserError, match="There is no file 'nonsense', and it is no URL"):
        inspect("page", "nonsense")


def test_a_mistyped_file_or_option_is_told_and_not_looked_up_in_dns(tmp_path: Path) -> None:
    for wrong in ("contact.html", str(tmp_path), ""):
        with pytest.raises(UserError, match="There is no file"):
            inspect("page", wrong)
    path = tmp_path / "p.html"
    path.write_text("<p>hello")
    with pytest.raises(UserError, match="--country cannot be 'XX'"):
        inspect("page", str(path), "--country", "XX")
    with pytest.raises(UserError, match="garbage cannot be fetched"):
        inspect("page", str(path), "--url", "garbage")


def test_a_file_alone_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    path.write_text(
        "<urlset><url><loc>https://joes.de/kontakt</loc></url><url><loc>https://a.com/x</loc></url></urlset>"
    )
    found = inspect("sitemap", str(path))
    assert (found["site"], [one["url"] for one in found["pages"]]) == ("joes.de", ["https://joes.de/kontakt"])
    assert found["refused"] == [{"value": "https://a.com/x", "reason": "on another site (a.com)"}]
    path.write_text("User-agent: *\nCrawl-delay: 3")
    assert inspect("robots", str(path))["crawl_delay"] == 3.0
    path.write_text("<!doctype html>")
    assert "HTML page" in inspect("robots", str(path))["reason"]


async def test_what_is_no_html_says_that_it_would_be_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    async with site({"/x": page("%PDF", content_type="application/pdf")}) as web:
        monkeypatch.setenv("FETCH_REPLAY", f"*.test=127.0.0.1:{web.port}")
        monkeypatch.setenv("FETCH_HOST_SECONDS", "0")
        found = await asyncio.to_thread(inspected_page, "https://joes.test/x")
    assert found["filtered"] == "not HTML: application/pdf"
