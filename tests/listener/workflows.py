"""Workflows for the tests: what `work` and `save` do with an item is written in the item itself, in its column `task`.

They run in the listener's process. A test talks to them through the folder $GATES: `work` leaves `<key>.begun` there,
and the task `wait` goes on once the test has put `<key>.go` beside it.
"""

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from listener import Done, Final, Hold, Reject, Retry, Tools, Workflow


@dataclass
class Item:
    id: int
    task: str


class Base(DeclarativeBase):
    pass


class MappedItem(Base):
    __tablename__ = "item"
    id: Mapped[int] = mapped_column(primary_key=True)
    task: Mapped[str]
    status: Mapped[str | None]


class OwnSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="JOB_")
    factor: int = 1


def _gate(key: str, what: str) -> Path:
    return Path(os.environ["GATES"]) / f"{key}.{what}"


def _begin(tools: Tools) -> None:
    with _gate(tools.key, "begun").open("a") as calls:
        calls.write(f"{os.getpid()}\n")


def _end(item: Any, tools: Tools) -> Any:
    match item.task.split():
        case ["retry", *after]:
            raise Retry("come back later", after=float(after[0]) if after else None)
        case ["later", after]:
            raise Retry("not its turn", after=float(after), spend=False)
        case ["reject"]:
            raise Reject("no good")
        case ["break"]:
            raise ZeroDivisionError("token=hunter22 in it")
        case ["hold", seconds]:
            raise Hold("quota used up", after=float(seconds))
        case ["final", word]:
            return Final(word, item.task)
        case ["recover"] if tools.attempt == 1:
            raise RuntimeError("only the first time")
    return item.task


async def work(item: Item, tools: Tools) -> Any:
    _begin(tools)
    match item.task.split():
        case ["wait"]:
            try:
                while not _gate(tools.key, "go").exists():
                    await tools.clock.sleep(0.01)
            except asyncio.CancelledError:
                _gate(tools.key, "cancelled").touch()
                raise
        case ["block", seconds]:
            time.sleep(float(seconds))  # noqa: ASYNC251 - the fault under test
        case ["stubborn"]:
            while True:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.01)
        case ["die"]:
            os._exit(9)
    return _end(item, tools)


def work_in_thread(item: Item | MappedItem, tools: Tools) -> Any:
    _begin(tools)
    while item.task == "wait" and not _gate(tools.key, "go").exists():
        time.sleep(0.01)
    return _end(item, tools)


_EFFECT = text("INSERT INTO effect (item, result, word) VALUES (:item, :result, :word)")


def _effects(results: list[Done[Any, Any]]) -> list[dict[str, Any]]:
    for done in results:
        if done.item.task == "unsavable":
            raise ValueError("this one cannot be saved")
    return [
        # NUL in text is what PostgreSQL itself refuses
        {"item": int(done.key), "result": "\x00" if done.item.task == "nul" else str(done.result), "word": done.word}
        for done in results
    ]


async def save(session: AsyncSession, results: list[Done[Any, Any]]) -> None:
    await session.execute(_EFFECT, _effects(results))


def save_plain(session: Session, results: list[Done[Any, Any]]) -> None:
    session.execute(_EFFECT, _effects(results))


async def times_factor(item: Item, tools: Tools) -> int:
    return item.id * int(tools.settings.factor)


job = Workflow("job", Item, work, save)
other = Workflow("other", Item, work, save)
threaded = Workflow("threaded", Item, work_in_thread, save_plain)
mapped = Workflow("mapped", MappedItem, work_in_thread, save_plain)
plain = Workflow("plain", dict, lambda item, _tools: item["task"])
tuned = Workflow("tuned", Item, times_factor, save, settings=OwnSettings)
needs_column = Workflow("needs_column", Item, work, save)
