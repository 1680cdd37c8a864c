"""A server's words on one line of ours: nothing in them moves a cursor, hides, or goes on for ever."""

import re

LONGEST_SUMMARY = 140
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s|\s[-*#]{1,3}\s")


def one_line(text: str, most: int) -> str:
    """Printable letters only, single spaces, and a mark where it is cut."""
    window = text[: most * 4]  # what is not printable, and spaces, may fill much of it
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in window).split())
    return line if len(line) <= most and len(window) == len(text) else line[: most - 1].rstrip() + "…"


def first_sentence(text: str, most: int = LONGEST_SUMMARY) -> str:
    """That which says what an entry is for, usually."""
    paragraph = text.lstrip()[: most * 4].split("\n\n", 1)[0]
    line = one_line(paragraph, most * 4)
    return one_line(_SENTENCE_END.split(line, maxsplit=1)[0], most)
