"""extruct: JSON-LD, microdata and microformats of pages that were fetched before; nothing else is its job."""

import json
import re
from typing import Any

import extruct
import lap

EMAIL = re.compile(r'"(?:email|u-email)": (?:\[)?"(?:mailto:)?([^"?]+@[^"?]+)')
_sources: dict[str, bytes] = {}


def _prepare(_: str, town: dict[str, Any]) -> None:
    _sources.update(lap.sources(town))


def parse(_: dict[str, Any]) -> lap.Found:
    found = []
    for url, body in _sources.items():
        data = extruct.extract(
            body.decode(), base_url=url, syntaxes=["json-ld", "microdata", "microformat"], errors="ignore"
        )
        found += [(url, email.lower()) for email in EMAIL.findall(json.dumps(data))]
    return lap.by_domain(found)


lap.run({"parse": parse}, _prepare)
