"""The whole set of tools, the same on every transport and in every era, in the order they are listed."""

from emceepee.tools import execution, observation, prompts, resources, servers
from emceepee.tools.declaration import Tool

TOOLS: tuple[Tool, ...] = (
    servers.add_server,
    servers.remove_server,
    servers.reconnect_server,
    servers.list_servers,
    servers.get_server_status,
    execution.list_tools,
    execution.execute_tool,
    resources.list_resources,
    resources.list_resource_templates,
    resources.read_resource,
    prompts.list_prompts,
    prompts.get_prompt,
    prompts.complete,
    observation.get_notifications,
    observation.get_logs,
    observation.set_log_level,
)

CATALOGUE: dict[str, Tool] = {tool.name: tool for tool in TOOLS}
