"""The event log over recorders of the event-sourcing library: canonical bytes, listed topics."""
