"""Local guards: bounded rule tables over normalised views of a text."""

from remembrancer.adapters.guards.guards import LocalGuards, SecondEngine
from remembrancer.adapters.guards.kingfisher import KingfisherEngine
from remembrancer.adapters.guards.residency import ResidencyRules

__all__ = ["KingfisherEngine", "LocalGuards", "ResidencyRules", "SecondEngine"]
