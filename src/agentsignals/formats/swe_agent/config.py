"""What a SWE-agent run was set to do: model, limits, tools, task."""

from __future__ import annotations

import posixpath
from typing import Any

_LIMITS = ("per_instance_cost_limit", "total_cost_limit", "per_instance_call_limit")
"""Of these 0 means none."""
_OF_MODEL = ("temperature", "top_p", "seed", "max_input_tokens", "max_output_tokens")
_OF_TOOLS = {"execution_timeout": "execution_timeout_s", "total_execution_timeout": "total_execution_timeout_s"}
_NO_MODELS = frozenset(("replay", "human", "human_thought", "instant_empty_submit"))
"""Names under which SWE-agent lets something other than a model act."""


def knobs(config: dict[str, Any], attempt: int = 0) -> dict[str, Any]:
    """The treatment as configured. A limit of 0 is none (None); what is null was left to the provider: not said."""
    agent = _agent(config, attempt)
    model = _inner(agent, "model")
    treatment: dict[str, Any] = {"agent_type": "swe-agent"}
    name = model.get("name") or model.get("model_name")
    if isinstance(name, str) and name:
        treatment["model_id"] = name
    for limit in _LIMITS:
        value = model.get(limit)
        if _is_number(value):
            treatment[limit] = value or None
    arguments = _inner(model, "completion_kwargs")
    treatment.update({k: v for of in (arguments, model) for k in _OF_MODEL if _is_number(v := of.get(k))})
    if isinstance(arguments.get("reasoning_effort"), str):
        treatment["reasoning_effort"] = arguments["reasoning_effort"]
    retries = _inner(_inner(config, "agent"), "retry_loop").get("max_attempts")
    if _is_number(retries):
        treatment["max_attempts"] = retries
    tools = _inner(agent, "tools")
    treatment.update({ours: tools[theirs] for theirs, ours in _OF_TOOLS.items() if _is_number(tools.get(theirs))})
    parser = _inner(tools, "parse_function").get("type")
    if isinstance(parser, str):
        treatment["parse_function"] = parser
    if _is_number(agent.get("max_requeries")):
        treatment["max_requeries"] = agent["max_requeries"]
    bundles = [_inner({"b": b}, "b").get("path") for b in _list(tools, "bundles")]
    named = [posixpath.basename(b.rstrip("/")) for b in bundles if isinstance(b, str)]
    if named:
        treatment["tools"] = named
    return treatment


def model_of(treatment: dict[str, Any]) -> str | None:
    """The model that acted, by the knobs; None when a person or a recording did."""
    name = treatment.get("model_id")
    return name if isinstance(name, str) and name not in _NO_MODELS else None


def problem(config: dict[str, Any]) -> tuple[str | None, str | None]:
    """Id and text of the problem statement."""
    stated = _inner(config, "problem_statement")
    id_, text = stated.get("id"), stated.get("text")
    return (id_ if isinstance(id_, str) and id_ else None), (text if isinstance(text, str) and text else None)


def _agent(config: dict[str, Any], attempt: int) -> dict[str, Any]:
    """The agent's settings; a run that retries may have several, taken in turn."""
    agent = _inner(config, "agent")
    several = [a for a in _list(agent, "agent_configs") if isinstance(a, dict)]
    return several[attempt % len(several)] if several else agent


def _inner(of: dict[str, Any], name: str) -> dict[str, Any]:
    value = of.get(name)
    return value if isinstance(value, dict) else {}


def _list(of: dict[str, Any], name: str) -> list[Any]:
    value = of.get(name)
    return value if isinstance(value, list) else []


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
