"""Revisions, oldest first.  None that was released is ever changed."""
