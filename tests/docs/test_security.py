"""SECURITY.md names every limit and no unknown one."""

import re
from dataclasses import fields

from emceepee.state.limits import Limits
from support.documentation import ROOT

PAGE = ROOT / "SECURITY.md"


def test_every_limit_is_named_exactly_once_in_the_table_of_bounds() -> None:
    table = PAGE.read_text("utf-8").split("## Each bound by its name")[1].split("\n## ")[0]
    named = re.findall(r"`(\w+)`", table)
    assert sorted(named) == sorted(field.name for field in fields(Limits))
