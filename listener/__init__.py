"""The process beside PostgreSQL: it wakes on NOTIFY, claims rows, runs one function per workflow, commits."""

__version__ = "0.1.0"
