"""Tasks about intervals and ranges of whole numbers."""

from __future__ import annotations

from agentsignals.lab.coding_tasks.relations import always, becomes, follows, idempotent, unchanged
from agentsignals.lab.coding_tasks.task import task

FAMILY = "ranges"

TASKS = (
    task(
        "merge_intervals(intervals: list[list[int]]) -> list[list[int]]",
        """Each interval is a list [start, end] with start <= end. Join those that overlap or touch (share an end
        point) and give the joined ones in order of their starts. The list that comes in must stay as it was.""",
        family=FAMILY,
        visible=[(([[2, 5], [4, 8], [10, 12]],), [[2, 8], [10, 12]]), (([[1, 3]],), [[1, 3]])],
        hidden=[
            (([[1, 9], [2, 3], [4, 5]],), [[1, 9]]),
            (([[6, 7], [1, 2]],), [[1, 2], [6, 7]]),
            (([],), []),
            (([[1, 2], [2, 4]],), [[1, 4]]),
        ],
        relations=(
            unchanged("order", lambda intervals: (intervals[::-1],)),
            idempotent(),
            unchanged("an interval twice", lambda intervals: (intervals + intervals[:1],)),
        ),
        reference="""
def merge_intervals(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged
""",
        wrong="""
def merge_intervals(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = end
        else:
            merged.append([start, end])
    return merged
""",
    ),
    task(
        "free_gaps(busy: list[list[int]], start: int, end: int) -> list[list[int]]",
        """`busy` holds [from, to] pairs in any order, which may overlap. Give the stretches between `start` and
        `end` that no pair covers, in order, as [from, to] with from < to.""",
        family=FAMILY,
        visible=[(([[2, 4], [6, 8]], 0, 10), [[0, 2], [4, 6], [8, 10]]), (([], 1, 5), [[1, 5]])],
        hidden=[
            (([[0, 10]], 2, 8), []),
            (([[5, 7], [1, 6]], 0, 9), [[0, 1], [7, 9]]),
            (([[-3, 1], [9, 20]], 0, 10), [[1, 9]]),
            (([[1, 8], [2, 3]], 0, 9), [[0, 1], [8, 9]]),
        ],
        relations=(
            unchanged("order", lambda busy, start, end: (busy[::-1], start, end)),
            becomes(
                "all one later",
                lambda busy, start, end: ([[a + 1, b + 1] for a, b in busy], start + 1, end + 1),
                lambda out: [[a + 1, b + 1] for a, b in out],
            ),
        ),
        reference="""
def free_gaps(busy, start, end):
    gaps, at = [], start
    for begin, stop in sorted(busy):
        if begin > at:
            gaps.append([at, min(begin, end)])
        at = max(at, stop)
        if at >= end:
            return [gap for gap in gaps if gap[0] < gap[1]]
    gaps.append([at, end])
    return [gap for gap in gaps if gap[0] < gap[1]]
""",
        wrong="""
def free_gaps(busy, start, end):
    gaps, at = [], start
    for begin, stop in sorted(busy):
        if begin > at:
            gaps.append([at, begin])
        at = stop
    if at < end:
        gaps.append([at, end])
    return gaps
""",
    ),
    task(
        "most_at_once(stays: list[list[int]]) -> int",
        """Each stay is [from, to]: somebody is there from `from` up to, but not including, `to`. Give the largest
        number of people who are there at one moment.""",
        family=FAMILY,
        visible=[(([[1, 4], [2, 5], [7, 9]],), 2), (([[1, 2]],), 1)],
        hidden=[(([],), 0), (([[1, 3], [3, 5]],), 1), (([[1, 9], [2, 8], [3, 4], [5, 6]],), 3), (([[2, 2]],), 0)],
        relations=(
            unchanged("order", lambda stays: (stays[::-1],)),
            becomes("everybody twice", lambda stays: (stays + stays,), lambda out: 2 * out),
        ),
        reference="""
def most_at_once(stays):
    moments = sorted([(a, 1) for a, b in stays if a < b] + [(b, -1) for a, b in stays if a < b])
    most = now = 0
    for _, step in moments:
        now += step
        most = max(most, now)
    return most
""",
        wrong="""
def most_at_once(stays):
    most = 0
    for start, _ in stays:
        most = max(most, sum(1 for a, b in stays if a <= start <= b))
    return most
""",
    ),
    task(
        "to_ranges(numbers: list[int]) -> str",
        """Write the distinct whole numbers (0 or more) in increasing order, three or more consecutive ones as
        `first-last`, others by themselves, separated by commas without blanks.""",
        family=FAMILY,
        visible=[(([1, 2, 3, 7],), "1-3,7"), (([5],), "5"), (([1, 2, 9],), "1,2,9")],
        hidden=[(([],), ""), (([3, 1, 2, 2],), "1-3"), (([8, 9, 10, 11, 1, 20],), "1,8-11,20"), (([4, 5],), "4,5")],
        relations=(
            unchanged("order", lambda numbers: (numbers[::-1],)),
            unchanged("each number twice", lambda numbers: (numbers + numbers,)),
        ),
        reference="""
def to_ranges(numbers):
    runs = []
    for n in sorted(set(numbers)):
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ",".join(f"{r[0]}-{r[-1]}" if len(r) > 2 else ",".join(map(str, r)) for r in runs)
""",
        wrong="""
def to_ranges(numbers):
    runs = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ",".join(f"{r[0]}-{r[-1]}" if len(r) > 2 else ",".join(map(str, r)) for r in runs)
""",
    ),
    task(
        "expand_ranges(text: str) -> list[int]",
        """The text is like `1-3,7`: numbers and ranges (both ends included) separated by commas, with blanks
        anywhere around them. Give all numbers, each once, in increasing order. An empty text has none.""",
        family=FAMILY,
        visible=[(("1-3,7",), [1, 2, 3, 7]), (("5",), [5]), (("2, 4-5",), [2, 4, 5])],
        hidden=[(("",), []), (("5-6,1",), [1, 5, 6]), (("1-3,2-4",), [1, 2, 3, 4]), ((" 8 - 9 ",), [8, 9])],
        relations=(
            unchanged("order of the parts", lambda text: (",".join(reversed(text.split(","))),)),
            always("increasing", lambda out, _text: out == sorted(set(out))),
        ),
        reference="""
def expand_ranges(text):
    found = set()
    for part in text.split(","):
        if part.strip():
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return sorted(found)
""",
        wrong="""
def expand_ranges(text):
    found = []
    for part in text.split(","):
        if part.strip():
            first, _, last = part.partition("-")
            found.extend(range(int(first), int(last or first) + 1))
    return found
""",
    ),
    task(
        "overlap(a: list[int], b: list[int]) -> int",
        "Both are ranges [first, last] of whole numbers, both ends included. Give how many numbers lie in both.",
        family=FAMILY,
        visible=[(([1, 5], [4, 9]), 2), (([1, 3], [5, 9]), 0), (([0, 9], [2, 4]), 3)],
        hidden=[(([1, 3], [3, 6]), 1), (([7, 9], [1, 2]), 0), (([-4, -1], [-2, 5]), 2)],
        relations=(
            unchanged("either first", lambda a, b: (b, a)),
            unchanged("both moved", lambda a, b: ([n + 100 for n in a], [n + 100 for n in b])),
        ),
        reference="""
def overlap(a, b):
    return max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1)
""",
        wrong="""
def overlap(a, b):
    return max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1) if a[1] > b[0] else 0
""",
    ),
    task(
        "missing_numbers(numbers: list[int]) -> list[int]",
        """Give, in increasing order, the whole numbers between the smallest and the largest of `numbers` that are
        not among them.""",
        family=FAMILY,
        visible=[(([1, 2, 4, 7],), [3, 5, 6]), (([3, 4, 5],), [])],
        hidden=[(([],), []), (([9, 5],), [6, 7, 8]), (([2, 2, 4],), [3]), (([-2, 1],), [-1, 0])],
        relations=(
            unchanged("order", lambda numbers: (numbers[::-1],)),
            follows(
                "what was missing is added",
                lambda numbers: ([*numbers, max(numbers) + 2],) if numbers else None,
                lambda out, other: len(other) == len(out) + 1,
            ),
        ),
        reference="""
def missing_numbers(numbers):
    if not numbers:
        return []
    there = set(numbers)
    return [n for n in range(min(there), max(there) + 1) if n not in there]
""",
        wrong="""
def missing_numbers(numbers):
    missing = []
    for left, right in zip(numbers, numbers[1:]):
        missing.extend(range(left + 1, right))
    return missing
""",
    ),
    task(
        "clamp_all(values: list[int], low: int, high: int) -> list[int]",
        """Replace each value below `low` by `low` and above `high` by `high`. When `low` is larger than `high`, the
        two are swapped first.""",
        family=FAMILY,
        visible=[(([1, 5, 9], 2, 8), [2, 5, 8]), (([3], 0, 5), [3])],
        hidden=[(([], 0, 1), []), (([1, 5, 9], 8, 2), [2, 5, 8]), (([-5, 50], -1, -1), [-1, -1])],
        relations=(idempotent(), unchanged("bounds swapped", lambda values, low, high: (values, high, low))),
        reference="""
def clamp_all(values, low, high):
    low, high = min(low, high), max(low, high)
    return [min(max(value, low), high) for value in values]
""",
        wrong="""
def clamp_all(values, low, high):
    return [min(max(value, low), high) for value in values]
""",
    ),
)
