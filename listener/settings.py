"""The settings of a listener, from the environment and `.env`. All that is wrong is said at once, at start."""

import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from psycopg import ProgrammingError, conninfo
from pydantic import Field, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from listener.discover import choose
from listener.errors import UserError
from listener.seeds import Seed, complaints_about_retired
from listener.workflow import NAME, Workflow

ENV_FILE = ".env"


class Settings(BaseSettings):
    """How this process runs. What a workflow does (schedule, batch size, limits) is in the database."""

    model_config = SettingsConfigDict(env_file=ENV_FILE, extra="ignore", env_ignore_empty=True, frozen=True)

    database_url: str | None = None
    """Where claims go; may lead through a transaction-mode pooler. Unset: the private PostgreSQL of this project."""
    database_listen_url: str | None = None
    """A direct connection for LISTEN, if database_url goes through a pooler."""
    listener_workflows: Annotated[tuple[str, ...], NoDecode] = ()
    """Run only these, separated by commas. Empty: all that are installed."""
    listener_poll_only: bool = False
    """Do without LISTEN and find work by polling alone."""
    listener_poll_seconds: float = Field(default=5.0, ge=0.1, le=3600)
    """How long work can wait at most if a notification is lost."""
    listener_drain_seconds: float = Field(default=25.0, ge=0, le=86400)
    """How long items under way may finish after SIGTERM; keep it below the supervisor's own patience."""
    listener_statement_seconds: float = Field(default=30.0, ge=1, le=3600)
    """The longest any single statement may take, those of save included."""
    web_port: int | None = Field(default=None, ge=0, le=65535)
    """The listener serves /health, /ready, /metrics and the web page on this port. Unset: it serves nothing."""
    web_host: str = "127.0.0.1"
    """Where to serve them. Anywhere but on this machine itself a token is needed."""
    web_token: str | None = None
    """Whoever gives it, as a password or as a bearer, may see and operate everything; at least 16 characters."""
    web_users: Annotated[tuple[str, ...], NoDecode] = ()
    """Tokens with names for the audit, as in `alice:TOKEN carol:TOKEN:read`; with `:read` they only look."""
    web_database_url: str | None = None
    """A login for the web page that may become scheduler_monitor and scheduler_admin. Unset: database_url."""
    alert_webhook_url: str | None = None
    """Gets a small JSON when a breaker opens, dead letters rise or a schedule is late, and when that is over."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """DEBUG, INFO, WARNING or ERROR."""
    log_format: Literal["auto", "text", "json"] = "auto"
    """auto: text on a terminal, JSON elsewhere."""

    @field_validator("database_url", "database_listen_url", "web_database_url")
    @classmethod
    def _is_connection_string(cls, value: str | None) -> str | None:
        if value is None:
            return None
        # SQLAlchemy's spelling is understood too
        value = re.sub(r"^(postgres(?:ql)?)\+\w+:", r"\1:", value)
        try:
            conninfo.conninfo_to_dict(value)
        except ProgrammingError as error:
            raise ValueError("not a PostgreSQL connection string, such as postgresql://user@host:5432/name") from error
        return value

    @field_validator("alert_webhook_url")
    @classmethod
    def _is_web_address(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^/?#\s]+\S*", value):
            raise ValueError("not a web address, such as https://alerts.example/hook")
        return value

    @field_validator("listener_workflows", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
        return tuple(name for name in names if name)

    @field_validator("listener_workflows")
    @classmethod
    def _are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a workflow")
        return value

    @field_validator("web_users", mode="before")
    @classmethod
    def _split_users(cls, value: Any) -> Any:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value


@dataclass(frozen=True)
class Configuration:
    """Everything a listener needs to know before it starts."""

    settings: Settings
    workflows: dict[str, Workflow[Any, Any]]
    """Those this process runs."""
    own: dict[str, Any]
    """Each workflow's own settings, for those that have any."""
    doubts: tuple[str, ...] = ()
    """Variables that look like a setting with a typing error, but may be somebody else's: to be warned of."""


def read(
    installed: Mapping[str, Workflow[Any, Any]], env_file: str | None = ENV_FILE, **overrides: Any
) -> Configuration:
    """The settings of this process and of the workflows it runs, or one error that names everything wrong with them."""
    complaints: list[str] = []
    everything = environment(env_file)
    settings = _build(Settings, complaints, env_file, overrides)
    misspelt, doubts = _misspelt(everything, installed.values())
    complaints += misspelt
    chosen = dict(installed)
    if settings is not None:
        try:
            chosen = choose(chosen, settings.listener_workflows)
        except UserError as error:
            complaints.append(f"LISTENER_WORKFLOWS: {error}")
    own = {
        name: _build(workflow.settings, complaints, env_file, {})
        for name, workflow in chosen.items()
        if workflow.settings is not None
    }
    for workflow in chosen.values():
        try:
            Seed.read(workflow.env_prefix, everything)
        except ValidationError as error:
            complaints += _lines(error, prefix=workflow.env_prefix)
    complaints += complaints_about_retired(chosen.values(), everything)
    if settings is None or complaints:
        raise _refusal(complaints)
    return Configuration(settings, chosen, own, tuple(doubts))


def variables(kind: type[BaseSettings]) -> Iterator[tuple[str, str, FieldInfo]]:
    """Each setting of a class: its variable, its name in the class, and what is known of it."""
    for name, field in kind.model_fields.items():
        alias = field.validation_alias
        # an alias is the variable's whole name: several classes share it
        variable = alias if isinstance(alias, str) else f"{kind.model_config.get('env_prefix') or ''}{name}"
        yield variable.upper(), name, field


def environment(env_file: str | None = ENV_FILE) -> dict[str, str]:
    """The environment over `.env`; empty values count as absent."""
    from_file = dotenv_values(env_file) if env_file else {}
    return {name: value for name, value in {**from_file, **os.environ}.items() if value}


def _build(kind: type[BaseSettings], complaints: list[str], env_file: str | None, given: Mapping[str, Any]) -> Any:
    class Tolerant(kind):  # type: ignore[valid-type, misc]
        # the other variables in .env are no mistake of this class, and an empty value counts as absent
        model_config = SettingsConfigDict(extra="ignore", env_ignore_empty=True)

    Tolerant.__name__ = kind.__name__
    try:
        return Tolerant(_env_file=env_file, **given)
    except ValidationError as error:
        prefix = str(kind.model_config.get("env_prefix") or "")
        aliases = {str(field.validation_alias) for field in kind.model_fields.values() if field.validation_alias}
        complaints += [line for line in _lines(error, prefix, aliases) if line not in complaints]
        return None


def _lines(error: ValidationError, prefix: str, aliases: Collection[str] = ()) -> list[str]:
    """One line a bad value. Never the value of a URL: it may hold a password."""
    lines = []
    for problem in error.errors(include_url=False):
        # a number in it counts the parts of a list, which is one variable
        place = "_".join(part for part in problem["loc"] if isinstance(part, str))
        # an alias is the whole name of a variable
        name = (place if place in aliases else prefix + place).upper() if place else ""
        message = problem["msg"].removeprefix("Value error, ")
        given = problem.get("input")
        secret = re.search(r"url|key|token|secret|password|users", name, re.IGNORECASE)
        shown = f" (it is {given!r})" if isinstance(given, str | int | float) and not secret else ""
        lines.append(f"{name}: {message}{shown}".removeprefix(": "))
    return lines


def _misspelt(everything: Mapping[str, str], installed: Iterable[Workflow[Any, Any]]) -> tuple[list[str], list[str]]:
    """Names close to one of ours: a typing error that is silently ignored would be found out at night.

    Below a prefix of ours it is refused. Elsewhere, as in WEB_USER, it may be another program's: one is warned of it.
    """
    known, prefixes, retired = {name for name, _, _ in variables(Settings)}, {"LISTENER_"}, set[str]()
    for workflow in installed:
        prefixes.add(workflow.env_prefix)
        known |= {workflow.env_prefix + field.upper() for field in Seed.model_fields}
        retired |= {prefix + field.upper() for prefix in workflow.retired_env_prefixes for field in Seed.model_fields}
        if workflow.settings is not None:
            known |= {name for name, _, _ in variables(workflow.settings)}
            prefixes.add(str(workflow.settings.model_config.get("env_prefix") or "LISTENER_").upper())
    wrong: list[str] = []
    doubts: list[str] = []
    for name in everything:
        if name not in known | retired:
            ours = name.startswith(tuple(prefixes))
            if close := difflib.get_close_matches(name, known, n=1, cutoff=0.8 if ours else 0.88):
                line = f"{name}: there is no such setting; did you mean {close[0]}?"
                (wrong if ours else doubts).append(line)
    return wrong, doubts


def _refusal(complaints: list[str]) -> UserError:
    return UserError(
        "These settings cannot be used:\n" + "\n".join(f"  {line}" for line in complaints),
        "Correct them in the environment or in .env; .env.example lists all of them.",
    )
