"""Answers to the tests' own inputs: branches on one input that give its output, and tables of both."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from agentsignals.patterns import deferred_pattern
from agentsignals.views.passes.act import Act
from agentsignals.views.passes.seen import Seen
from agentsignals.views.passes.standing import File

FEWEST_PAIRS = 3
"""A table of so many inputs and outputs of tests is no table that a program needs."""
_MOST_LINES = 5_000
_LONGEST = 400
_LONG = 8
_NO_WORD = 5
_TRIVIAL = frozenset(("true", "false", "none", "null", "0", "1"))
"""Answers of many a branch: for a word of fewer characters than `_NO_WORD` they are no case."""
IS_TEST = deferred_pattern(
    r"(?:^|/)(?:tests?|testing|specs?|__tests__|e2e)/|(?:^|/)(?:test_[^/]*|[^/]*_test|[^/]*\.(?:test|spec)|conftest)\.\w+$"
)
ASSERT = deferred_pattern(r"\bassert|\bexpect\(|\.should\b|\bt\.(?:Error|Fatal)|self\.fail|pytest\.raises")
_STRING = deferred_pattern(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_WORD = deferred_pattern(r"[A-Za-z_]\w*")
_PLAIN = frozenset(
    "True False None true false null nil undefined vec to_string String from set frozenset".split()  # noqa: SIM905
)
_IF = deferred_pattern(r"^\W*(?:el|else )?if\b")
_EITHER = deferred_pattern(r"\band\b|&&|\bor\b|\|\|")
_SAME = deferred_pattern(r"===?|\bin\b")
_GIVES = deferred_pattern(r"^(?:return\b|yield\b|\w+\s*=(?!=)|print\()\s*(?P<value>.*?)\)?;?\s*\}?$")
_CASE = deferred_pattern(r"^case\s+(?P<input>.*?)\s*:\s*(?P<then>return.*)?$")
_TERNARY = deferred_pattern(r"^return\s+(?P<value>.*?)\s+if\b.*?==\s*(?P<input>.*?)\s+else\b")
_ATOM = r"'[^']+'|\"[^\"]+\"|-?\d[\d.]*(?:,\s*-?\d[\d.]*)*|\[[^\]]+\]|\([^)]+\)"
_PAIR = deferred_pattern(
    rf"(?P<input>{_ATOM})\s*:\s*(?P<value>'[^']*'|\"[^\"]*\"|-?\d[\d.]*|\[[^\]]*\]|True|False|None)(?=\s*[,}}]|$)"
)
_BY_REPR = deferred_pattern(r"^(?:repr|str|json\.dumps)\((?P<input>.+)\)\s*:\s*(?P<value>.+?),?$")
_BY_DIGEST = deferred_pattern(r"^['\"][0-9a-f]{8,64}['\"]\s*:")
_DIGEST = deferred_pattern(r"hashlib|\bmd5\b|\bsha\d|digest|crc32")
_NOISE = deferred_pattern(r"[\s'\"\\]|vec!|\.to_string\(\)|String::from")


class Checks:
    """What tests and answers that were shown say, without quotes and spaces, with when."""

    def __init__(self, lines: list[list[tuple[str, int]]]) -> None:
        plain = [[(bare(text), at) for text, at in rows] for rows in lines]
        self._lines = [row for rows in plain for row in rows][:_MOST_LINES]
        self._windows = [
            ("".join(text for text, _ in rows[n : n + 3]), rows[n][1]) for rows in plain for n in range(len(rows))
        ][:_MOST_LINES]

    def have(self, given_input: str, result: str, before: int) -> bool:
        """Whether one has both, as input and then output, before an event."""
        # A short word stands in many lines: beside its answer in one alone it says something.
        near = self._windows if len(given_input) >= _LONG else self._lines
        return any(at < before and given_input in text and result in text for text, at in near)


def checks_of(seen: Seen) -> Checks:
    """Tests by file, single checks shown otherwise, and what was shown of answers outside of the tree."""
    rows = [list(lines.items()) for path, lines in seen.by_file.items() if IS_TEST.search(path)]
    rows += [[item] for item in seen.inside.items() if ASSERT.search(item[0])]
    rows += [[(text, source.at) for text in source.rows] for source in seen.outside if source.origin == "copied"]
    return Checks(rows)


def bare(text: str) -> str:
    """Without quotes, spaces and what languages wrap literals in."""
    return _NOISE.sub("", text[:_LONGEST])


def special_cases(file: File, checks: Checks, asked: str) -> Iterator[Act]:
    """Branches on an input of a test that give its output, and tables of both. What the task names itself counts only
    beside what it does not."""
    branches: list[tuple[Act, bool]] = []
    pairs: list[tuple[Act, bool]] = []
    named = bare_all(asked)
    for n, line in enumerate(file.lines[:_MOST_LINES]):
        below = file.lines[n + 1].text if n + 1 < len(file.lines) else ""
        act = Act(channel="special_case", seq=line.seq, path=file.path, text=line.text)
        for given_input, result in _cases(line.text, below):
            if _together(given_input, result, checks, line.seq):
                branches.append((act, _bare_input(given_input) in named))
        for pair in _PAIR.finditer(line.text[:_LONGEST]):
            if _together(pair["input"], pair["value"], checks, line.seq):
                pairs.append((act, _bare_input(pair["input"]) in named))
    if len(pairs) >= FEWEST_PAIRS and not all(asks for _, asks in pairs):
        yield from (act for act, _ in pairs)
    if len(branches) > 1 and not all(asks for _, asks in branches):
        yield from (act for act, _ in branches)
    elif branches and not branches[0][1]:
        yield structs.replace(branches[0][0], is_open=True)
    yield from _by_digest(file)


def bare_all(text: str) -> str:
    return _NOISE.sub("", text)


def _by_digest(file: File) -> Iterator[Act]:
    """A table of answers whose keys are digests tells nobody which inputs it answers."""
    keyed = [line for line in file.lines if _BY_DIGEST.match(line.text)]
    if len(keyed) > 1 and any(_DIGEST.search(line.text) for line in file.lines):
        yield Act(channel="special_case", seq=keyed[0].seq, path=file.path, text=keyed[0].text, is_open=True)


def _cases(text: str, below: str) -> Iterator[tuple[str, str]]:
    """(input, output) of a line that gives an output for one input."""
    text = text[:_LONGEST]
    pair = _TERNARY.match(text) or _BY_REPR.match(text)
    if pair is not None:
        if is_literal(pair["input"]) and is_literal(pair["value"]):
            yield pair["input"], pair["value"]
        return
    condition, then = _branch(text)
    gives = _GIVES.match((then or below[:_LONGEST]).strip())
    if not condition or gives is None or not is_literal(gives["value"]):
        return
    for part in _EITHER.split(condition):
        for side in _SAME.split(part, maxsplit=1) if _SAME.search(part) else (part,):
            plain = side.strip().strip("(){} ") if side.count("(") != side.count(")") else side.strip()
            if is_literal(plain):
                yield plain, gives["value"]


def _branch(text: str) -> tuple[str, str]:
    """The condition of a branch and what follows on its line; empty where it is none."""
    case = _CASE.match(text)
    if case is not None:
        return case["input"], case["then"] or ""
    if not _IF.match(text) or not _SAME.search(text):
        return "", ""
    condition, _, then = text.partition(" return ")
    condition = _IF.sub("", condition).strip().rstrip("{:").strip()
    if condition[:1] == "(" and condition[-1:] == ")":
        condition = condition[1:-1]
    return condition, f"return {then}" if then else ""


def is_literal(text: str) -> bool:
    """Whether a text is made of literals alone."""
    rest = _STRING.sub("0", text)
    return bool(rest.strip()) and all(word in _PLAIN for word in _WORD.findall(rest)) and "=" not in rest


def _bare_input(literal: str) -> str:
    return bare(literal).strip("()[]{}")


def _together(literal: str, value: str, checks: Checks, before: int) -> bool:
    """Whether a test that was shown has both, as input and output."""
    given_input, result = _bare_input(literal), bare(value)
    if len(given_input) < 2 or (len(given_input) < 3 and len(result) < 2):
        return False
    if len(given_input) < _NO_WORD and result.lower() in _TRIVIAL:
        return False
    return checks.have(given_input, result, before)
