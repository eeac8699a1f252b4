"""What lessons read of records: both cells of a pair, in one column, with the word for where the first one lies."""

from __future__ import annotations

import pytest

from asyncfl_course import lessons
from asyncfl_lite.base.errors import ResultError

PLACE = "kuiper/fig3b/bias1"


def test_a_pair_is_above_below_equivalent_or_open_and_a_margin_asks_for_a_verdict():
    pair = f"{PLACE}/kuiper", f"{PLACE}/fedbuff"
    assert lessons.compare(*pair).endswith(": below") and lessons.compare(*pair[::-1]).endswith(": above")
    assert lessons.compare(*pair, margin=0.12).endswith(" (asked: above 12): reversed")
    found = lessons.differences("kuiper", ["fedbuff"], {"bias 1": PLACE})
    assert found["verdict"].tolist() == ["below"]


def test_a_cell_that_was_not_run_in_a_column_is_no_comparison():
    with pytest.raises(ResultError, match="cell"):
        lessons.compare(
            "kuiper/fig4/bias0-clients50/oort", "kuiper/fig4/bias0-clients50/fedbuff", column="server rate 1"
        )
