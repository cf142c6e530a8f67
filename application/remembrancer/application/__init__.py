"""Use cases, and the ports they need.  Knows the domain, nothing else."""
