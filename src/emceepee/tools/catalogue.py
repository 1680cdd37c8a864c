"""The whole set of tools, the same on every transport and in every era, in the order they are listed."""

from emceepee.tools import activity, execution, observation, prompts, questions, resources, servers, tasks, timers
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
    resources.subscribe_resource,
    resources.unsubscribe_resource,
    prompts.list_prompts,
    prompts.get_prompt,
    prompts.complete,
    observation.get_notifications,
    observation.get_logs,
    observation.set_log_level,
    activity.await_activity,
    questions.get_elicitations,
    questions.respond_to_elicitation,
    questions.cancel_elicitation_request,
    questions.get_sampling_requests,
    questions.respond_to_sampling,
    questions.cancel_sampling_request,
    tasks.list_tasks,
    tasks.get_task,
    tasks.get_task_result,
    tasks.cancel_task,
    timers.set_timer,
    timers.list_timers,
    timers.get_timer,
    timers.delete_timer,
)

CATALOGUE: dict[str, Tool] = {tool.name: tool for tool in TOOLS}
