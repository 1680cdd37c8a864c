"""The tools by name."""

from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.declaration import Tool

CATALOGUE: dict[str, Tool] = {tool.name: tool for tool in TOOLS}
