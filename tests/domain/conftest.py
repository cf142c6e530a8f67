"""What several files of the domain's tests are given."""

import pytest
from tests.domain.ledger_desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()
