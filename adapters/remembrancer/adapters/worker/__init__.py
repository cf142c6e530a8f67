"""Blocking calls beside an event loop."""
