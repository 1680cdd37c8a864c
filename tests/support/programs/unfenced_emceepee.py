"""An emceepee with a planted bug: Redis accepts its writes even after another replica took over the session."""

import sys

from emceepee.cli.main import main
from emceepee.store.redis.scripts.lua_script import LuaScript
from emceepee.store.redis.scripts.session_scripts import COMMIT, HAND_TO

COMMIT_CHECK = """epoch(h[1]) == mine and (h[2] == fence or (was == 0 and h[2] == '1')) and had >= was
      and had <= was + tonumber(doubts) and tonumber(seq) > tonumber(h[4])"""
HOLDER_CHECK = "h[2] == fence and epoch(h[1]) == mine"


def leave_out(script: LuaScript, check: str, rest: str) -> None:
    assert check in script.text
    LuaScript.__init__(script, script.text.replace(check, rest))  # importers of the script see the change


if __name__ == "__main__":
    leave_out(COMMIT, COMMIT_CHECK, "true")
    leave_out(HAND_TO, HOLDER_CHECK, "h[2]")
    sys.exit(main())
