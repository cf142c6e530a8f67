"""Admission from evidence that lies in a folder."""
