"""Contract suites for adapter authors: subclass one, say how to open the adapter, run pytest."""
