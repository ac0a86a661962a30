"""Every fault gives itself away; all of them are looked for in an audit, one in every run."""

from __future__ import annotations

import pytest

from tests.neighbours.runs import MINUTES
from tests.seeded.faults import FAULTS, INVENTED
from tests.seeded.finding import SCOPES, found, found_without
from tests.seeded.planting import Fault


@pytest.mark.parametrize("fault", FAULTS if MINUTES else INVENTED[:1], ids=lambda fault: fault.name)
def test_it_is_found(fault: Fault) -> None:
    assert found(fault) is not None, fault.words


@pytest.mark.parametrize("scope", SCOPES if MINUTES else [INVENTED[0].shows_in])
def test_without_it_nothing_is(scope: str) -> None:
    assert found_without(scope) is None
