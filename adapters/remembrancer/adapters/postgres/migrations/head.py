"""Which revision this release works with."""

HEAD = "0002"
