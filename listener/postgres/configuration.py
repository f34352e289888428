"""The server settings of a private cluster, in one included file that every start writes anew."""

import sys
from collections.abc import Mapping

DATABASE = "scrapersky"
SUPERUSER = "postgres"
INCLUDED_FILE = "scrapersky.conf"

HBA = """\
# A password always: on a shared machine anyone can reach 127.0.0.1.
local all all scram-sha-256
host  all all 127.0.0.1/32 scram-sha-256
"""

DURABLE: Mapping[str, str] = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
# For data that nobody will miss: a crash of the machine, not of the server, may corrupt it.
FLEETING: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}


def settings(*, port: int, sockets: str, cron: bool, extra: Mapping[str, str]) -> dict[str, str]:
    chosen = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": sockets,
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        # pg_cron takes one worker per running job beside the launcher and parallel queries
        "max_worker_processes": "20",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] %q%u@%d ",
        # the statements of a queue are short: compiling them costs more than it saves
        "jit": "off",
    }
    if sys.platform == "linux":
        # else a listener killed in the middle of a statement keeps its row locks until the statement ends
        chosen["client_connection_check_interval"] = "2s"
    if cron:
        chosen |= {
            "shared_preload_libraries": "pg_cron",
            "cron.database_name": DATABASE,
            "cron.use_background_workers": "on",
            "cron.max_running_jobs": "10",
            "cron.log_statement": "off",
        }
    return chosen | dict(extra)


def render(chosen: Mapping[str, str]) -> str:
    lines = (f"{name} = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in chosen.items())
    return "# Written by every start; put your own settings into postgresql.conf, after the include.\n" + "".join(
        f"{line}\n" for line in lines
    )
