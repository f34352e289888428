"""Ours and the peers in one run, on one PostgreSQL with full durability."""
