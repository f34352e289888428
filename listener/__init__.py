"""The process beside PostgreSQL: it wakes on NOTIFY, claims rows, runs one function per workflow, commits."""

from listener.tools import Clock, Tools
from listener.workflow import Done, Final, Hold, Reject, Retry, Workflow

__all__ = ["Clock", "Done", "Final", "Hold", "Reject", "Retry", "Tools", "Workflow", "__version__"]
__version__ = "0.1.0"
