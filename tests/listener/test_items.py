"""Rows as the items a workflow asks for, and what becomes of a row that does not fit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Enum
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from listener import Tools, Workflow
from listener.errors import UserError
from listener.items import loader_for
from tests.listener.inside import Inside
from tests.listener.started import Bench
from tests.sql.queue import one


class Base(DeclarativeBase):
    pass


class Row(Base):
    __tablename__ = "item"
    id: Mapped[int] = mapped_column(primary_key=True)
    chore: Mapped[str] = mapped_column("task")


class OtherBase(DeclarativeBase):
    pass


class Choosy(OtherBase):
    __tablename__ = "item"
    id: Mapped[int] = mapped_column(primary_key=True)
    task: Mapped[str] = mapped_column(Enum("ok", "fine", native_enum=False))


@dataclass
class Plain:
    task: str
    id: int
    nowhere: str = "default"
    made: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class Keyword:
    id: int
    task: str


@dataclass
class Strict:
    id: int
    task: str

    def __post_init__(self) -> None:
        if self.task == "misfit":
            raise ValueError("does not fit")


class Model(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    id: int
    chore: str = Field(validation_alias="task")


class StrictModel(BaseModel):
    id: int
    task: str = Field(pattern="ok|fine")


SEEN: list[Any] = []


def _done(listener: Inside, items: int) -> None:
    listener.wait(lambda: listener.counts().succeeded == items)


def _workflow(item: type[Any]) -> Workflow[Any, Any]:
    async def work(given: Any, tools: Tools) -> None:
        SEEN.append(given)

    return Workflow("job", item, work)


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        (dict, lambda item: (item["id"], item["task"], item["status"])),
        (Plain, lambda item: (item.id, item.task, item.nowhere, item.made)),
        (Keyword, lambda item: (item.id, item.task)),
        (Model, lambda item: (item.id, item.chore)),
        (Row, lambda item: (item.id, item.chore)),
    ],
)
def test_work_gets_the_row_as_the_type_it_asks_for(
    bench: Bench, kind: type[Any], read: Callable[[Any], tuple[Any, ...]]
) -> None:
    SEEN.clear()
    bench.adopt()
    bench.queue("ok")
    bench.inside(_workflow(kind))
    bench.wait_for("Completed")
    assert type(SEEN[0]) is kind
    assert read(SEEN[0])[:2] == (1, "ok")


@pytest.mark.parametrize("kind", [Strict, StrictModel, Choosy])
def test_a_row_that_does_not_fit_is_rejected_and_the_others_run(bench: Bench, kind: type[Any]) -> None:
    bench.adopt()
    bench.queue("ok", "misfit", "fine")
    bench.inside(_workflow(kind))
    bench.wait_for("Completed", "Failed", "Completed")
    assert one(bench.db, "SELECT reason FROM scheduler.attempt WHERE key = '2'") == "permanent"
    assert one(bench.db, "SELECT error FROM item WHERE id = 2")


def test_a_row_the_listener_may_not_see_is_tried_again_later(bench: Bench) -> None:
    """Row-level security may hide what the engine's owner can claim."""
    bench.adopt()
    bench.queue("ok", "hidden")
    bench.db.execute("ALTER TABLE item ENABLE ROW LEVEL SECURITY")
    bench.db.execute("CREATE POLICY engine ON item TO scheduler_owner USING (true)")
    bench.db.execute("CREATE POLICY listener ON item TO PUBLIC USING (task <> 'hidden')")
    bench.db.execute("SELECT scheduler.alter_workflow('job', backoff => '1 hour', backoff_max => '1 hour')")
    bench.inside(_workflow(dict), url=bench.as_listener())
    bench.wait_for("Completed", "Failed")
    assert "hidden from the listener" in one(bench.db, "SELECT error FROM item WHERE id = 2")


def test_keys_and_tables_of_any_spelling_are_found(bench: Bench) -> None:
    bench.db.execute('CREATE SCHEMA "Odd"')
    bench.db.execute(
        'CREATE TABLE "Odd"."My Table" ("The %s Key" uuid PRIMARY KEY, status text, task text, "100%" text)'
    )
    bench.db.execute("""SELECT scheduler.create_workflow('job', '"Odd"."My Table"', 'status')""")
    bench.db.execute("""INSERT INTO "Odd"."My Table" VALUES (gen_random_uuid(), 'Queued', 'ok')""")
    SEEN.clear()
    listener = bench.inside(_workflow(dict))
    listener.wait(lambda: listener.counts().succeeded == 1)
    bench.db.execute("""INSERT INTO "Odd"."My Table" VALUES (gen_random_uuid(), 'Queued', 'again')""")
    listener.wait(lambda: listener.counts().succeeded == 2)
    assert [item["task"] for item in SEEN] == ["ok", "again"]


def test_rows_of_a_partitioned_table_are_found_by_their_keys(bench: Bench) -> None:
    """The place of a row says nothing where there are several tables behind one name."""
    bench.db.execute(
        "CREATE TABLE parts (id int PRIMARY KEY, status text, task text) PARTITION BY RANGE (id);"
        "CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE high PARTITION OF parts FOR VALUES FROM (10) TO (20)"
    )
    bench.db.execute("SELECT scheduler.create_workflow('job', 'parts', 'status')")
    SEEN.clear()
    listener = bench.inside(_workflow(dict))
    for number in range(1, 4):
        bench.db.execute(
            "INSERT INTO parts VALUES (%s, 'Queued', 'low'), (%s, 'Queued', 'high')", [number, 10 + number]
        )
        _done(listener, 2 * number)
    assert sorted((item["id"], item["task"]) for item in SEEN) == [
        (1, "low"), (2, "low"), (3, "low"), (11, "high"), (12, "high"), (13, "high")
    ]  # fmt: skip


def test_rows_that_an_application_writes_to_in_the_moment_of_the_claim_reach_work(bench: Bench) -> None:
    """Its trigger moves each row after the engine has noted where it is."""
    bench.adopt()
    bench.db.execute(
        "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$ BEGIN UPDATE public.item SET task = NEW.task || '!' WHERE id = NEW.id; RETURN NULL; END $$;"
        "CREATE TRIGGER touch AFTER UPDATE OF status ON item FOR EACH ROW WHEN (NEW.status = 'Processing')"
        " EXECUTE FUNCTION touch()"
    )
    SEEN.clear()
    listener = bench.inside(_workflow(dict))
    for number in range(1, 4):
        bench.queue("ok", first=number)
        _done(listener, number)
    assert [item["task"] for item in SEEN] == ["ok!", "ok!", "ok!"]


def test_a_column_added_while_the_listener_runs_reaches_work(bench: Bench) -> None:
    bench.adopt()
    bench.queue("ok")
    SEEN.clear()
    bench.inside(_workflow(dict))
    bench.wait_for("Completed")
    bench.db.execute("ALTER TABLE item DROP COLUMN task, ADD COLUMN chore text DEFAULT 'new'")
    bench.db.execute("INSERT INTO item (id, status) VALUES (2, 'Queued')")
    bench.wait_for("Completed")
    assert SEEN[-1]["chore"] == "new"


def test_a_type_that_cannot_be_built_from_a_row_is_refused_with_those_that_can() -> None:
    with pytest.raises(UserError, match="dataclass, a pydantic model, or dict"):
        loader_for(int)
