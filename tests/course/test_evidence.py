"""What lessons read of records: a comparison at rates that were searched elsewhere decides nothing."""

from __future__ import annotations

from asyncfl_course import lessons


def test_a_comparison_with_a_cell_that_borrows_its_rates_decides_nothing():
    said = lessons.compare("kuiper/fig3c/bias1/kuiper", "kuiper/fig3c/bias1/fedbuff")
    assert "(borrowed)" in said and said.endswith(": borrowed")


def test_differences_say_which_places_borrow():
    places = {"searched": "kuiper/fig3b/bias1", "elsewhere": "kuiper/fig3c/bias1"}
    found = lessons.differences("kuiper", ["fedbuff"], places)
    assert found.set_index("place")["verdict"].to_dict() == {"searched": "reversed", "elsewhere": "borrowed"}
