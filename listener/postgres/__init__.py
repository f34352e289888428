"""A private PostgreSQL for one project: found or installed, started, stopped and removed without the system's one."""
