"""Settings: all that is wrong is said at once, a misspelt or retired name is not ignored, no secret is repeated."""

from pathlib import Path
from typing import Annotated, Any

import pytest
from dotenv import dotenv_values
from pydantic import field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from listener import Workflow
from listener.discover import discover
from listener.errors import UserError
from listener.seeds import Seed, cron_every
from listener.settings import Settings, environment, read

ROOT = Path(__file__).parents[2]


class Own(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="SCAN_")
    api_key: str
    pages: int = 3
    ports: Annotated[tuple[int, ...], NoDecode] = (80,)

    @field_validator("ports", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return value.split(",") if isinstance(value, str) else value


async def _work(item: dict[str, Any], tools: object) -> None: ...


SCAN = Workflow("scan", dict, _work, settings=Own, retired_env_prefixes=("OLD_SCHEDULER_",))
PLAIN = Workflow("plain", dict, _work)
INSTALLED = {"scan": SCAN, "plain": PLAIN}


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment(None):
        if name.startswith(("LISTENER_", "DATABASE_", "LOG_", "SCAN_", "PLAIN_", "OLD_")):
            monkeypatch.delenv(name)


def _refusal(**overrides: Any) -> str:
    with pytest.raises(UserError) as refused:
        read(INSTALLED, None, **overrides)
    return str(refused.value)


def test_everything_that_is_wrong_is_said_at_once_and_no_secret_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {
        "LISTENER_POLL_SECONDS": "0",
        "LISTENER_DRAIN_SECONDS": "long",
        "LISTENER_WORKFLOWS": "scan, No Name",
        "DATABASE_URL": "mysql://me:hunter22@host/x",
        "LOG_LEVEL": "LOUD",
        "LISTENER_POOL_SECONDS": "3",
        "SCAN_PAGES": "few",
        "SCAN_SCHEDULER_INTERVAL_MINUTES": "7",
        "PLAIN_SCHEDULER_BATCH_SIZE": "0",
        "OLD_SCHEDULER_BATCH_SIZE": "10",
        "SCAN_PAGE": "3",
        "PLAIN_SCHEDULER_INTERVAL_MINUTE": "5",
        "SCAN_PORTS": "80,http",
    }
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    text = _refusal()
    for name in (*wrong, "SCAN_API_KEY"):
        assert f"  {name}: " in text
    assert "did you mean LISTENER_POLL_SECONDS?" in text
    assert "set SCAN_SCHEDULER_BATCH_SIZE" in text
    assert "hunter22" not in text


def test_a_name_that_may_be_another_programs_is_warned_of_and_not_refused(tmp_path: Path) -> None:
    env = tmp_path / ".env"
    # those of docker-compose.yml, which reads the same file, are no mistakes
    others = "POSTGRES_PASSWORD=a\nLISTENER_PASSWORD=b\nWEB_PASSWORD=c\nLISTENER_MEMORY=1g\nLISTENERS=2\n"
    env.write_text(f"{others}LOG_LEVLE=DEBUG\nDATABSE_URL=postgresql://h/x\n")
    assert sorted(read({"plain": PLAIN}, str(env)).doubts) == [
        "DATABSE_URL: there is no such setting; did you mean DATABASE_URL?",
        "LOG_LEVLE: there is no such setting; did you mean LOG_LEVEL?",
    ]


def test_good_values_come_from_the_environment_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    env = tmp_path / ".env"
    env.write_text("LISTENER_POLL_SECONDS=7\nLISTENER_DRAIN_SECONDS=8\nSCAN_API_KEY=k\nSCAN_PAGES=\nLOG_LEVEL=debug\n")
    monkeypatch.setenv("LISTENER_POLL_SECONDS", "9")
    monkeypatch.setenv("DATABASE_URL", "postgresql+psycopg://me@host/x")
    monkeypatch.setenv("LISTENER_WORKFLOWS", " plain , scan ")
    found = read(INSTALLED, str(env))
    assert found.settings.listener_poll_seconds == 9
    assert found.settings.listener_drain_seconds == 8
    assert found.settings.database_url == "postgresql://me@host/x"
    assert found.settings.log_level == "DEBUG"
    assert list(found.workflows) == ["plain", "scan"]
    assert found.own["scan"].api_key == "k"


def test_what_a_workflow_that_is_not_run_here_lacks_does_not_matter() -> None:
    assert list(read(INSTALLED, None, listener_workflows="plain").workflows) == ["plain"]


def test_an_unknown_workflow_is_refused_with_those_there_are() -> None:
    assert "Installed: scan, plain." in _refusal(listener_workflows="skan")


@pytest.mark.parametrize(
    ("minutes", "cron"),
    [(1, "* * * * *"), (5, "*/5 * * * *"), (60, "0 * * * *"), (120, "0 */2 * * *"), (1440, "0 0 * * *")],
)
def test_an_interval_becomes_a_schedule(minutes: int, cron: str) -> None:
    assert Seed.read("X_", {"X_INTERVAL_MINUTES": str(minutes)}).schedule == cron


@pytest.mark.parametrize("minutes", [0, -1, 7, 45, 90, 300, 1441, 2880])
def test_an_interval_cron_cannot_keep_is_refused_not_rounded(minutes: int) -> None:
    with pytest.raises(ValueError, match="divisor of 60"):
        cron_every(minutes)


def test_the_example_file_lists_every_setting_with_its_default() -> None:
    listed = dotenv_values(ROOT / ".env.example")
    for name, field in Settings.model_fields.items():
        assert name.upper() in listed, f"{name.upper()} is missing from .env.example"
        text = listed[name.upper()]
        if text:
            assert getattr(Settings.model_validate({name: text}), name) == field.default
        else:
            assert not field.default


def test_whoever_copies_the_example_file_has_every_setting_at_its_default() -> None:
    found = read(discover(), str(ROOT / ".env.example"))
    assert found.doubts == ()
    for settings in (found.settings, *found.own.values()):
        for name, field in type(settings).model_fields.items():
            assert getattr(settings, name) == field.get_default(call_default_factory=True), name
