"""Plans of an agent (to-do lists, plans shown for approval, tasks it created) and the edit distance of two plans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.model import Roles, ToolCall, decode_roles
from agentsignals.model.lazy import deferred_pattern
from agentsignals.views.session import SessionView

MOST_STEPS = 12
"""Longer plans keep their first steps (design/signals.md#plans)."""
_FENCE = deferred_pattern(r"```.*?(?:```|\Z)", re.S)
_NUMBERED = deferred_pattern(r"^[ \t]{0,6}(?:#{1,4} |\*\*)?(?:[Ss]tep |[Pp]hase |[Tt]ask )?\d{1,2}[.):] +(\S.*)$", re.M)
_BULLETED = deferred_pattern(r"^[ \t]{0,3}(?:[-*\u2022]|\[[ xX]\]|- \[[ xX]\]) +(\S.*)$", re.M)
_CREATED = deferred_pattern(r"#(\d+)")
_MOST_PLAN_CHARS = 20_000


class Plan(Struct):
    """A plan as it stood after a call. Steps run in order; `after` holds those that wait for others besides, as pairs
    (the earlier, the later) of step numbers from 0.
    """

    call: ToolCall
    source: str
    """`todo` a list written whole, `text` a plan in prose, `task` tasks created one by one."""
    steps: list[str]
    after: set[tuple[int, int]] = field(default_factory=set)


def plans(view: SessionView) -> list[Plan]:
    """Return every state of a plan on the main thread that has steps, in order. Rejected calls count only for `text`,
    which the person has read all the same."""
    handed_in: list[Plan] = []
    tasks = _Tasks()
    for call in view.calls:
        if call.class_ != "plan":
            continue
        roles = decode_roles(call.argument_roles)
        try:
            arguments = msgspec.json.decode(call.arguments, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            arguments = {}
        listed: list[str] = []
        for key in roles.steps:
            if isinstance(arguments.get(key), list):
                listed = [step for item in arguments[key] if (step := _step(item, roles))]
                break
        if listed:
            handed_in.append(Plan(call, "todo", listed))
        elif (prose := next((p for name in roles.plan if isinstance(p := arguments.get(name), str)), None)) is not None:
            if steps := text_steps(prose):
                handed_in.append(Plan(call, "text", steps))
        elif call.status != "rejected":
            plan = tasks.take(call, arguments, roles, view.result_text(call))
            if plan is not None and handed_in and handed_in[-1].source == "task" and tasks.still_making:
                handed_in[-1] = plan
            elif plan is not None:
                handed_in.append(plan)
    return handed_in


def _step(item: Any, roles: Roles) -> str:
    if isinstance(item, dict):
        item = next((item[k] for k in roles.step if item.get(k)), "")
    return " ".join(item.split()) if isinstance(item, str) else ""


def text_steps(text: str) -> list[str]:
    """Return the numbered steps of a plan in prose, else its bullets; empty with fewer than two."""
    bare = _FENCE.sub("\n", text[:_MOST_PLAN_CHARS])
    for pattern in (_NUMBERED, _BULLETED):
        steps = [" ".join(step.split()) for step in pattern.findall(bare)]
        if len(steps) > 1:
            return steps
    return []


class _Tasks:
    """Tasks created one call at a time. The calls that create the first ones are one plan together."""

    def __init__(self) -> None:
        self._steps: dict[str, str] = {}
        self._after: set[tuple[str, str]] = set()
        self._done: set[str] = set()
        self.still_making = True

    def take(self, call: ToolCall, arguments: dict[str, Any], roles: Roles, result: str) -> Plan | None:
        """Return the plan after this call; None when the call did not change it."""
        before = dict(self._steps), set(self._after)
        if roles.task not in arguments:
            if not (step := _step(arguments, roles)):
                return None
            numbered = _CREATED.search(result[:200])
            self._steps[numbered.group(1) if numbered else str(len(self._steps) + 1)] = step
        else:
            task_id, state = str(arguments[roles.task]), arguments.get(roles.state)
            if state:
                self.still_making = False
            if task_id not in self._steps:
                return None
            if state == "completed":
                self._done.add(task_id)
            if state == "deleted":
                if task_id not in self._done:  # clearing away what is done changes no plan
                    del self._steps[task_id]
            elif words := _step(arguments.get(roles.task_name), roles):
                self._steps[task_id] = words
            self._after |= {(other, task_id) for other in _names(arguments.get(roles.waits_for))}
            self._after |= {(task_id, other) for other in _names(arguments.get(roles.holds_up))}
            if before == (self._steps, self._after):
                return None
        at = {task_id: n for n, task_id in enumerate(self._steps)}
        after = {(at[a], at[b]) for a, b in self._after if a in at and b in at and at[a] != at[b]}
        return Plan(call, "task", list(self._steps.values()), after)


def _names(listed: Any) -> Iterator[str]:
    return (str(n) for n in listed if isinstance(n, str | int)) if isinstance(listed, list) else iter(())


# Edit distance of two plans as graphs, exact by branch and bound within a limit of steps. networkx needs NumPy and
# SciPy for it, and stops by the clock: the same session would have another value on a slower machine.

MOST_TRIED = 3_000
"""Most partial mappings that are tried; plans of twelve steps rarely need a hundred."""
_GONE = -1

Edges = set[tuple[int, int]]


class Distance(Struct, frozen=True):
    """Insertions, deletions and substitutions that turn one graph into the other."""

    edits: int
    exact: bool
    """False where the search ended early, so that fewer edits may do."""
    largest: int
    """Nodes and edges of both graphs: the cost of removing one and building the other."""


def distance(alike: list[list[bool]], n_second: int, first: Edges, second: Edges) -> Distance:
    """Return the edit distance of two directed graphs. `alike[i][j]`: node i of the first has the label of node j of
    the second, so that replacing it is free; every other change of a node or an edge costs 1."""
    # Branch and bound over mappings of the first graph's nodes, one after the other. Sets of nodes are bits of a
    # number: a test of each of thousands of mappings costs an operation or two.
    n_first = len(alike)
    every = (1 << n_second) - 1
    like = [_mask(j for j, same in enumerate(row) if same) for row in alike]
    like_to = [_mask(i for i in range(n_first) if alike[i][j]) for j in range(n_second)]
    # For each node its edges from and to other nodes; of the first graph's those with nodes before it.
    before = [(_mask(a for a, b in first if b == i and a < i), _mask(b for a, b in first if a == i and b < i))
              for i in range(n_first)]  # fmt: skip
    there = [(_mask(a for a, b in second if b == j), _mask(b for a, b in second if a == j)) for j in range(n_second)]
    edges_from = [sum(1 for a, b in first if a >= i or b >= i) for i in range(n_first + 1)]
    pairs = [1 << a | 1 << b for a, b in second]

    def edges_of(nodes: int) -> int:
        return sum([1 for pair in pairs if pair & nodes])

    def cost_of_mapping(i: int, j: int, free: int, mapping: list[int]) -> int:
        """Return the cost of mapping node `i` to `j`, with its edges to the nodes decided before it."""
        edges = before[i][0].bit_count() + before[i][1].bit_count()
        if j == _GONE:
            return 1 + edges
        kept, taken = 0, every & ~free
        for mine, theirs in zip(before[i], there[j], strict=True):
            edges += (theirs & taken).bit_count()
            for other in _bits(mine):
                kept += mapping[other] != _GONE and theirs >> mapping[other] & 1
        return (not like[i] >> j & 1) + edges - 2 * kept

    def cost_of_rest(free: int) -> int:
        """Return the cost of the nodes of the second graph without a counterpart, and of their edges."""
        return free.bit_count() + edges_of(free)

    mapping = _in_order(alike, n_second)
    best, free, tried = 0, every, 0
    for i, j in enumerate(mapping):
        best += cost_of_mapping(i, j, free, mapping)
        free &= ~(1 << j) if j != _GONE else every
    best += cost_of_rest(free)

    def search(i: int, cost: int, free: int) -> None:
        """Try every free counterpart for node `i` and the nodes after it."""
        nonlocal best, tried
        tried += 1
        # A lower bound of the remaining cost: nodes without a like one, and surplus edges on one side.
        matched = min(
            sum([1 for row in like[i:] if row & free]),
            sum([1 for j, row in enumerate(like_to) if row >> i and free >> j & 1]),
        )
        at_least = max(n_first - i, free.bit_count()) - matched + abs(edges_from[i] - edges_of(free))
        if tried > MOST_TRIED or cost + at_least >= best:
            return
        if i == n_first:
            best = cost + cost_of_rest(free)  # the bound was exact here, so this is better
            return
        for j in [*_bits(free & like[i]), *_bits(free & ~like[i]), _GONE]:
            mapping[i] = j
            search(i + 1, cost + cost_of_mapping(i, j, free, mapping), free if j == _GONE else free & ~(1 << j))

    search(0, 0, every)
    return Distance(best, tried <= MOST_TRIED, n_first + n_second + len(first) + len(second))


def _mask(nodes: Iterable[int]) -> int:
    return sum({1 << node for node in nodes})


def _bits(mask: int) -> list[int]:
    nodes = []
    while mask:
        nodes.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return nodes


def _in_order(alike: list[list[bool]], n_second: int) -> list[int]:
    """Return the cheapest mapping of nodes that keeps their order: the start of the search, and mostly its result."""
    n = len(alike)
    costs = [[0] * (n_second + 1) for _ in range(n + 1)]
    for i in range(n, -1, -1):
        for j in range(n_second, -1, -1):
            if i == n or j == n_second:
                costs[i][j] = (n - i) + (n_second - j)
            else:
                paired = costs[i + 1][j + 1] + (not alike[i][j])
                costs[i][j] = min(paired, costs[i + 1][j] + 1, costs[i][j + 1] + 1)
    mapping = [_GONE] * n
    i = j = 0
    while i < n and j < n_second:
        if costs[i][j] == costs[i + 1][j + 1] + (not alike[i][j]):
            mapping[i] = j
            i, j = i + 1, j + 1
        elif costs[i][j] == costs[i + 1][j] + 1:
            i += 1
        else:
            j += 1
    return mapping
