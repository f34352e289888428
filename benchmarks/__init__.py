"""What the engine costs, as ratios measured side by side in one run: `make bench`."""
