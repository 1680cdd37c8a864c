"""Others choose names, but not the number, length, or characters of label values."""

import string

from emceepee.telemetry.label_values import LONGEST_VALUE, OTHER, LabelValues, plain


def test_the_first_names_get_their_own_label_values_and_the_rest_share_one() -> None:
    values = LabelValues(2)
    assert [values.value_of(name) for name in ("a", "b", "c", "a")] == ["a", "b", OTHER, "a"]
    assert len(values) == 2


def test_a_name_that_may_not_be_new_gets_no_label_value_but_keeps_an_existing_one() -> None:
    values = LabelValues(2)
    assert values.value_of("made-up", may_be_new=False) == OTHER
    assert values.value_of("made-up") == "made-up"
    assert values.value_of("made-up", may_be_new=False) == "made-up"


def test_a_label_value_is_short_and_of_plain_characters() -> None:
    assert len(plain("x" * 10_000)) == LONGEST_VALUE
    allowed = set(string.ascii_letters + string.digits + "_.:/@-")
    assert set(plain("".join(map(chr, range(0x20))) + 'a"b\\c\nd é €')) <= allowed
