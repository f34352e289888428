"""What a site is built with: an own small table of marks that these systems leave on every page."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from services.evidence import Evidence, Found
from services.html.page import Page

VERSION = r"[ /]*v?(\d{1,4}(?:\.\d{1,4}){0,3})?"


@dataclass(frozen=True, slots=True)
class System:
    name: str
    is_cms: bool = False
    generator: str = ""
    """How its generator tag begins; a version may follow."""
    paths: tuple[str, ...] = ()
    """Parts of the addresses of scripts, styles, images and links."""
    header: tuple[str, str] | None = None
    """A response header, and a part of its value."""
    cookie: str = ""
    version_path: str = ""
    """A pattern over those addresses whose group is the version."""


SYSTEMS: tuple[System, ...] = (
    System(
        "WordPress",
        True,
        "WordPress",
        ("/wp-content/", "/wp-includes/", "/wp-json"),
        ("x-pingback", "xmlrpc.php"),
        "wordpress_",
        r"/wp-includes/[^?\s]{1,120}\?ver=(\d\.\d{1,2}(?:\.\d{1,2})?)\b",
    ),
    System("Elementor", generator="Elementor", paths=("/plugins/elementor/", "/plugins/elementor-pro/")),
    System("Divi", generator="Divi", paths=("/themes/Divi/",)),
    System(
        "WooCommerce",
        generator="WooCommerce",
        paths=("/plugins/woocommerce/",),
        cookie="woocommerce_",
        version_path=r"/plugins/woocommerce/[^?\s]{1,120}\?ver=(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)\b",
    ),
    System("Yoast SEO", generator="Yoast SEO", paths=("/plugins/wordpress-seo/",)),
    System("WP Rocket", paths=("/plugins/wp-rocket/", "/cache/min/")),
    System("Wix", True, "Wix.com", ("static.wixstatic.com", "static.parastorage.com"), ("x-wix-request-id", "")),
    System(
        "Squarespace",
        True,
        "Squarespace",
        ("static1.squarespace.com", "assets.squarespace.com"),
        ("server", "Squarespace"),
    ),
    System("Shopify", True, "Shopify", ("cdn.shopify.com", "/cdn/shop/"), ("x-shopid", ""), "_shopify_"),
    System(
        "Webflow",
        True,
        "Webflow",
        ("assets.website-files.com", "cdn.prod.website-files.com", "uploads-ssl.webflow.com"),
    ),
    System("Weebly", True, "Weebly", ("cdn2.editmysite.com", "weebly.com/")),
    System("GoDaddy Website Builder", True, "Go Daddy Website Builder", ("img1.wsimg.com",)),
    System("Duda", True, "Duda", ("irp.cdn-website.com", "lirp.cdn-website.com", "static.cdn-website.com")),
    System("Jimdo", True, "Jimdo", ("assets.jimstatic.com", "u.jimcdn.com", "jimdo.com/")),
    System("Joomla", True, "Joomla!", ("/media/jui/", "/components/com_", "/media/system/js/")),
    System("Drupal", True, "Drupal", ("/sites/default/files/", "/core/misc/drupal.js"), ("x-drupal-cache", "")),
    System("TYPO3", True, "TYPO3", ("/typo3temp/", "/typo3conf/", "/fileadmin/")),
    System("Contao", True, "Contao", ("/bundles/contaocore/",)),
    System("Ghost", True, "Ghost", ("/ghost/api/", "ghost.io/")),
    System("Magento", True, "Magento", ("/static/version", "/mage/"), ("x-magento-tags", "")),
    System("PrestaShop", True, "PrestaShop", ("/modules/ps_",), cookie="PrestaShop-"),
    System("HubSpot CMS", True, "HubSpot", ("/hs-fs/", "hs-scripts.com"), ("x-hs-hub-id", "")),
    System("Blogger", True, "Blogger", ("www.blogger.com/static", "blogger.googleusercontent.com")),
    System("Hugo", True, "Hugo"),
    System("Jekyll", True, "Jekyll"),
    System("Next.js", generator="Next.js", paths=("/_next/static/",), header=("x-powered-by", "Next.js")),
    System("Nuxt", paths=("/_nuxt/",)),
    System("Gatsby", generator="Gatsby", paths=("/page-data/app-data.json",)),
    System("React", paths=("react.production.min.js", "react-dom.production.min.js", "/react-dom@")),
    System(
        "jQuery", paths=("jquery.min.js", "jquery.js", "/jquery-"), version_path=r"jquery[-/@](\d\.\d{1,2}\.\d{1,2})\b"
    ),
    System(
        "Bootstrap",
        paths=("bootstrap.min.css", "bootstrap.min.js", "bootstrap.bundle"),
        version_path=r"bootstrap[/@](\d\.\d{1,2}\.\d{1,2})\b",
    ),
    System("Google Tag Manager", paths=("googletagmanager.com/gtm.js", "googletagmanager.com/ns.html")),
    System("Google Analytics", paths=("google-analytics.com/", "googletagmanager.com/gtag/js")),
    System("Meta Pixel", paths=("connect.facebook.net/", "facebook.com/tr?")),
    System("Google reCAPTCHA", paths=("google.com/recaptcha/", "gstatic.com/recaptcha/")),
    System("Cloudflare", paths=("/cdn-cgi/",), header=("server", "cloudflare"), cookie="__cf_bm"),
    System("PHP", header=("x-powered-by", "PHP"), cookie="PHPSESSID"),
    System("ASP.NET", header=("x-aspnet-version", ""), cookie="ASP.NET_SessionId"),
    System("nginx", header=("server", "nginx")),
    System("Apache", header=("server", "Apache")),
)

_ADDRESSES = "script[src],link[href],img[src],iframe[src],source[src]"


@dataclass(frozen=True, slots=True)
class Technology:
    name: str
    version: str | None
    is_cms: bool


def technologies(page: Page) -> list[Found[Technology]]:
    """What the page shows to be built with, in the order of the table."""
    addresses = _addresses(page)
    generators = _generators(page)
    found = []
    for system in SYSTEMS:
        if evidence := _evidence(system, addresses, generators, page.headers):
            version = _version(system, addresses, generators, page.headers)
            found.append(Found(Technology(system.name, version, system.is_cms), evidence))
    return found


def _addresses(page: Page) -> str:
    parts = []
    for node in islice(page.tree.css(_ADDRESSES), 1000):
        attributes = node.attributes
        parts.append((attributes.get("src") or attributes.get("href") or "")[:300])
    return "\n".join(parts)


def _generators(page: Page) -> list[str]:
    nodes = page.tree.css('meta[name="generator" i]')
    return [content for node in islice(nodes, 10) if (content := (node.attributes.get("content") or "").strip()[:200])]


def _evidence(system: System, addresses: str, generators: list[str], headers: Mapping[str, str]) -> Evidence | None:
    for generator in generators:
        if system.generator and generator.lower().startswith(system.generator.lower()):
            return Evidence("generator", 'meta[name="generator"]', generator)
    for path in system.paths:
        if (at := addresses.find(path)) >= 0:
            start = addresses.rfind("\n", 0, at) + 1
            return Evidence("address", path, addresses[start : start + 200].partition("\n")[0])
    if system.header:
        name, part = system.header
        if (value := headers.get(name)) is not None and part.lower() in value.lower():
            return Evidence("header", name, value[:100])
    if system.cookie and system.cookie in headers.get("set-cookie", ""):
        # never the cookie itself: it may be a session
        return Evidence("cookie", "set-cookie", system.cookie)
    return None


def _version(system: System, addresses: str, generators: list[str], headers: Mapping[str, str]) -> str | None:
    for generator in generators:
        match = re.match(re.escape(system.generator) + VERSION, generator, re.IGNORECASE) if system.generator else None
        if match and match[1]:
            return match[1]
    if system.version_path and (match := re.search(system.version_path, addresses)):
        return match[1]
    if system.header and system.header[1] and (value := headers.get(system.header[0])):
        match = re.search(re.escape(system.header[1]) + VERSION, value, re.IGNORECASE)
        return match[1] if match else None
    return None
