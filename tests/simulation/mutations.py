"""The rules that are broken on purpose, one each: what the simulation must be able to see.

Every one of them would cost money, leak a text, lose something, or show what was taken back.
"""

from tests.simulation.mutations_egress import ANSWERS, EGRESS
from tests.simulation.mutations_memory import CACHES, MEMORY
from tests.simulation.mutations_spend import SPEND

MUTATIONS = (*SPEND, *EGRESS, *ANSWERS, *CACHES, *MEMORY)
"""All of them."""
