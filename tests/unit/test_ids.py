import re
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from emceepee.ids import Ulids, request_numbers

FORMAT = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def a_source(times: Iterator[int]) -> Ulids:
    return Ulids(lambda: next(times))


@given(st.lists(st.integers(min_value=0, max_value=2**48 - 2), min_size=2))
def test_ids_strictly_increase_despite_clock_jumps(times: list[int]) -> None:
    source = a_source(iter(times))
    ids = [source.new() for _ in times]
    assert ids == sorted(set(ids))
    assert all(FORMAT.fullmatch(made) for made in ids)


def test_ids_of_one_millisecond_differ_and_stay_in_order() -> None:
    source = Ulids(lambda: 1_700_000_000_000)
    ids = [source.new() for _ in range(10_000)]
    assert ids == sorted(set(ids))
    assert len({made[:10] for made in ids}) == 1


def test_the_first_ten_characters_of_an_id_are_its_timestamp() -> None:
    moment = 1_469_918_176_385
    made = Ulids(lambda: moment).new()
    number = 0
    for character in made[:10]:
        number = number * 32 + ALPHABET.index(character)
    assert number == moment


def test_ids_keep_increasing_when_the_clock_is_set_back() -> None:
    source = a_source(iter([5000, 10, 5001]))
    first, second, third = source.new(), source.new(), source.new()
    assert first < second < third
    assert first[:10] == second[:10]


def test_ids_continue_in_the_next_millisecond_when_one_is_exhausted() -> None:
    source = Ulids(lambda: 7)
    source.new()
    source.continue_after("0000000007" + "Z" * 16)
    assert source.new() == "0000000008" + "0" * 16


def test_two_id_sources_do_not_create_the_same_id() -> None:
    assert Ulids(lambda: 1).new() != Ulids(lambda: 1).new()


def test_an_unguessable_id_reveals_nothing_about_the_next_one() -> None:
    ids = Ulids(lambda: 1)
    first, second = ids.unguessable(), ids.unguessable()
    assert (len(first), first[:10]) == (26, second[:10])
    assert sum(a != b for a, b in zip(first[10:], second[10:], strict=True)) > 4


def test_request_ids_count_up_from_a_random_number_and_fit_into_32_bits() -> None:
    firsts = set()
    for _ in range(100):
        numbers = request_numbers()
        first = next(numbers)
        assert (next(numbers), next(numbers)) == (first + 1, first + 2)
        firsts.add(first)
    assert len(firsts) > 90
    assert min(firsts) > 0
    assert max(firsts) < 2**31 - 10**9
