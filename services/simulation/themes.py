"""What systems that make websites wrap around a text: as large as real pages, and as full of noise.

The frame of a system is made once and shared by all its pages. Nothing in a frame is a contact.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape

MENU = ("about-us", "contact", "our-team", "services/drain-cleaning", "reviews", "financing", "blog", "privacy-policy")
_TEXT = """
    water heater repair service quality family owned licensed insured emergency drain cleaning kitchen bathroom remodel
    trusted local experts call today free estimate our team years experience customers satisfaction guarantee pipes
    installation commercial residential leak detection sewer line reviews gallery financing
"""
_FILLING = tuple(_TEXT.split())


@dataclass(frozen=True)
class Frame:
    """What stands before the title, between title and text, and after the text."""

    doctype: str
    head: str
    foot: str
    kilobytes: int
    """Of filling text and pictures around what the page says, about."""


Theme = Callable[[], Frame]


def render(theme: Theme, title: str, body: str, seed: int, *, language: str = "en-US") -> bytes:
    """A whole page; its filling differs from page to page."""
    frame = theme()
    chance = random.Random(seed)  # noqa: S311 - a repeatable page, not a secret
    menu = "".join(
        f'<li><a href="/{path}/">{path.rpartition("/")[2].replace("-", " ").title()}</a></li>' for path in MENU
    )
    filling = _filling(theme, seed % 8)
    before = chance.randint(1, len(filling) - 1)
    return (
        f'{frame.doctype}<html lang="{language}"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="description" content="{escape(title)} - licensed plumbers">{frame.head}</head><body>'
        f'<nav><ul><li><a href="/">Home</a></li>{menu}</ul></nav>{"".join(filling[:before])}'
        f"<main>{body}</main>{''.join(filling[before:])}{frame.foot}</body></html>"
    ).encode()


@cache
def wordpress() -> Frame:
    assets = "".join(
        f'<link rel="stylesheet" href="/wp-content/plugins/plugin-{n}/css/style.min.css?ver=3.{n}.1">'
        f'<script src="/wp-includes/js/dist/part{n}.min.js?ver=6.6.2" id="wp-{n}-js"></script>'
        for n in range(24)
    )
    head = (
        '<meta name="generator" content="WordPress 6.6.2"><meta name="generator" content="Elementor 3.24.7; settings:'
        ' css_print_method-external"><link rel="https://api.w.org/" href="/wp-json/">'
        f"{assets}<style>{_styles('wp-block', 320)}</style>"
        '<script>window._wpemojiSettings={"baseUrl":"https:\\/\\/s.w.org\\/images\\/core\\/emoji\\/15.0.3\\/72x72\\/",'
        '"source":{"concatemoji":"wp-emoji-release.min.js?ver=6.6.2"}};</script>'
        '<script async src="https://www.googletagmanager.com/gtag/js?id=G-5124410001"></script>'
    )
    foot = (
        '<footer class="site-footer"><p>&copy; 2026 · Open Monday to Friday, 8 to 17 · License M-41234</p></footer>'
        f"<script>var frontend={{{_pairs(260)}}};</script>"
    )
    return Frame("<!DOCTYPE html>\n", head, foot, 70)


@cache
def wix() -> Frame:
    warmup = ",".join(
        f'"comp-{n:08x}":{{"type":"WRichText","id":"{n * 7919:032x}","x":{n},"pageId":"c1dmp","w":[5124410{n:03},2]}}'
        for n in range(520)
    )
    head = (
        '<meta name="generator" content="Wix.com Website Builder"><link rel="preconnect" href="https://static.wixstatic.com">'
        '<script src="https://static.parastorage.com/services/wix-thunderbolt/dist/main.4a1f2b3c.bundle.min.js"></script>'
        f"<style>{_styles('comp', 260)}</style>"
        '<script>window.sentryDsn="https://831126cb46b74583bf6f72c5061cba9d@sentry-viewer.wixpress.com/4";</script>'
    )
    foot = (
        f'<script type="application/json" id="wix-warmup-data">{{"pages":{{{warmup}}}}}</script>'
        '<div id="SITE_FOOTER"><span>©2026 Proudly created with Wix.com</span></div>'
    )
    return Frame("<!DOCTYPE html>", head, foot, 40)


@cache
def squarespace() -> Frame:
    head = (
        "<!-- This is Squarespace. --><link rel='stylesheet' href='https://static1.squarespace.com/static/site.css'>"
        '<script src="https://assets.squarespace.com/universal/scripts-compressed/common-abc.js"></script>'
        f"<script>Static.SQUARESPACE_CONTEXT = {{{_pairs(420)}}};</script><style>{_styles('sqs-block', 180)}</style>"
    )
    return Frame("<!doctype html>", head, "<footer id='footer-sections'><p>Powered by Squarespace</p></footer>", 50)


@cache
def shopify() -> Frame:
    products = ",".join(
        f'{{"id":{7_000_000_000_000 + n},"sku":"512-441-{n:04}","barcode":"978123456{n:04}","price":{n * 10}}}'
        for n in range(300)
    )
    head = (
        '<link rel="preconnect" href="https://cdn.shopify.com"><script src="https://cdn.shopify.com/s/trekkie.storefront.js">'
        '</script><link rel="stylesheet" href="/cdn/shop/t/5/assets/base.css?v=5124410002">'
        '<script>var Shopify = Shopify || {}; Shopify.shop = "the-shop.myshopify.com"; Shopify.theme = {"id":512441};'
        f"</script><style>{_styles('shopify-section', 160)}</style>"
    )
    return Frame(
        "<!doctype html>", head, f'<script>var meta = {{"products":[{products}]}};</script><footer>Shop</footer>', 60
    )


@cache
def by_hand() -> Frame:
    """No doctype, tags that nobody closes, layout by tables."""
    head = (
        '<META NAME="GENERATOR" CONTENT="Microsoft FrontPage 4.0"><BASEFONT FACE="Verdana"><link rel=icon href=i.ico>'
    )
    foot = (
        "<TABLE BORDER=0><TR><TD><FONT SIZE=1>Best viewed at 800x600<TD>Visitors: 0051244<TR><TD>Since 1987</TABLE><P>"
    )
    return Frame("", head, foot, 6)


THEMES: tuple[Theme, ...] = (wordpress, by_hand, wix, squarespace, shopify)


@cache
def _filling(theme: Theme, which: int) -> tuple[str, ...]:
    chance = random.Random(which)  # noqa: S311 - a repeatable page, not a secret
    blocks: list[str] = []
    size = 0
    while len(blocks) < 2 or size < theme().kilobytes * 1024:
        words = " ".join(chance.choices(_FILLING, k=chance.randint(12, 45)))
        number = len(blocks)
        block = (
            f'<section class="section el-{number:05x}" data-id="{number:07x}"><div class="row"><h3>{words[:40]}</h3>'
            f'<p>{words} <strong>{words[:20]}</strong> <a href="/services/{number}/?ref={number}">{words[:22]}</a>.</p>'
            f'<img src="/wp-content/uploads/2025/{number:02}/img-{number}@2x.jpg" width="640" height="480" alt="">'
            f"<ul><li>Since 20{number % 25:02}</li><li>{words[:50]}</li></ul></div></section>"
        )
        blocks.append(block)
        size += len(block)
    return tuple(blocks)


def _styles(name: str, rules: int) -> str:
    return "".join(
        f".{name}-{n}{{margin:{n}px auto;padding:0 {n % 7}em;color:#{n:06x};background:url(/img/b{n}@2x.png)}}"
        for n in range(rules)
    )


def _pairs(count: int) -> str:
    return ",".join(
        f'"key{n}":{{"id":{5_124_410_000 + n},"hash":"{n * 104_729:040x}","on":true}}' for n in range(count)
    )
