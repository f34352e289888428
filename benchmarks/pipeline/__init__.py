"""How fast websites are read, ours and the usual open tools side by side on the same simulated internet."""
