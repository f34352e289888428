"""The parts of the documentation that are written by the program itself: SQL, settings, command line, list of pages.

`python -m docs.reference` rewrites what stands between `<!-- begin NAME -->` and `<!-- end NAME -->` in the pages; a
test refuses pages that it would change.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import typer
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings
from typer.testing import CliRunner

from docs import figures
from listener.cli import app
from listener.discover import discover
from listener.postgres.throwaway import throwaway
from listener.schema import migrate
from listener.seeds import cron_every
from listener.settings import Settings, variables

DOCS = Path(__file__).parent
ENV_EXAMPLE = DOCS.parent / ".env.example"
SITE = DOCS.parent / "mkdocs.yml"

_CHAPTERS = {
    "Start here": "quickstart tour pipeline web migrate",
    "How to": "howto/register-a-table howto/write-a-workflow testing howto/change-a-schedule howto/pause-and-resume"
    " howto/retry-failed-items howto/give-people-rights howto/monitor",
    "Run it": "howto/ready-for-production howto/docker howto/systemd howto/kubernetes howto/pgbouncer"
    " howto/verify-a-deploy howto/upgrade-and-roll-back runbook scale",
    "Look up": "sql settings cli network",
    "What to expect": "reliability performance performance-pipeline",
}
_FOLDERS = {"On a managed PostgreSQL": "managed", "Why it is so": "explanation", "Decisions": "decisions"}

_FUNCTIONS = """
SELECT p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), obj_description(p.oid, 'pg_proc')
FROM pg_proc AS p
WHERE p.pronamespace = 'scheduler'::regnamespace AND p.proname !~ '^_' AND p.prorettype <> 'trigger'::regtype
  AND p.prokind = 'f'
ORDER BY p.proname, 2"""

_VIEWS = """
SELECT c.relname, obj_description(c.oid, 'pg_class'),
       (SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attnum > 0)
FROM pg_class AS c
WHERE c.relnamespace = 'scheduler'::regnamespace AND c.relkind = %s AND c.relname !~ '^_' ORDER BY 1"""

_ARGUMENTS = """
SELECT trim(split_part(argument, ' DEFAULT ', 1)), nullif(split_part(argument, ' DEFAULT ', 2), '')
FROM pg_proc AS p, regexp_split_to_table(pg_get_function_arguments(p.oid), ', (?=[a-z_]+ [a-z]+)') AS argument
WHERE p.oid = 'scheduler.create_workflow'::regproc"""

_COLUMNS = """
SELECT a.attname, col_description(a.attrelid, a.attnum) FROM pg_attribute AS a
WHERE a.attrelid = 'scheduler.workflow'::regclass AND a.attnum > 0"""


_SCHEDULES = "SELECT name, schedule, batch_size, max_instances FROM scheduler.workflow ORDER BY name"


def write(url: str) -> dict[Path, str]:
    """The pages as they should be."""
    with psycopg.connect(url) as db:
        regions: dict[str, Callable[[], Iterator[str]]] = {
            "workflow settings": lambda: _workflow_settings(db),
            "functions": lambda: _functions(db),
            "views": lambda: _relations(db, "v"),
            "tables": lambda: _relations(db, "r"),
            "settings": _settings,
            "commands": _commands,
            "pages": _pages,
            "peers": figures.peers,
            "engine alone": figures.engine,
            "reading": figures.reading,
        }
        written = {page: _fill(page.read_text(), regions) for page in pages()}
        return {**written, ENV_EXAMPLE: "\n".join((*_env_example(db), "")), SITE: _site()}


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def _fill(text: str, regions: dict[str, Callable[[], Iterator[str]]]) -> str:
    def fill(found: re.Match[str]) -> str:
        return "\n".join((f"<!-- begin {found[1]} -->", "", *regions[found[1]](), "", f"<!-- end {found[1]} -->"))

    return re.sub(r"<!-- begin ([a-z ]+) -->.*?<!-- end \1 -->", fill, text, flags=re.DOTALL)


def _workflow_settings(db: psycopg.Connection) -> Iterator[str]:
    meanings: dict[str, str | None] = dict(db.execute(_COLUMNS).fetchall())
    yield from ("| setting | type | default | meaning |", "|---|---|---|---|")
    for argument, default in db.execute(_ARGUMENTS).fetchall():
        name, _, kind = argument.partition(" ")
        shown = "needed" if default is None else _cell(re.sub(r"::[\w ]+$", "", default))
        yield f"| `{name}` | {kind} | {shown} | {_cell(meanings.get(name) or '')} |"


def _functions(db: psycopg.Connection) -> Iterator[str]:
    for name, arguments, result, comment in db.execute(_FUNCTIONS).fetchall():
        # the one with many settings has a table of its own
        shown = "name, relation, status_column, …" if name == "create_workflow" else arguments
        yield f"- **`{name}({shown})`** → `{result}`<br>"
        yield f"  {_prose(comment)}"


def _relations(db: psycopg.Connection, kind: str) -> Iterator[str]:
    for name, comment, columns in db.execute(_VIEWS, [kind]).fetchall():
        yield f"- **`{name}`**: {_prose(comment)}<br>"
        yield f"  `{columns}`"


def _settings() -> Iterator[str]:
    for title, kind in _kinds():
        yield from (f"## {title}", "", "| variable | default | meaning |", "|---|---|---|")
        for name, field, meaning in _fields(kind):
            yield f"| `{name}` | {_cell(_default(field) or 'unset')} | {_cell(meaning)} |"
        yield ""


def _env_example(db: psycopg.Connection) -> Iterator[str]:
    yield "# Every setting at its default. Copy this file to .env and keep what you change; the environment wins."
    yield "# Written by `make reference`; docs/settings.md says more."
    seen: set[str] = set()
    for title, kind in _kinds():
        new = [setting for setting in _fields(kind) if setting[0] not in seen]
        seen |= {name for name, _, _ in new}
        yield from ("", f"# --- {title} ---") if new else ()
        for name, field, meaning in new:
            yield from ("", *(f"# {line}" for line in meaning.splitlines()), f"{name}={_default(field)}")
    yield from ("", "# --- Schedules ---", "")
    yield "# Applied when a database is first set up and by `scrapersky schedules apply`; after that it is the truth."
    yield "# Minutes must divide an hour, or be whole hours that divide a day."
    prefixes = {workflow.name: workflow.env_prefix for workflow in discover().values()}
    for name, schedule, batch_size, max_instances in db.execute(_SCHEDULES).fetchall():
        if name in prefixes:
            minutes = next(n for n in range(1, 1441) if 1440 % n == 0 and cron_every(n) == schedule)
            yield from ("", f"# {name}", f"{prefixes[name]}INTERVAL_MINUTES={minutes}")
            yield from (f"{prefixes[name]}BATCH_SIZE={batch_size}", f"{prefixes[name]}MAX_INSTANCES={max_instances}")


def _kinds() -> Iterator[tuple[str, type[BaseSettings]]]:
    """The listener's settings, then those that workflows bring; one class may serve several."""
    yield "The listener", Settings
    users: dict[type[BaseSettings], list[str]] = {}
    for workflow in discover().values():
        if workflow.settings is not None:
            users.setdefault(workflow.settings, []).append(workflow.name)
    for kind, names in users.items():
        yield ", ".join(sorted(names)), kind


def _fields(kind: type[BaseSettings]) -> Iterator[tuple[str, FieldInfo, str]]:
    texts = _docstrings(kind)
    for variable, name, field in variables(kind):
        yield variable, field, texts.get(name, "")


def _docstrings(kind: type[BaseSettings]) -> dict[str, str]:
    """What stands below each field in the source, also of the classes it inherits from."""
    found: dict[str, str] = {}
    for part in reversed(kind.__mro__[: kind.__mro__.index(BaseSettings)]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
        for field, below in pairwise(body.body if isinstance(body, ast.ClassDef) else ()):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                found[field.target.id] = inspect.cleandoc(str(ast.literal_eval(below.value)))
    return found


def _default(field: FieldInfo) -> str:
    value: Any = field.default
    if value is None or value == ():
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _commands() -> Iterator[str]:
    yield from _command((), typer.main.get_command(app))


def _command(path: tuple[str, ...], command: Any) -> Iterator[str]:
    below = getattr(command, "commands", {})
    if not below:
        help_text = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"}).output
        yield from (f"## scrapersky {' '.join(path)}", "", "```text", *_trimmed(help_text), "```", "")
    for name in sorted(below):
        yield from _command((*path, name), below[name])


def _trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def _pages() -> Iterator[str]:
    """Every page with its first sentence, so that none is forgotten."""
    for title, chapter in chapters().items():
        yield from (f"## {title}", "", "| page | what it is about |", "|---|---|")
        for page in chapter:
            yield f"| [{_title(page)}]({page.relative_to(DOCS)}) | {_cell(_first_sentence(page))} |"
        yield ""


def chapters() -> dict[str, list[Path]]:
    """Every page but the index, in the order in which one needs them."""
    found = {title: [DOCS / f"{name}.md" for name in names.split()] for title, names in _CHAPTERS.items()}
    for title, folder in _FOLDERS.items():
        found[title] = sorted((DOCS / folder).glob("*.md"))
    listed = [page for chapter in found.values() for page in chapter]
    if odd := set(listed) ^ (set(pages()) - {DOCS / "index.md"}):
        raise ValueError(f"say in _CHAPTERS where these belong: {', '.join(sorted(map(str, odd)))}")
    return found


def _site() -> str:
    """mkdocs.yml with the same chapters as its navigation."""
    lines = ["nav:", "  - Home: index.md"]
    for title, chapter in chapters().items():
        lines.append(f"  - {title}:")
        lines += [f'      - "{_title(page)}": {page.relative_to(DOCS)}' for page in chapter]
    text = SITE.read_text()
    begin, end = "# begin nav, written by `make reference`\n", "# end nav\n"
    return text.partition(begin)[0] + begin + "\n".join(lines) + "\n" + end + text.partition(end)[2]


def _title(page: Path) -> str:
    found = re.search(r"^# (.+)$", page.read_text(), re.MULTILINE)
    return found[1] if found else page.stem


def _first_sentence(page: Path) -> str:
    paragraphs = re.split(r"\n\s*\n", page.read_text())
    prose = next((p for p in paragraphs if re.match(r"[A-Z`*]", p)), "")
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(prose.split()))
    return re.split(r"(?<=[.?!]) ", plain)[0].rstrip(":")


def _prose(comment: str | None) -> str:
    return " ".join((comment or "").split())


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def main() -> int:
    with throwaway() as cluster:
        url = cluster.url()
        migrate(url)
        for path, text in write(url).items():
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
                typer.echo(f"rewritten: {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
