"""Tasks about lists and dictionaries."""

from __future__ import annotations

from agentsignals.lab.coding_tasks.relations import always, becomes, idempotent, unchanged
from agentsignals.lab.coding_tasks.task import task

FAMILY = "gathering"

TASKS = (
    task(
        "group_by_length(words: list[str]) -> dict[int, list[str]]",
        "Gather the words by their length. Each word occurs once in its group; groups hold them in alphabetical order.",
        family=FAMILY,
        visible=[((["to", "be", "cat"],), {2: ["be", "to"], 3: ["cat"]}), ((["a"],), {1: ["a"]})],
        hidden=[(([],), {}), ((["b", "a", "b"],), {1: ["a", "b"]}), ((["", "x"],), {0: [""], 1: ["x"]})],
        relations=(
            unchanged("order", lambda words: (words[::-1],)),
            unchanged("every word twice", lambda words: (words + words,)),
        ),
        reference="""
def group_by_length(words):
    groups = {}
    for word in sorted(set(words)):
        groups.setdefault(len(word), []).append(word)
    return groups
""",
        wrong="""
def group_by_length(words):
    groups = {}
    for word in sorted(words):
        groups.setdefault(len(word), []).append(word)
    return groups
""",
    ),
    task(
        "flatten(nested: list) -> list[int]",
        "The list holds whole numbers and further such lists, to any depth. Give all numbers in their order.",
        family=FAMILY,
        visible=[(([1, [2, 3]],), [1, 2, 3]), (([[4], 5],), [4, 5])],
        hidden=[(([],), []), (([[[[1]]], [[], 2]],), [1, 2]), (([0, [0, [0]]],), [0, 0, 0])],
        relations=(
            idempotent(),
            unchanged("one list around", lambda nested: ([nested],)),
            becomes("a number more", lambda nested: ([*nested, [9]],), lambda out: [*out, 9]),
        ),
        reference="""
def flatten(nested):
    flat = []
    for item in nested:
        flat.extend(flatten(item) if isinstance(item, list) else [item])
    return flat
""",
        wrong="""
def flatten(nested):
    flat = []
    for item in nested:
        flat.extend(item if isinstance(item, list) else [item])
    return flat
""",
    ),
    task(
        "unique_in_order(items: list[int]) -> list[int]",
        "Give every number once, in the order in which the numbers occur last.",
        family=FAMILY,
        visible=[(([3, 1, 2],), [3, 1, 2]), (([5, 5],), [5])],
        hidden=[(([1, 2, 1],), [2, 1]), (([],), []), (([4, 7, 4, 7, 9, 4],), [7, 9, 4])],
        relations=(
            idempotent(),
            becomes(
                "the first again",
                lambda items: (items + items[:1],) if len(set(items)) == len(items) and items else None,
                lambda out: out[1:] + out[:1],
            ),
        ),
        reference="""
def unique_in_order(items):
    return list(dict.fromkeys(reversed(items)))[::-1]
""",
        wrong="""
def unique_in_order(items):
    return list(dict.fromkeys(items))
""",
    ),
    task(
        "chunks(items: list[int], size: int) -> list[list[int]]",
        """Cut the list into pieces of `size` in their order. The last piece may be shorter. A size below 1 gives no
        pieces.""",
        family=FAMILY,
        visible=[(([1, 2, 3, 4], 2), [[1, 2], [3, 4]]), (([1], 1), [[1]])],
        hidden=[(([1, 2, 3], 2), [[1, 2], [3]]), (([], 3), []), (([1, 2], 5), [[1, 2]]), (([1, 2], 0), [])],
        relations=(
            always("nothing lost", lambda out, items, size: size < 1 or [n for piece in out for n in piece] == items),
            always("no piece longer", lambda out, _items, size: all(0 < len(p) <= size for p in out)),
        ),
        reference="""
def chunks(items, size):
    return [items[at:at + size] for at in range(0, len(items), size)] if size > 0 else []
""",
        wrong="""
def chunks(items, size):
    return [items[at * size:(at + 1) * size] for at in range(len(items) // size)]
""",
    ),
    task(
        "merge_counts(a: dict[str, int], b: dict[str, int]) -> dict[str, int]",
        "Add the counts of both, name by name. Names whose sum is 0 are left out.",
        family=FAMILY,
        visible=[(({"x": 1}, {"y": 2}), {"x": 1, "y": 2}), (({"x": 1}, {"x": 4}), {"x": 5})],
        hidden=[
            (({}, {}), {}),
            (({"x": 2}, {"x": -2}), {}),
            (({"p": 0, "q": 3}, {}), {"q": 3}),
            (({"x": -1}, {"y": -1}), {"x": -1, "y": -1}),
        ],
        relations=(
            unchanged("either first", lambda a, b: (b, a)),
            unchanged("nothing added", lambda a, b: ({**a, "none of it": 0}, b)),
        ),
        reference="""
def merge_counts(a, b):
    together = {name: a.get(name, 0) + b.get(name, 0) for name in [*a, *b]}
    return {name: n for name, n in together.items() if n}
""",
        wrong="""
from collections import Counter

def merge_counts(a, b):
    return dict(Counter(a) + Counter(b))
""",
    ),
    task(
        "invert(mapping: dict[str, str]) -> dict[str, list[str]]",
        "For each value, give the names that have it, in alphabetical order.",
        family=FAMILY,
        visible=[(({"a": "x", "b": "y"},), {"x": ["a"], "y": ["b"]}), (({"k": "v"},), {"v": ["k"]})],
        hidden=[(({},), {}), (({"b": "x", "a": "x"},), {"x": ["a", "b"]}), (({"a": "a", "": "a"},), {"a": ["", "a"]})],
        relations=(
            unchanged("order", lambda mapping: (dict(reversed(list(mapping.items()))),)),
            always("as many names", lambda out, mapping: sum(map(len, out.values())) == len(mapping)),
        ),
        reference="""
def invert(mapping):
    found = {}
    for name in sorted(mapping):
        found.setdefault(mapping[name], []).append(name)
    return found
""",
        wrong="""
def invert(mapping):
    return {value: [name] for name, value in mapping.items()}
""",
    ),
    task(
        "top_scorers(scores: dict[str, int], least: int) -> list[str]",
        "Give the names whose score is at least `least`, the best first; of equal scores, in alphabetical order.",
        family=FAMILY,
        visible=[(({"ann": 5, "bob": 9}, 5), ["bob", "ann"]), (({"cy": 1}, 2), [])],
        hidden=[(({"b": 3, "a": 3, "c": 4}, 3), ["c", "a", "b"]), (({}, 0), []), (({"z": -1, "y": 0}, -1), ["y", "z"])],
        relations=(
            unchanged("order", lambda scores, least: (dict(reversed(list(scores.items()))), least)),
            unchanged("all raised", lambda scores, least: ({n: s + 2 for n, s in scores.items()}, least + 2)),
        ),
        reference="""
def top_scorers(scores, least):
    return sorted((n for n in scores if scores[n] >= least), key=lambda n: (-scores[n], n))
""",
        wrong="""
def top_scorers(scores, least):
    return sorted((n for n in scores if scores[n] >= least), key=scores.get, reverse=True)
""",
    ),
    task(
        "pairs_with_sum(numbers: list[int], total: int) -> int",
        "Count the pairs of places i < j in the list whose numbers add up to `total`.",
        family=FAMILY,
        visible=[(([1, 2, 3], 4), 1), (([5, 1], 6), 1), (([1, 2], 9), 0)],
        hidden=[(([2, 2, 2], 4), 3), (([], 0), 0), (([1, 3, 1, 3], 4), 4), (([0], 0), 0), (([-1, 1, 0, 0], 0), 2)],
        relations=(
            unchanged("order", lambda numbers, total: (numbers[::-1], total)),
            unchanged("all raised by one", lambda numbers, total: ([n + 1 for n in numbers], total + 2)),
        ),
        reference="""
from collections import Counter

def pairs_with_sum(numbers, total):
    seen, pairs = Counter(), 0
    for n in numbers:
        pairs += seen[total - n]
        seen[n] += 1
    return pairs
""",
        wrong="""
def pairs_with_sum(numbers, total):
    there = set(numbers)
    return len([n for n in there if total - n in there and n < total - n])
""",
    ),
)
