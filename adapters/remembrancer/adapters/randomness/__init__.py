"""The only place where chance is taken."""
