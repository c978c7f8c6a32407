"""The models: networks, part counts, and blends of both."""
