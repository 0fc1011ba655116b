"""The treatment of a Harbor trial, from its configuration and its job's, under Agent Signals's names."""

from __future__ import annotations

import re
from typing import Any

from agentsignals.formats.figures import number
from agentsignals.formats.harbor.records import Agent, AgentInfo, Config, word

RENAMED = {
    "attempt1ToolCap": "attempt1_tool_cap",
    "retryToolCap": "retry_tool_cap",
    "effort": "reasoning_effort",
    "version": "agent_version",
}
SECRET = re.compile(r"(?:api_?key|secret|password|credential|token)$", re.IGNORECASE)
"""Names of arguments whose value is nobody's business, and no treatment."""


def trial_knobs(config: Config, dataset: str | None, info: AgentInfo | None) -> dict[str, Any]:
    """The knobs a trial's configuration names. What it leaves to the task (its timeout) or to defaults is not said."""
    agent = config.agent or Agent()
    settings: dict[str, Any] = {
        "agent_type": word(agent.name) or word(agent.import_path) or (word(info.name) if info is not None else None),
        "agent_version": _version(info),
        "model_id": word(agent.model_name) or _model(info),
        "dataset": dataset,
        "timeout_s": _timeout(config, agent),
        "timeout_multiplier": number(config.timeout_multiplier),
        "agent_timeout_multiplier": number(config.agent_timeout_multiplier),
    }
    if config.environment is not None:
        settings["environment"] = word(config.environment.type) or word(config.environment.import_path)
    servers = [name for server in agent.mcp_servers or () if (name := word(server.name)) is not None]
    settings["mcp_servers"] = servers or None
    return arguments(agent.kwargs, {name: value for name, value in settings.items() if value is not None})


def arguments(kwargs: dict[str, Any] | None, knobs: dict[str, Any]) -> dict[str, Any]:
    """The knobs, and behind them what an agent was called with, all but secrets."""
    for name, value in (kwargs or {}).items():
        if not SECRET.search(name):
            knobs.setdefault(RENAMED.get(name, name), value)
    return knobs


def job_knobs(config: Config) -> dict[str, Any]:
    """The knobs that all trials of a job share: older versions keep their number at once with the orchestrator."""
    older = config.orchestrator.n_concurrent_trials if config.orchestrator is not None else None
    at_once = number(config.n_concurrent_trials)
    retry = config.retry or (config.orchestrator.retry if config.orchestrator is not None else None)
    settings = {
        "concurrency": at_once if at_once is not None else number(older),
        "attempts_per_task": number(config.n_attempts),
        "max_retries": number(retry.max_retries) if retry is not None else None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _version(info: AgentInfo | None) -> str | None:
    version = word(info.version) if info is not None else None
    return version if version != "unknown" else None


def _model(info: AgentInfo | None) -> str | None:
    """The model as the agent reports it, with its provider: there the two stand apart."""
    model = info.model_info if info is not None else None
    name, provider = (word(model.name), word(model.provider)) if model is not None else (None, None)
    return f"{provider}/{name}" if name is not None and provider is not None and "/" not in name else name


def _timeout(config: Config, agent: Agent) -> float | None:
    """Seconds the agent had: the configured limit, at most the greatest allowed, times the multiplier."""
    limit, most = number(agent.override_timeout_sec), number(agent.max_timeout_sec)
    if limit is None:
        return None
    of_agent, general = number(config.agent_timeout_multiplier), number(config.timeout_multiplier)
    factor = of_agent if of_agent is not None else general if general is not None else 1
    return (limit if most is None else min(limit, most)) * factor
