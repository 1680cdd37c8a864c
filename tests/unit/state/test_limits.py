from dataclasses import asdict, fields

from emceepee.state.limits import Limits


def test_the_defaults_are_the_promised_ones() -> None:
    assert asdict(Limits()) == {
        "connect_seconds": 30,
        "list_patience_seconds": 3,
        "request_seconds": 60,
        "call_seconds": 120,
        "longest_call_seconds": 900,
        "notifications_per_server": 100,
        "log_lines_per_server": 500,
        "buffered_item_bytes": 1 << 20,
        "list_pages": 1000,
        "line_bytes": 256 << 20,
    }


def test_every_limit_says_what_it_means() -> None:
    assert all(len(item.metadata["meaning"]) > 10 for item in fields(Limits))


def test_durations_may_be_fractions_and_counts_are_whole() -> None:
    for item in fields(Limits):
        assert type(item.default) is (float if item.name.endswith("_seconds") else int), item.name
