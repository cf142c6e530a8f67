"""Checks that produce the evidence of ten gates by running the configured parts (design 4.5).

The preparation runs in scratch stores, with the configured prices, ceilings and guards, and with a
provider inside the process that counts what arrives (adr/0015).  Two gates can't be tried this
way: for those there is a template to fill in.
"""

from remembrancer.composition.gate_checks.campaign import CHECKS, CheckOutcome, run_checks
from remembrancer.composition.gate_checks.template import HOW, evidence_template

__all__ = ["CHECKS", "HOW", "CheckOutcome", "evidence_template", "run_checks"]
