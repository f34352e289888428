"""One run of Alembic: which database, in one transaction, and what happens around the revisions (alembic/README.md)."""

import importlib
import importlib.util
import logging
from logging.config import fileConfig
from typing import Any

from alembic import context
from alembic.util import CommandError
from sqlalchemy import MetaData

from listener import schema
from listener.errors import UserError

log = logging.getLogger("listener.schema")
config = context.config

# Only for the command `alembic`: a program that calls listener.schema has its own logging.
if config.cmd_opts is not None and config.config_file_name is not None:
    fileConfig(config.config_file_name, disable_existing_loggers=False)


def models() -> MetaData:
    """The tables that services/models.py describes, if it is installed; the listener must not import it."""
    if importlib.util.find_spec("services") and importlib.util.find_spec("services.models"):
        module = importlib.import_module("services.models")
        found: MetaData = module.metadata if hasattr(module, "metadata") else module.Base.metadata
        return found
    return MetaData()


target_metadata = models()
# the revision that brings the pipeline's tables
PIPELINE = "0002"
OURS = {table.name for table in target_metadata.tables.values()}


def include_name(name: str | None, kind: str, _parents: Any) -> bool:
    """Not other applications' tables, nor the schema scheduler, which sql/ describes."""
    return {"schema": name is None, "table": name in OURS}.get(kind, True)


def include_object(_thing: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
    """create_workflow() makes indexes that no model knows."""
    return not (kind == "index" and reflected and compare_to is None and (name or "").startswith("scheduler_"))


def run() -> None:
    migration = context.get_context()
    plan = migration.opts["fn"]
    if plan.__name__ not in {"upgrade", "downgrade"}:
        if plan.__name__ == "do_stamp":
            schema.apply(migration, "engine/schema.sql")
        else:
            migration.opts["dont_mutate"] = True  # `check` and `revision` only look
            if not schema.has_pipeline(migration):
                migration.opts["target_metadata"] = MetaData()
        context.run_migrations()
        return

    # Waits for another migration to end, so the plan comes after it.
    schema.apply(migration, "engine/schema.sql")
    steps = list(plan(migration.get_current_heads(), migration))
    end = steps[-1].to_revisions if steps else migration.get_current_heads()
    if steps and steps[0].from_revisions:
        if not end:
            schema.apply(migration, "engine/leave.sql")
        elif any(step.is_downgrade and step.revision.revision == PIPELINE for step in steps):
            schema.apply(migration, "pipeline/leave.sql")
        schema.apply(migration, "engine/clean.sql")
    context.run_migrations()
    if end == tuple(context.script.get_heads()):
        if migration.opts["pipeline"] and not schema.has_pipeline(migration):
            schema.apply(migration, "pipeline/tables.sql")
        schema.apply(migration, *schema.repeatables(pipeline=schema.has_pipeline(migration)))
    elif end and steps:
        log.warning(
            "The database is at revision %s, for which this version has no functions and views: it has none now. "
            "Run 'scrapersky migrate' of the version that has this revision, or migrate to head.",
            ", ".join(end),
        )


def pipeline() -> bool | None:
    """Asked for, or not wanted, by listener.schema or `-x pipeline=off`; None leaves it to the database."""
    given = context.get_x_argument(as_dictionary=True).get("pipeline")
    if given in {"on", "off"}:
        return given == "on"
    if given is not None:
        raise CommandError(f"-x pipeline={given} means nothing: write -x pipeline=on or -x pipeline=off.")
    wanted: bool | None = config.attributes.get("pipeline")
    return wanted


options: dict[str, Any] = {
    "pipeline": pipeline(),
    **schema.VERSION_TABLE,
    "target_metadata": target_metadata,
    "include_name": include_name,
    "include_object": include_object,
    # comments are written in sql/ alone
    "autogenerate_plugins": ["alembic.autogenerate.*", "~alembic.autogenerate.comments"],
    "transaction_per_migration": False,
}


def print_only() -> None:
    context.configure(dialect_name="postgresql", **options)
    with context.begin_transaction():
        run()


def migrate() -> None:
    url = context.get_x_argument(as_dictionary=True).get("url") or config.attributes.get("url") or schema.find_url()
    with schema.transaction(url) as connection:
        context.configure(connection=connection, **options)
        run()


try:
    print_only() if context.is_offline_mode() else migrate()
except UserError as error:
    if config.cmd_opts is None:
        raise
    # which the command `alembic` prints without a traceback
    raise CommandError(str(error)) from error
