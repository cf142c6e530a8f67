"""Everything in this process: for tests, and for hosts that want nothing durable."""
