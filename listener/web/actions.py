"""What a person can do on the page: each action is one call of an operating function, shown before it is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import LiteralString

from psycopg import sql

from listener.errors import UserError
from listener.web.store import Row
from listener.web.tables import View

MOST_KEYS = 1000


@dataclass(frozen=True)
class Field:
    """Something to fill in before confirming."""

    name: str
    label: str
    kind: str = "text"
    """text, number, keys or word, one of those of the form."""
    hint: str = ""
    required: bool = False
    clearable: bool = False
    """Empty means none, rather than: leave it."""


@dataclass(frozen=True)
class Form:
    """What was filled in."""

    workflow: str
    values: Mapping[str, str]
    keys: tuple[str, ...] = ()
    settings: Row = field(default_factory=dict)
    """The workflow as it is now, for actions that change it."""
    view: View | None = None
    """The table whose rows are decided on."""

    def text(self, name: str) -> str | None:
        return self.values.get(name, "").strip() or None


Arguments = dict[LiteralString, object]
"""By names that stand in this file, never in a request."""


@dataclass(frozen=True)
class Action:
    name: str
    title: str
    function: LiteralString
    meaning: str
    arguments: Callable[[Form], Arguments]
    fields: tuple[Field, ...] = ()
    for_all: bool = False
    """Not of one workflow but of all."""
    on_table: bool = False
    """Not of a workflow but of a table of results."""
    takes_all: bool = False
    """Without keys, every failed item: how many is said before."""
    warns: bool = False
    """Takes something away: drawn in the colour of caution."""

    def call(self, form: Form) -> sql.Composed:
        """The SQL that is shown and then run, word for word."""
        given: Arguments = {} if self.for_all or self.on_table else {"name": form.workflow}
        given |= self.arguments(form)
        arguments = [sql.SQL("{} => {}").format(sql.SQL(name), _literal(value)) for name, value in given.items()]
        return sql.SQL("SELECT * FROM scheduler.{}({})").format(sql.SQL(self.function), sql.SQL(", ").join(arguments))


def _literal(value: object) -> sql.Composable:
    if isinstance(value, tuple):
        return sql.SQL("{}::text[]").format(sql.Literal(list(value)))
    return sql.Literal(value)


def _reason(form: Form) -> Arguments:
    return {"reason": form.text("reason")} if form.text("reason") else {}


def _nothing(_form: Form) -> Arguments:
    return {}


def _keys(form: Form) -> Arguments:
    if not form.keys:
        raise UserError("No item was chosen.", "Tick some rows, or type their keys.")
    if len(form.keys) > MOST_KEYS:
        raise UserError(f"{len(form.keys)} items are too many for a page.", f"Choose up to {MOST_KEYS}, or use SQL.")
    return {"ids": form.keys}


def _decision(form: Form) -> Arguments:
    """curate() takes a predicate; here it names the ticked rows."""
    view, word = form.view, form.text("word")
    if view is None or view.table.key is None or word not in view.decisions:
        raise UserError("No word was chosen.", "Choose one of the list.")
    keys = sql.SQL(", ").join(map(sql.Literal, _keys(form)["ids"]))  # type: ignore[call-overload]
    predicate = sql.SQL("{} IN ({})").format(sql.SQL(view.table.key), keys)
    return {"relation": view.table.relation, "predicate": predicate.as_string(None), "word": word}


def _which(form: Form) -> Arguments:
    if form.keys:
        return _keys(form)
    return {"error": form.text("error")} if form.text("error") else {}


def _changes(form: Form) -> Arguments:
    """Only what differs from what is set now."""
    given: Arguments = {}
    cleared: list[str] = []
    for setting in SETTINGS:
        if setting.name not in form.values:
            continue
        wanted, now = form.text(setting.name), form.settings.get(setting.name)
        if wanted == (None if now is None else str(now)):
            continue
        if wanted is not None:
            given[setting.name] = _number(setting, wanted) if setting.kind == "number" else wanted
        elif setting.clearable:
            cleared.append(setting.name)
        else:
            raise UserError(f"{setting.label} cannot be empty.", "Give a number.")
    if cleared:
        given["clear"] = tuple(cleared)
    if not given:
        raise UserError("Nothing was changed.", "Change a setting, or go back.")
    return given


def _number(setting: Field, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{setting.label} is a whole number, not {text!r}.", "Write it with digits.") from None


SETTINGS = (
    Field("schedule", "Schedule", hint="five cron fields or @hourly; empty: no schedule", clearable=True),
    Field("batch_size", "Batch size", "number", "items in one run; dispatch tops the queue up to it"),
    Field(
        "max_instances", "Max instances", "number", "runs at once in the whole fleet; empty: no limit", clearable=True
    ),
    Field("concurrency", "Concurrency", "number", "items a listener works on at once"),
    Field("rate_limit", "Rate limit", "number", "items claimed per rate period; empty: no limit", clearable=True),
    Field("max_attempts", "Max attempts", "number", "then the item is in the dead letter"),
)

_REASON = (Field("reason", "Reason", hint="for whoever wonders later"),)
_KEYS = (Field("keys", "Keys", "keys", "one a line, or separated by spaces", required=True),)

ACTIONS = {
    action.name: action
    for action in (
        Action(
            "pause",
            "Pause",
            "pause",
            "Nothing new is queued or claimed until it is resumed; running items finish.",
            _reason,
            _REASON,
        ),
        Action("resume", "Resume", "resume", "It goes on; an open breaker is closed and a hold ends.", _nothing),
        Action(
            "dispatch",
            "Dispatch now",
            "dispatch",
            "Ready rows and due retries are queued now, up to the batch size.",
            _nothing,
        ),
        Action(
            "enqueue",
            "Queue items",
            "enqueue",
            "Marks these rows Queued with all their attempts, whatever their status; running ones are left alone.",
            _keys,
            _KEYS,
        ),
        Action(
            "requeue",
            "Requeue",
            "requeue",
            "Failed and dead items start again with all their attempts.",
            _which,
            (
                Field("keys", "Keys", "keys", "one a line; empty: all failed and dead items"),
                Field("error", "Error like", hint="such as %timeout%; empty: any"),
            ),
            takes_all=True,
        ),
        Action(
            "cancel",
            "Cancel items",
            "cancel",
            "Queued items go back; running ones are taken from their run and their results discarded.",
            _keys,
            _KEYS,
            warns=True,
        ),
        Action(
            "change",
            "Change settings",
            "alter_workflow",
            "Counts from the next claim and the next dispatch on.",
            _changes,
            SETTINGS,
        ),
        Action(
            "decide",
            "Mark rows",
            "curate",
            "Selected rows are queued by the next dispatch, also failed ones; what is queued or runs is left so.",
            _decision,
            (Field("word", "As", "word"), *_KEYS),
            on_table=True,
        ),
        Action(
            "pause_all",
            "Pause everything",
            "pause_all",
            "Nothing is queued or claimed in any workflow until all is resumed; running items finish.",
            _reason,
            _REASON,
            for_all=True,
            warns=True,
        ),
        Action(
            "resume_all",
            "Resume everything",
            "resume_all",
            "Workflows that were paused one by one stay paused.",
            _nothing,
            for_all=True,
        ),
    )
}


def told(row: Row) -> str:
    """What a function returned, as a sentence."""
    shown = {name: value for name, value in row.items() if value is not None}
    if len(shown) == 1:
        (name, value), *_ = shown.items()
        return str(value) if isinstance(value, str) else f"{name.replace('_', ' ')}: {value}"
    return ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in shown.items())
