"""PostgreSQL: one memory for many processes on many machines (design section 7)."""
