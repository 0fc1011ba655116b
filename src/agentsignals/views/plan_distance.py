"""Edit distance of two plans as graphs: exact by branch and bound, within a bound on the work that no clock decides.

A library's search (networkx) needs NumPy and SciPy for it, and stops by the clock: the same session would have another
value on a slower machine.
"""

from __future__ import annotations

from msgspec import Struct, field

MOST_TRIED = 3_000
"""Partial mappings looked at; plans of twelve steps rarely need a hundred."""
_UNDECIDED, _GONE = -1, -2

Edges = set[tuple[int, int]]


class Distance(Struct, frozen=True):
    """Insertions, deletions and substitutions that turn one graph into the other."""

    edits: int
    exact: bool
    """False: the search ended early, and fewer may do."""
    largest: int
    """Nodes and edges of both graphs: what taking one apart and building the other anew would cost."""


def distance(alike: list[list[bool]], n_second: int, first: Edges, second: Edges) -> Distance:
    """Edit distance of two directed graphs. `alike[i][j]` says whether node i of the first has the label of node j of
    the second, which makes replacing it free; every other change of a node or an edge costs 1.
    """
    search = _Search(alike=alike, n_second=n_second, first=first, second=second)
    search.best = search.cost_of(_in_order(alike, n_second))
    search.go(0, 0)
    largest = len(alike) + n_second + len(first) + len(second)
    return Distance(search.best, search.tried <= MOST_TRIED, largest)


def _in_order(alike: list[list[bool]], n_second: int) -> list[int]:
    """The cheapest mapping of nodes that keeps their order: the start of the search, and mostly its end."""
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


class _Search(Struct, kw_only=True):
    """Decides node after node of the first graph where it goes; gives up what can't beat the best known."""

    alike: list[list[bool]]
    n_second: int
    first: Edges
    second: Edges
    best: int = 0
    tried: int = 0
    mapping: list[int] = field(default_factory=list)

    def cost_of(self, mapping: list[int]) -> int:
        """What a whole mapping costs."""
        self.mapping = [_UNDECIDED] * len(self.alike)
        cost = 0
        for i, j in enumerate(mapping):
            cost += self._step(i, j)
            self.mapping[i] = j
        cost += self._left()
        self.mapping = [_UNDECIDED] * len(self.alike)
        return cost

    def go(self, i: int, cost: int) -> None:
        """Tries every place for node `i` and those behind it."""
        self.tried += 1
        if self.tried > MOST_TRIED or cost + self._at_least(i) >= self.best:
            return
        if i == len(self.alike):
            self.best = cost + self._left()  # `_at_least` was exact here, so this is better
            return
        taken = set(self.mapping)
        free = [j for j in range(self.n_second) if j not in taken]
        for j in [*sorted(free, key=lambda j: not self.alike[i][j]), _GONE]:
            step = self._step(i, j)
            self.mapping[i] = j
            self.go(i + 1, cost + step)
            self.mapping[i] = _UNDECIDED

    def _step(self, i: int, j: int) -> int:
        """What sending node `i` to `j` costs, with its edges to the nodes decided before it."""
        cost = 1 if j == _GONE or not self.alike[i][j] else 0
        for before in range(i):
            there = self.mapping[before]
            for mine, theirs in (((before, i), (there, j)), ((i, before), (j, there))):
                kept = _GONE not in (j, there) and theirs in self.second
                cost += (mine in self.first) != kept
        return cost

    def _left(self) -> int:
        """What the nodes of the second graph that none was sent to cost, and their edges."""
        reached = set(self.mapping)
        new = sum(1 for j in range(self.n_second) if j not in reached)
        return new + sum(1 for a, b in self.second if a not in reached or b not in reached)

    def _at_least(self, i: int) -> int:
        """What is still to pay at the least: nodes without a like one, and edges that are too many on one side."""
        taken = set(self.mapping)
        free = [j for j in range(self.n_second) if j not in taken]
        open_ = range(i, len(self.alike))
        matched = min(
            sum(1 for k in open_ if any(self.alike[k][j] for j in free)),
            sum(1 for j in free if any(self.alike[k][j] for k in open_)),
        )
        edges = sum(1 for a, b in self.first if a >= i or b >= i)
        others = sum(1 for a, b in self.second if a not in taken or b not in taken)
        return max(len(open_), len(free)) - matched + abs(edges - others)
