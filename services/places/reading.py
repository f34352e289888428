"""Reading JSON that should be as documented and might not be: a field of the wrong type is a field that is absent."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from services.places.records import Address, Json

_CITY = ("locality", "postal_town", "sublocality_level_1", "administrative_area_level_3", "administrative_area_level_2")


def parse(body: bytes) -> Json | None:
    """The object in this body, with nothing inside that PostgreSQL cannot keep; None if it is no JSON object."""
    try:
        value = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return _storable(value) if isinstance(value, dict) else None


def text(value: object) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def number(value: object, low: float, high: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        return None
    return float(value)


def whole(value: object, low: int, high: int) -> int | None:
    found = number(value, low, high)
    return None if found is None else round(found)


def texts(value: object) -> list[str] | None:
    return ([entry for entry in value if isinstance(entry, str)] or None) if isinstance(value, list) else None


def inside(value: object, *names: str) -> Any:
    """value[a][b]…, or None where there is no such thing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def objects(value: object) -> list[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def address_parts(components: Iterable[Mapping[str, Any]], long: str, short: str, whole_address: str | None) -> Address:
    """The parts of an address; `long` and `short` are what the API calls the two forms of a name."""
    named: dict[str, tuple[str | None, str | None]] = {}
    for component in components:
        for kind in texts(component.get("types")) or ():
            named.setdefault(kind, (text(component.get(long)), text(component.get(short))))

    def part(*kinds: str, form: int = 0) -> str | None:
        return next((named[kind][form] for kind in kinds if kind in named and named[kind][form]), None)

    code = part("country", form=1)
    return Address(
        street=_street(part("street_number"), part("route"), whole_address or ""),
        city=part(*_CITY),
        state=part("administrative_area_level_1", form=1),
        postal_code=part("postal_code"),
        country=part("country"),
        country_code=code.upper() if code and len(code) == 2 else None,
    )


def _street(house: str | None, route: str | None, whole_address: str) -> str | None:
    """Before or after the name of the street, as the country has it: the whole address knows."""
    if house and route and f"{route} {house}" in whole_address:
        return f"{route} {house}"
    return " ".join(part for part in (house, route) if part) or None


def _storable(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\x00", "").encode("utf-8", "replace").decode()
        case list():
            return [_storable(entry) for entry in value]
        case dict():
            return {_storable(name): _storable(entry) for name, entry in value.items()}
        case _:
            return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
