"""Who may see what, unless a host injects a policy of its own."""
