"""Admission by evidence that lies in a folder."""
