"""One package per technology; each implements ports, none imports another."""
