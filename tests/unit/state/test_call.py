from itertools import product

import pytest

from emceepee.state.call import CALL, CallStage
from emceepee.state.machine import ForbiddenMove

S = CallStage
ALLOWED: dict[CallStage, set[CallStage]] = {
    S.IN_FLIGHT: {S.RETURNED, S.FAILED, S.CANCELLED, S.PROMOTED},
    S.RETURNED: set(),
    S.FAILED: set(),
    S.CANCELLED: set(),
    S.PROMOTED: set(),
}


@pytest.mark.parametrize(("source", "target"), list(product(S, S)), ids=str)
def test_a_call_goes_only_where_its_table_leads(source: CallStage, target: CallStage) -> None:
    if target in ALLOWED[source]:
        CALL.check(source, target)
    else:
        with pytest.raises(ForbiddenMove):
            CALL.check(source, target)
