"""The guards as their tests ask them."""

import string

from remembrancer.adapters.guards import LocalGuards, ResidencyRules
from remembrancer.application.ports.guards import GuardVerdict
from remembrancer.contracts.guards import ALLOWED, ALLOWED_HOST
from remembrancer.domain.sensitivity import Sensitivity

BASE62 = string.ascii_letters + string.digits


def local(*allowed: str, region: str = "eu") -> LocalGuards:
    return LocalGuards(residency=ResidencyRules(region=region, allowed=allowed or (ALLOWED_HOST,)))


def verdict(text: str) -> GuardVerdict:
    return local().check(text, declared=Sensitivity.PUBLIC, destination=ALLOWED)
