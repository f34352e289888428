"""`scrapersky listen`: the listener."""

import asyncio
import os
import signal
import sys
from typing import Annotated, Any

import typer


def listen(
    workflows: Annotated[
        str | None, typer.Option("--workflows", help="Run only these, separated by commas.", show_default=False)
    ] = None,
    poll_only: Annotated[bool, typer.Option("--poll-only", help="Do without LISTEN; find work by polling.")] = False,
) -> None:
    """Work on queued rows, until SIGTERM or Ctrl-C. Start as many of these as you like.

    A first signal drains: items under way are finished or given back. A second one gives them back at once. SIGHUP
    reads the settings again, SIGUSR1 writes what every task is doing into the log. Exit codes: 0 drained, 1 wrong
    settings, 75 something could not be given back in time.

    Example: scrapersky listen --workflows deep_scan,page_curation
    """
    # SQLAlchemy and pydantic take a moment to import, which the other commands need not wait for.
    from listener import logs, traces
    from listener.discover import find
    from listener.settings import read

    logs.configure()
    overrides: dict[str, Any] = {
        **({"listener_workflows": workflows} if workflows else {}),
        **({"listener_poll_only": True} if poll_only else {}),
    }
    installed, broken = find()
    for one in broken:
        one.log()
    configuration = read(installed, **overrides)
    logs.configure(configuration.settings.log_level, configuration.settings.log_format)
    for doubt in configuration.doubts:
        logs.log_of("settings").warning(doubt)

    async def run() -> None:
        from listener.errors import UserError
        from listener.process import Listener
        from listener.settings import Settings

        def url_of(settings: Settings) -> str:
            if settings.database_url:
                return settings.database_url
            from listener.schema import find_url

            return find_url()

        settings = configuration.settings
        listener = Listener(
            url_of(settings),
            configuration.workflows,
            settings,
            configuration.own,
            traces=traces.configured(),
            # whoever runs some has not asked for the others
            broken=() if settings.listener_workflows else broken,
        )
        logs.identify(listener=str(listener.id))
        reloads: set[asyncio.Task[None]] = set()

        async def reload() -> None:
            log = logs.log_of("listener")
            try:
                fresh = read(installed, **overrides).settings
                logs.configure(fresh.log_level, fresh.log_format)
                await listener.reload(url_of(fresh), fresh)
            except UserError as error:
                log.error("not reloaded: the old settings stay", extra={"error": str(error)})  # noqa: TRY400
            except Exception:
                log.exception("not wholly reloaded")
            else:
                log.info("reloaded")

        def on_hangup() -> None:
            task = asyncio.create_task(reload(), name="reload")
            reloads.add(task)
            task.add_done_callback(reloads.discard)

        listener.handle_signals()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_hangup)
        code = await listener.run()
        sys.stdout.flush()
        sys.stderr.flush()
        # neither asyncio.run() nor sys.exit() may wait now: for somebody's work that will not be stopped, as a
        # coroutine or as a thread
        os._exit(code)

    asyncio.run(run())
