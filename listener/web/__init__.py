"""The web page and the HTTP endpoints for machines: served by a listener, or alone by `scrapersky web`.

Reads run as scheduler_monitor in read-only transactions, actions as scheduler_admin through the same SQL functions a
DBA calls. Nothing of a listener depends on it.
"""
