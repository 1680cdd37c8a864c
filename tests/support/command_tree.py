"""The commands of a parser and their arguments, which argparse itself lists nowhere."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command. `is_complete`: it runs without the name of a subcommand."""

    path: tuple[str, ...]
    arguments: Sequence[argparse.Action]
    is_complete: bool

    @property
    def name(self) -> str:
        return " ".join(self.path)


def commands_of(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Yield the command itself, then its subcommands."""
    arguments = parser._actions  # argparse has no public list
    nested = [each for each in arguments if isinstance(each, argparse._SubParsersAction)]  # and no public name for it
    yield Command(path=path, arguments=arguments, is_complete=not any(each.required for each in nested))
    for each in nested:
        for name, below in each.choices.items():
            yield from commands_of(below, (*path, name))
