"""What a home page says of itself; broken and hostile markup included."""

from typing import Any

import pytest

from services.html import read_page
from services.html.metadata import Metadata, metadata
from services.html.structured import structured, worth_keeping

HEAD = """<title> Joe's &amp;
 Sons </title><meta name=Description content="We plumb"><meta property=og:title content=other>
<link rel=canonical href="/home"><link rel="shortcut icon" href="f.ico"><meta name=generator content="WordPress 6.4.2">
<script src="/wp-content/plugins/elementor/a.js"></script><script src="https://cdn.x/jquery-3.7.1.min.js"></script>"""


def about(head: str, body: str = "", **headers: str) -> Metadata:
    source = f"<html lang=de-AT><head>{head}</head><body>{body}"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return metadata(read_page(source, "https://www.joes.com/x/", named, explain=True))


def test_metadata_with_its_evidence() -> None:
    found = about(HEAD, '<header><img class="logo" src="/l.png"></header>', server="nginx/1.25")
    values: dict[str, Any] = {
        name: one.value if (one := getattr(found, name)) else None
        for name in ("title", "description", "language", "canonical", "favicon", "logo", "generator")
    }
    assert values == {
        "title": "Joe's & Sons",
        "description": "We plumb",
        "language": "de-AT",
        "canonical": "https://www.joes.com/home",
        "favicon": "https://www.joes.com/x/f.ico",
        "logo": "https://www.joes.com/l.png",
        "generator": "WordPress 6.4.2",
    }
    assert found.cms is not None
    assert (found.cms.value.name, found.cms.value.version) == ("WordPress", "6.4.2")
    built = {one.value.name: one.value.version for one in found.technologies}
    assert built == {"WordPress": "6.4.2", "Elementor": None, "jQuery": "3.7.1", "nginx": "1.25"}
    assert found.title is not None
    assert found.title.evidence.where == "title"


@pytest.mark.parametrize(
    ("head", "headers", "cms"),
    [
        ('<link href="/wp-includes/x.css?ver=6.5.1">', {}, ("WordPress", "6.5.1")),
        ('<img src="https://static.wixstatic.com/a.png">', {}, ("Wix", None)),
        ("", {"x_shopid": "1"}, ("Shopify", None)),
        ('<meta name="generator" content="TYPO3 CMS">', {}, ("TYPO3", None)),
        ('<meta name="generator" content="Drupal 10 (https://drupal.org)">', {}, ("Drupal", "10")),
        ('<script src="https://static1.squarespace.com/x.js">', {}, ("Squarespace", None)),
        ("<p>we love wordpress and /wp-content/", {}, None),
    ],
)
def test_the_system_is_known_by_its_marks(head: str, headers: dict[str, str], cms: tuple[str, str] | None) -> None:
    found = about(head, **headers).cms
    assert (found and (found.value.name, found.value.version)) == cms


def test_an_empty_page_says_nothing() -> None:
    found = metadata(read_page(b"", "https://joes.com/"))
    assert (found.title, found.cms, found.technologies, found.structured_data) == (None, None, [], [])


def test_a_cookie_is_never_shown() -> None:
    found = about("", set_cookie="PHPSESSID=secret; path=/")
    assert [one.value.name for one in found.technologies] == ["PHP"]
    assert "secret" not in repr(found)


def test_one_broken_block_loses_no_other() -> None:
    blocks = (
        "{broken",
        '<!-- {"@type":"Person","name":"A","email":"a@joes.com",} -->',
        '//<![CDATA[\n[{"@type":"Plumber","name":"J\\u0000oe\\ud800","telephone":"1","geo":{"latitude":30.1}}]\n//]]>',
        "",
        "[" * 100_000,
    )
    source = "".join(f'<script type="application/ld+json">{block}</script>' for block in blocks)
    found = structured(read_page(source))
    assert [node.types for node in found.nodes] == [("Person",), ("Plumber",), ()]
    assert len(found.refused) == 3
    kept = worth_keeping(found.nodes)
    assert [one["name"] for one in kept] == ["A", "Joe?"]
    assert kept[1]["geo"] == {"latitude": "30.1"}


def test_a_thing_in_a_thing_is_there_once_with_all_that_is_said_of_it() -> None:
    source = (
        '<div itemscope itemtype="https://schema.org/Plumber"><b itemprop=name>Joe</b><p itemprop=address itemscope>'
        '<i itemprop=streetAddress>1 Main St</i></p><a itemprop=email href="mailto:a@joes.com">x</a></div>'
    )
    found = structured(read_page(source)).nodes
    assert [node.types for node in found] == [("Plumber",), ()]
    assert found[0].properties == {"name": ["Joe"], "address": [found[1]], "email": ["mailto:a@joes.com"]}
    assert found[1].properties == {"streetAddress": ["1 Main St"]}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("<script>no</script>a<script src=x></script><b>b</b>", ["a", "b"]),
        ("<script src=x></script><div>a</div><style>no</style>b", ["a", "b"]),
        ("<svg><title>no</title></svg>a<svg><title>no<p>b</p>no</title></svg>c", ["a", "b", "c"]),
        ("<svg><style>no<g>b</g>no<hr></style></svg>c", ["b", "c"]),
        ("<p>a<b>b</b></p><b>c</b>d<b><p>e</p>f</b>", ["ab", "cd", "e", "f"]),
        ("<p>a\uff20b.com<p>c\u00add\u2011e\u00a0f", ["a@b.com", "cd-e f"]),
    ],
)
def test_only_what_is_read_is_text(source: str, lines: list[str]) -> None:
    assert [line for line in read_page(source).text.whole.split("\n") if line] == lines


def test_inline_elements_run_on_and_blocks_do_not() -> None:
    source = "<p>a<b>b</b><!-- x -->c</p>d<div>e<br>f<script>no</script>g</div><script src=x></script>h<td>i</td>"
    assert read_page(source).text.whole.split() == ["abc", "d", "e", "f", "g", "hi"]  # a <td> outside a table is none
