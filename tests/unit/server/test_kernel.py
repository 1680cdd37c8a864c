from emceepee.server.kernel import INSTRUCTIONS
from emceepee.tools.catalogue import CATALOGUE


def test_the_instructions_name_only_tools_that_there_are() -> None:
    named = {word.strip(".,") for word in INSTRUCTIONS.split() if "_" in word} - {"pending_client_action"}
    assert named
    assert named <= set(CATALOGUE)
