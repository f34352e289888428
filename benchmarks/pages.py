"""Web pages and sitemaps as large as real ones, made from a seed: the same on every machine."""

import random
from collections.abc import Iterator

_TEXT = """
    water heater repair service quality family owned licensed insured emergency drain cleaning kitchen bathroom remodel
    trusted local experts call today free estimate our team years experience customers satisfaction guarantee pipes
    installation commercial residential leak detection sewer line about privacy terms contact reviews gallery financing
"""
_WORDS = tuple(_TEXT.split())


def page(seed: int) -> bytes:
    """One page; their sizes spread as those of the web do, about 140 KB in the mean, a few of 600 KB and more."""
    dice = random.Random(seed)
    blocks = int(min(700, max(12, dice.lognormvariate(4.3, 0.8))))
    words = [" ".join(dice.choices(_WORDS, k=dice.randint(8, 40))) for _ in range(60)]
    host = f"plumber{seed}.com"
    body = [_block(dice, number, words) for number in range(blocks)]
    return "".join((_head(dice, host, blocks), *body, _footer(dice, host))).encode()


def _head(dice: random.Random, host: str, blocks: int) -> str:
    styles = "".join(
        f".wp-block-{n}{{margin:{n}px auto;padding:0 {n % 7}em;color:#{n:06x}}}" for n in range(blocks * 4)
    )
    script = "".join(f'window.data{n}={{"id":{n},"path":"/wp-content/x{n}.js","on":true}};' for n in range(blocks * 6))
    assets = "".join(
        f'<link rel="stylesheet" href="/wp-content/plugins/p{n}/style.css?ver=6.{n}">'
        f'<script src="/wp-includes/js/s{n}.js"></script>'
        for n in range(20)
    )
    phone = f"(512) 47{dice.randint(2, 9)}-{dice.randint(1000, 9999)}"
    return (
        f'<!doctype html><html lang="en-US"><head><meta charset="utf-8"><title>Plumber of {host}</title>'
        f'<meta name="description" content="The best of {host}"><meta name="generator" content="WordPress 6.4.2">'
        f'<link rel="canonical" href="https://{host}/"><link rel="icon" href="/favicon.png">{assets}'
        f"<style>{styles}</style>"
        '<script type="application/ld+json">{"@context":"https://schema.org","@graph":[{"@type":"Plumber","name":"'
        f'{host}","telephone":"{phone}","email":"office@{host}","sameAs":["https://www.facebook.com/plumber{blocks}"],'
        '"address":{"@type":"PostalAddress","streetAddress":"1 Main St","addressLocality":"Austin"}}]}'
        f"</script><script>{script}</script></head><body><header><nav><ul>"
        + "".join(f'<li><a class="menu-item" href="/{word}/">{word.title()}</a></li>' for word in _WORDS[:25])
        + "</ul></nav></header><main>"
    )


def _block(dice: random.Random, number: int, words: list[str]) -> str:
    text, more = dice.choice(words), dice.choice(words)
    order = f", order {number:08}" if number % 8 == 0 else ""
    return (
        f'<section class="elementor-section elementor-element-{number:06x} wp-block-group" data-id="{number:06x}">'
        f'<div class="elementor-container"><h3 class="title">{text[:40]}</h3><p>{text} <strong>{more[:20]}</strong> and'
        f' <a href="/services/{number}/?ref={number}">{more[:25]}</a>. {more}</p>'
        f'<img src="/wp-content/uploads/{number}.jpg" alt="{text[:30]}" width="640" height="480">'
        f"<ul><li>{text[:50]}</li><li>Since 20{number % 25:02}{order}</li></ul></div></section>"
    )


def _footer(dice: random.Random, host: str) -> str:
    code = "".join(f"{ord(c) ^ 0x42:02x}" for c in f"sales@{host}")
    team = "".join(
        f'<div class="team-member"><h4>Jane Smith{chr(97 + n)}</h4><p class="role">Manager</p>'
        f'<a href="mailto:jane{n}@{host}">write</a> <a href="tel:+1512472{dice.randint(1000, 9999)}">call</a></div>'
        for n in range(dice.randint(0, 4))
    )
    return (
        f"</main><footer>{team}<p>info [at] {host.replace('.', ' [dot] ')} or mail us at hello@{host}, logo@2x.png</p>"
        f'<span class="__cf_email__" data-cfemail="42{code}">[email&#160;protected]</span>'
        '<a href="https://www.instagram.com/plumber/">i</a><p>Phone: 512-473-1234</p></footer></body></html>'
    )


def sitemap(urls: int, size: int) -> Iterator[bytes]:
    """A sitemap of so many addresses, filled up to about so many bytes, in chunks as the network gives them."""
    yield b'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    filling = "x" * max(0, min(1500, size // urls - 160))
    for start in range(0, urls, 100):
        yield "".join(
            f"<url><loc>https://example.test/category-{n % 50}/product-{n}/?ref={filling}</loc>"
            "<lastmod>2026-01-02</lastmod><changefreq>weekly</changefreq><priority>0.5</priority></url>"
            for n in range(start, min(urls, start + 100))
        ).encode()
    yield b"</urlset>"
