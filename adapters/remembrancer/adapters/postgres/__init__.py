"""PostgreSQL: one log, ledger and memory for many processes on many machines (design section 7)."""
