"""Social profiles: links to a network that lead to somebody, not to a share button, a login or a single post."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from services.websites import site_of

_ANY = r"[^/?#\s]{1,100}"


@dataclass(frozen=True, slots=True)
class Network:
    name: str
    sites: tuple[str, ...]
    """Registrable domains."""
    profile: str
    """A pattern of the path, without slashes at its ends."""
    reserved: frozenset[str] = frozenset()
    """First parts of paths that are nobody's."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NETWORKS: tuple[Network, ...] = (
    Network(
        "facebook",
        ("facebook.com", "fb.com", "fb.me"),
        rf"(?:(?:pages|people)/{_ANY}/\d+|pg/{_ANY}|groups/{_ANY}|profile\.php|{_ANY})",
        _words(
            "sharer sharer.php share share.php plugins dialog login login.php tr l.php events hashtag photo photo.php"
            " photos watch story.php help privacy policies policy terms ads business legal settings home.php intent"
            " video media marketplace gaming groups pages people pg permalink.php v2.0 v3.0 2008"
        ),
    ),
    Network(
        "instagram",
        ("instagram.com", "instagr.am"),
        _ANY,
        _words("p reel reels explore accounts stories tv share direct about legal developer web"),
    ),
    Network(
        "twitter",
        ("twitter.com", "x.com"),
        _ANY,
        _words("share intent home hashtag search i login signup tos privacy settings widgets about en explore oauth"),
    ),
    Network("linkedin", ("linkedin.com",), rf"(?:company|in|school|showcase|pub)/{_ANY}(?:/(?:about|posts))?"),
    Network(
        "youtube",
        ("youtube.com",),
        rf"(?:(?:channel|c|user)/{_ANY}|@{_ANY}|[A-Za-z0-9_.-]{{3,60}})",
        _words(
            "watch embed playlist results shorts feed redirect t about live hashtag premium iframe_api player_api v"
        ),
    ),
    Network("tiktok", ("tiktok.com",), rf"@{_ANY}"),
    Network(
        "pinterest",
        ("pinterest.com", "pinterest.de", "pinterest.co.uk", "pinterest.fr"),
        _ANY,
        _words("pin search login"),
    ),
    Network("xing", ("xing.com",), rf"(?:companies|profile|pages)/{_ANY}"),
    Network(
        "vimeo", ("vimeo.com",), r"[A-Za-z][^/?#\s]{1,60}", _words("share categories watch blog log_in join features")
    ),
    Network("threads", ("threads.net", "threads.com"), rf"@{_ANY}"),
    Network("bluesky", ("bsky.app",), rf"profile/{_ANY}"),
    Network("snapchat", ("snapchat.com",), rf"add/{_ANY}"),
    Network("whatsapp", ("wa.me",), r"\+?\d{7,15}"),
    Network("telegram", ("t.me", "telegram.me"), _ANY, _words("share iv joinchat s")),
    Network("yelp", ("yelp.com", "yelp.de", "yelp.co.uk", "yelp.fr", "yelp.ca"), rf"biz/{_ANY}"),
    Network(
        "tripadvisor",
        ("tripadvisor.com", "tripadvisor.de", "tripadvisor.co.uk"),
        rf"(?:Hotel|Restaurant|Attraction)_Review-{_ANY}",
    ),
)
_BY_SITE: Mapping[str, Network] = {site: network for network in NETWORKS for site in network.sites}
_HINT = re.compile("|".join(re.escape(site) for site in _BY_SITE), re.IGNORECASE)


class NoProfileError(ValueError):
    """A link into a network that is nobody's profile; the text says why."""


def profile(url: str) -> tuple[str, str] | None:
    """(network, profile as stored); None for links elsewhere; raises NoProfileError for what is no profile."""
    if len(url) > 2048 or not _HINT.search(url):
        return None
    network = _BY_SITE.get(site_of(url) or "")
    if network is None:
        return None
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
    except ValueError:
        return None
    host = (parts.hostname or "").removeprefix("www.")
    path = "".join(mark for mark in unquote(parts.path) if mark.isprintable()).strip("/")
    first = path.partition("/")[0].lower()
    if not path:
        raise NoProfileError(f"the front page of {network.name}")
    if first in network.reserved and not re.fullmatch(rf"(?:groups|pages|people|pg)/{_ANY}(?:/\d+)?", path):
        raise NoProfileError(f"/{first} of {network.name} is nobody's profile")
    if not re.fullmatch(network.profile, path):
        raise NoProfileError(f"not the shape of a profile on {network.name}")
    query = f"?{parts.query}" if path == "profile.php" and parts.query.startswith("id=") else ""
    if path == "profile.php" and not query:
        raise NoProfileError("a profile without an id")
    host = host if network.name == "whatsapp" or host not in _MOBILE else _MOBILE[host]
    return network.name, f"https://{host}/{path}{query}"


_MOBILE = {
    "m.facebook.com": "facebook.com", "fb.com": "facebook.com", "fb.me": "facebook.com", "x.com": "x.com",
    "mobile.twitter.com": "twitter.com", "m.youtube.com": "youtube.com", "de-de.facebook.com": "facebook.com",
}  # fmt: skip
