"""Where a value comes from."""

import math

import pytest
from control_cases import decision

from reflexarc.control.source import Unusable, make_source


def test_a_label_gives_its_number() -> None:
    source = make_source({"ABD": 6, "otherwise": 1}, scale=2.0, offset=0.5)
    assert source(decision(0, label="ABD")) == 12.5
    assert source(decision(0, label="PEN")) == 2.5
    assert source(decision(0, label="undecided")) == 2.5


@pytest.mark.parametrize("label", ["PEN", "undecided", "otherwise", ""])
def test_an_unknown_label_is_refused_where_there_is_no_otherwise(label: str) -> None:
    with pytest.raises(Unusable, match=r"^label$") as caught:
        make_source({"ABD": 6})(decision(0, label=label))
    assert caught.value.word == "label"


def test_undecided_may_have_a_number_of_its_own() -> None:
    assert make_source({"ABD": 6, "undecided": 2})(decision(0, label="undecided")) == 2


def test_a_named_value_is_scaled() -> None:
    source = make_source("value.angle", scale=2.0, offset=1.0)
    assert source(decision(0, values={"angle": 3.0})) == 7.0
    assert make_source("value.angle")(decision(0, values={"angle": 3.0})) == 3.0


def test_a_named_value_that_is_missing_is_refused() -> None:
    with pytest.raises(Unusable, match=r"^value$"):
        make_source("value.angle")(decision(0, values={"other": 3.0}))


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_rule_1_a_table_holds_finite_numbers_only(number: float) -> None:
    with pytest.raises(ValueError, match=f"the value of ABD is {number}, not finite"):
        make_source({"ABD": number})
    with pytest.raises(ValueError, match="must be finite"):
        make_source("value.angle", scale=number)
    with pytest.raises(ValueError, match="must be finite"):
        make_source("value.angle", offset=number)
    with pytest.raises(ValueError, match="not finite"):
        make_source({"ABD": 1.0}, scale=number)


@pytest.mark.parametrize("spec", ["angle", "value.", "", "valueangle"])
def test_any_other_text_is_no_source(spec: str) -> None:
    with pytest.raises(ValueError, match=f"'{spec}' is neither a table of labels nor"):
        make_source(spec)
