"""An internet on loopback, for tests and the demo."""
