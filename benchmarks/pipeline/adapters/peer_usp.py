"""ultimate-sitemap-parser: one call a site, with robots.txt and its list of known paths, as its manual shows."""

import logging
from typing import Any

import lap
from usp.tree import sitemap_tree_for_homepage

logging.disable(logging.CRITICAL)


def sitemaps(town: dict[str, Any]) -> lap.Found:
    found = []
    for site in town["sites"]:
        tree = sitemap_tree_for_homepage(f"{site['root']}/")
        found += [(site["root"], page.url) for page in tree.all_pages()]
    return lap.by_domain(found)


lap.run({"sitemaps": sitemaps})
