"""Word splitting for names, texts, and queries: getUserInfo and get_user_info have three words each."""

import re
import unicodedata
from collections.abc import Iterable

from emceepee.search.stems import stem

LONGEST_WORD = 40  # letters; a longer word is cut
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
# Scripts without spaces between words: their letters are indexed in pairs.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_STOP_WORDS = """
a an the of to in on at for by with from into onto and or but if so as than then that this these those there here
is are was were be been being am do does did done has have had having can could may might must shall should will
would i me my mine we us our you your he him his she her it its they them their what which who whom whose when
where why how not no nor any some all each every both either neither such same other another more most much many
very just only also too about above below between up down out off over under again once
please help want wants wanted need needs like let lets tell know im ive id dont cant
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def words(text: str) -> list[str]:
    """Return the words in order, lowercase and without accents; compound names are split."""
    text = _HUMP.sub(" ", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = "".join(letter for letter in text if not unicodedata.combining(letter))
    found = _WORD.findall(text.lower())
    return found if text.isascii() else [part for word in found for part in _parts(word)]


def terms(text: str) -> list[str]:
    """Return the stems of the significant words; of all words if none is significant."""
    found = words(text)
    return [stem(word[:LONGEST_WORD]) for word in found if word not in STOP_WORDS] or stems(found)


def stems(found: Iterable[str]) -> list[str]:
    return [stem(word[:LONGEST_WORD]) for word in found]


def _parts(word: str) -> Iterable[str]:
    """Yield the word itself, or pairs of letters if its script has no spaces."""
    place = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > place:
            yield word[place : run.start()]
        letters = run.group()
        yield from ([letters] if len(letters) == 1 else [letters[n : n + 2] for n in range(len(letters) - 1)])
        place = run.end()
    if place < len(word):
        yield word[place:]
