"""The help of the command line, with commands grouped by purpose."""

import argparse
import shutil
import textwrap
from typing import NoReturn

from emceepee.terminal_text import printable

GROUPS = {
    "Serve": ("serve", "daemon"),
    "Set up": ("import", "install", "servers", "config", "auth", "doctor", "undo"),
    "Use servers": ("tools", "call", "read", "prompt", "search"),
    "Watch": ("logs", "top", "replay"),
    "Keep": ("state", "version", "completion"),
}
WIDEST = 110
COLUMN = 14


class SafeParser(argparse.ArgumentParser):
    """Escapes its error messages, because they repeat arguments, which may come from untrusted sources."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


class GroupedHelp(SafeParser):
    """Omits the usage line with all flags, which is too long to read."""

    def format_help(self) -> str:
        commands = {
            choice.dest: choice.help or ""
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for choice in action._choices_actions
        }
        formatter = self._get_formatter()
        formatter.add_usage("%(prog)s [options] [command ...]", [], [])
        formatter.add_text(self.description)
        parts = [formatter.format_help()]
        grouped = [name for names in GROUPS.values() for name in names]
        groups = GROUPS | {"More": tuple(name for name in commands if name not in grouped)}
        for title, names in groups.items():
            if listed := [_line(name, commands[name]) for name in names if name in commands]:
                parts.append(f"{title}:\n" + "".join(listed))
        formatter = self._get_formatter()
        formatter.start_section("Options")
        formatter.add_arguments(
            [action for action in self._actions if not isinstance(action, argparse._SubParsersAction)]
        )
        formatter.end_section()
        parts.append(formatter.format_help())
        parts.append("`emceepee COMMAND --help` says more of a command.\n")
        return "\n".join(parts)


def _line(name: str, words: str) -> str:
    width = max(min(shutil.get_terminal_size().columns, WIDEST), COLUMN + 30)
    first, rest = f"  {name:<{COLUMN}}", " " * (COLUMN + 2)
    return f"{textwrap.fill(words, width, initial_indent=first, subsequent_indent=rest)}\n"
