"""The only place where time is read."""
