"""Authenticated encryption of what has to stand in the log."""
