"""How the fetcher behaves, from FETCH_* in the environment and `.env`."""

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from listener import __version__
from services.fetch.replay import Replay, parse
from services.settings import PipelineSettings

MEBIBYTE = 1024 * 1024


class FetchSettings(PipelineSettings):
    """Give it as `Workflow(settings=FetchSettings)`, or a subclass, so that it is checked when the listener starts."""

    model_config = SettingsConfigDict(env_prefix="FETCH_")

    user_agent: str = f"ScraperSky/{__version__}"
    """Sent with every request; robots.txt is asked for the part before the slash. Add how to reach you."""
    robots: bool = True
    """Respect robots.txt."""
    allow_private: bool = False
    """Fetch from private and loopback addresses too. For a network of your own only."""
    ports: Annotated[tuple[int, ...], NoDecode] = (80, 443)
    """Ports that are fetched from, separated by commas."""
    replay: Annotated[tuple[Replay, ...], NoDecode] = ()
    """Hosts served from elsewhere: `*.example.test:443=127.0.0.1:8123, …`. See services.fetch.replay."""
    proxy_url: str | None = None
    """An HTTP proxy for all fetches. Names are checked here as always, but the proxy looks them up once more: it must
    keep inside addresses out itself. HTTP_PROXY and its kin are ignored."""
    ca_file: Path | None = None
    """Certificates to trust beside the usual ones."""
    concurrency: int = Field(default=100, ge=1, le=10_000)
    """Most fetches at the same time in this process."""
    host_concurrency: int = Field(default=2, ge=1, le=100)
    """Most at the same time to one host."""
    host_seconds: float = Field(default=1.0, ge=0, le=3600)
    """From one request to the next to the same host, if its robots.txt does not ask for more."""
    crawl_delay_seconds: float = Field(default=30.0, ge=0, le=3600)
    """The longest crawl delay of a robots.txt that is followed to the second."""
    patience_seconds: float = Field(default=30.0, ge=0, le=3600)
    """The longest wait for a host's turn; beyond it the item is put off, which spends no attempt. Keep it above the
    crawl delay that is followed, or whoever reads several pages of one host never gets to the second."""
    connect_seconds: float = Field(default=10.0, gt=0, le=600)
    """For reaching a host, TLS included."""
    read_seconds: float = Field(default=15.0, gt=0, le=600)
    """From one piece of an answer to the next."""
    total_seconds: float = Field(default=45.0, gt=0, le=3600)
    """For one answer from the look-up of its name to its last byte, redirects included; waiting for turns is not."""
    redirects: int = Field(default=5, ge=0, le=20)
    """Most of them that are followed for one page."""
    body_bytes: int = Field(default=10 * MEBIBYTE, ge=1024, le=1024 * MEBIBYTE)
    """The largest body, counted after decompression, where a caller names no limit of its own."""
    ratio: int = Field(default=200, ge=10, le=2000)
    """How many times larger than sent a compressed body may become."""
    robots_hours: float = Field(default=24.0, gt=0, le=168)
    """How long a robots.txt is believed."""

    @field_validator("ports", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("ports")
    @classmethod
    def _are_ports(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or not all(0 < port < 65536 for port in value):
            raise ValueError("ports are numbers from 1 to 65535, separated by commas, such as 80,443")
        return value

    @field_validator("replay", mode="before")
    @classmethod
    def _parsed(cls, value: Any) -> Any:
        return parse(value) if isinstance(value, str) else value

    @field_validator("user_agent")
    @classmethod
    def _has_a_name(cls, value: str) -> str:
        if not re.match(r"[A-Za-z_-]+(/|\s|$)", value) or not value.isascii() or not value.isprintable():
            raise ValueError("begin with a name of letters, - and _, such as ScraperSky/1.0 (+https://example.org/bot)")
        return value

    @field_validator("proxy_url")
    @classmethod
    def _is_proxy(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"https?://[^/\s]+/?$", value):
            raise ValueError("a proxy is written http://host:port or http://user:password@host:port")
        return value

    @field_validator("ca_file")
    @classmethod
    def _exists(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError("there is no such file")
        return value

    @property
    def robot(self) -> str:
        """Our name in robots.txt."""
        return re.split(r"[/\s]", self.user_agent, maxsplit=1)[0]
