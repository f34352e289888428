"""Log lines: one an event, with fields. Readable on a terminal, one JSON object a line elsewhere; never a secret.

Say what happened in the message and give the rest as fields: `log.info("run finished", extra={"succeeded": 10})`.
"""

import json
import logging
import sys
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO

from listener.redact import redact

ROOT = "scrapersky"

_process: dict[str, str] = {}

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# At INFO these write one line a request, query string and API key included.
_CHATTY = ("httpx", "httpcore", "hpack", "asyncio", "psycopg", "psycopg.pool", "sqlalchemy.engine")


def log_of(*names: str) -> logging.Logger:
    return logging.getLogger(".".join((ROOT, *names)))


class FieldLog(logging.LoggerAdapter[logging.Logger]):
    """A logger with fields of its own that each call may add to."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


class JsonLines(logging.Formatter):
    """For machines."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": redact(record.getMessage()),
            **_process,
        }
        line.update({name: _redacted(value) for name, value in fields_of(record).items()})
        if record.exc_info:
            line["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, default=lambda value: redact(str(value)), ensure_ascii=False)


class Plain(logging.Formatter):
    """For people: time, level, who, what, then the fields."""

    def __init__(self, *, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S.%f")[:-3]
        who = record.name.removeprefix(f"{ROOT}.")
        fields = fields_of(record)
        fields.pop("workflow", None)  # the name already says it
        shown = "".join(f"  {name}={_shown(value)}" for name, value in fields.items())
        line = f"{at} {record.levelname:<7} {who}: {redact(record.getMessage())}{shown}"
        if record.exc_info:
            line += "\n" + redact(self.formatException(record.exc_info))
        if self._colour and record.levelno >= logging.WARNING:
            line = f"\x1b[{31 if record.levelno >= logging.ERROR else 33}m{line}\x1b[0m"
        return line


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """What was given as `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD and value is not None}


def identify(**fields: str) -> None:
    """What every JSON line of this process carries, such as the id of its listener."""
    _process.update(fields)


def configure(level: str = "INFO", form: str = "auto", stream: TextIO | None = None) -> None:
    """Send all log lines to one stream. `form` is `text`, `json`, or `auto`: text on a terminal only."""
    stream = stream or sys.stderr
    on_terminal = stream.isatty()
    handler = logging.StreamHandler(stream)
    as_json = form == "json" or (form == "auto" and not on_terminal)
    handler.setFormatter(JsonLines() if as_json else Plain(colour=on_terminal))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {str(name): _redacted(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(inner) for inner in value]
    if isinstance(value, float):
        return round(value, 6)
    return value


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list | tuple):
        return ",".join(map(_shown, value))
    text = redact(str(value))
    return repr(text) if any(character.isspace() for character in text) or not text else text
