"""A tour of the memory on real documents: ``python -m remembrancer.composition.demo``."""
