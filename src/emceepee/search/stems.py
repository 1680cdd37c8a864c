"""English stems by Porter's rules of 1980, so that "deleted files" finds "delete a file"."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

LONGEST_STEMMED = 40  # letters; longer strings are not words
_VOWELS = "aeiou"
_STEP_2 = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("abli", "able")),
    *(("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")),
    *(("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")),
)
_STEP_3 = (("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""))
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate"),
    *("iti", "ous", "ive", "ize"),
)
_LATIN = re.compile(r"[a-z]+")


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return the stem of a lowercase word. A word with other characters than a to z is unchanged."""
    if not 2 < len(word) <= LONGEST_STEMMED or not _LATIN.fullmatch(word):
        return word
    word = _without_participle(_without_plural(word))
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    return _without_last_e(_without_ending(word))


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_participle(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return _restored(rest) if _has_vowel(rest) else word
    return word


def _restored(rest: str) -> str:
    """Restore the letters that an ending changed: hop(ping), fil(ing)."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if len(rest) > 1 and rest[-1] == rest[-2] and _is_consonant(rest, len(rest) - 1) and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _replaced(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    found = _longest(word, (ending for ending, _ in endings))
    if not found or _measure(word[: -len(found)]) == 0:
        return word
    return word[: -len(found)] + dict(endings)[found]


def _without_ending(word: str) -> str:
    found = _longest(word, _STEP_4)
    rest = word[: -len(found)] if found else word
    if not found or _measure(rest) < 2 or (found == "ion" and not rest.endswith(("s", "t"))):
        return word
    return rest


def _without_last_e(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        size = _measure(rest)
        if size > 1 or (size == 1 and not _ends_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _longest(word: str, endings: Iterable[str]) -> str:
    return max((ending for ending in endings if word.endswith(ending)), key=len, default="")


def _is_consonant(word: str, place: int) -> bool:
    if word[place] in _VOWELS:
        return False
    return word[place] != "y" or place == 0 or not _is_consonant(word, place - 1)


def _measure(text: str) -> int:
    """Count how often a vowel is followed by a consonant."""
    sounds = [_is_consonant(text, place) for place in range(len(text))]
    return sum(after and not before for before, after in pairwise(sounds))


def _has_vowel(text: str) -> bool:
    return any(not _is_consonant(text, place) for place in range(len(text)))


def _ends_short(text: str) -> bool:
    """Return whether the text ends in consonant, vowel, consonant, with the last not w, x, or y."""
    last = len(text) - 1
    return (
        last >= 2
        and _is_consonant(text, last)
        and not _is_consonant(text, last - 1)
        and _is_consonant(text, last - 2)
        and text[last] not in "wxy"
    )
