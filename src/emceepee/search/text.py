"""Formats a server's text as one line without control or hidden characters, and with bounded length."""

import re

LONGEST_SUMMARY = 140
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s|\s[-*#]{1,3}\s")


def one_line(text: str, most: int) -> str:
    """Return only printable characters, with single spaces and a mark where the text is cut."""
    window = text[: most * 4]  # unprintable characters and spaces may fill much of it
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in window).split())
    return line if len(line) <= most and len(window) == len(text) else line[: most - 1].rstrip() + "…"


def first_sentence(text: str, most: int = LONGEST_SUMMARY) -> str:
    """Return the first sentence, which usually describes the purpose of an entry."""
    paragraph = text.lstrip()[: most * 4].split("\n\n", 1)[0]
    line = one_line(paragraph, most * 4)
    return one_line(_SENTENCE_END.split(line, maxsplit=1)[0], most)
