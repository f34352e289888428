"""Bytes become the text a browser would show."""

import codecs

import httpx
import pytest

from services.fetch import Fetched

META = '<meta charset="{}"><p>Grüße'
HTTP_EQUIV = '<META http-equiv="Content-Type" content="text/html; charset={}"><p>Grüße'


def fetched(body: bytes, content_type: str = "text/html") -> Fetched:
    return Fetched("http://a.test/", "http://a.test/", 200, httpx.Headers({"content-type": content_type}), body, 1.0)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html; charset=utf-8", "Grüße".encode()),
        ("text/html; charset=UTF-8", META.format("iso-8859-1").encode()),  # the header comes before the page
        ("text/html; charset='latin-1'", "Grüße".encode("latin-1")),
        ("text/html; charset=nonsense", "Grüße".encode()),
        ("text/html; charset=utf-7", "Grüße".encode()),
        ("text/html; charset=rot13", "Grüße".encode()),
        ("text/html; charset=utf-8", codecs.BOM_UTF16_LE + "Grüße".encode("utf-16-le")),  # a mark comes before all
        ("text/html; charset=latin-1", codecs.BOM_UTF8 + "Grüße".encode()),
        ("text/html", codecs.BOM_UTF16_BE + "Grüße".encode("utf-16-be")),
        ("text/html", META.format("windows-1252").encode("cp1252")),
        ("text/html", HTTP_EQUIV.format("ISO-8859-15").encode("iso-8859-15")),
        ("text/html", META.format("utf-16").encode()),
        ("text/xml", '<?xml version="1.0" encoding="ISO-8859-1"?><p>Grüße'.encode("latin-1")),
        ("", "Grüße".encode()),
        ("", "Grüße".encode("cp1252")),
        ("text/html", "Gr\x00üße".encode()),
    ],
)
def test_umlauts_survive_however_the_page_says_its_charset(content_type: str, body: bytes) -> None:
    assert fetched(body, content_type).text().endswith("Grüße")


@pytest.mark.parametrize(
    ("charset", "text"),
    [("shift_jis", "①髙"), ("gb2312", "镕"), ("euc-kr", "똠"), ("iso-8859-1", "€“”"), ("tis-620", "“ไทย")],
)
def test_the_names_of_charsets_mean_what_they_mean_to_browsers(charset: str, text: str) -> None:
    wider = {"shift_jis": "cp932", "gb2312": "gb18030", "euc-kr": "cp949", "iso-8859-1": "cp1252", "tis-620": "cp874"}
    assert fetched(text.encode(wider[charset]), f"text/html; charset={charset}").text() == text


def test_no_bytes_break_the_reading_or_the_database() -> None:
    text = fetched(bytes(range(256)) * 10, "text/html; charset=utf-8").text()
    assert "\x00" not in text
    assert text.encode()


def test_a_character_cut_in_two_does_not_change_the_charset() -> None:
    page = fetched("Grüße und ü".encode()[:-1])
    assert page.charset == "utf-8"
    assert page.text().startswith("Grüße und")


def test_the_kind_of_document_is_told_without_its_trimmings() -> None:
    assert fetched(b"", "Text/HTML ; Charset=x").media_type == "text/html"
    assert fetched(b"", "").media_type == ""
