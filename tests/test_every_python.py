"""One result under every Python that is supported, where one of them is known to give another."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentsignals.model import MAIN, Step
from agentsignals.redaction import Redactor
from agentsignals.shell.tokens import simples
from agentsignals.views.usage import cost_of

ALL_PATTERNS = """
import importlib, pkgutil, re
from re import _compiler, _constants, _parser
made, compile_ = [], _compiler.compile
def compiled(pattern, flags=0):
    made.append((pattern, flags))
    return compile_(pattern, flags)
_compiler.compile = compiled
re.purge()
import agentsignals
for module in pkgutil.walk_packages(agentsignals.__path__, "agentsignals."):
    try:
        importlib.import_module(module.name)
    except ImportError as problem:
        if problem.name.startswith("agentsignals"):
            raise
from agentsignals.repositories.weakness_rules import rules
rules()
def groups_repeated(part):
    for name, value in part:
        if name is _constants.POSSESSIVE_REPEAT and not _compiler._simple(value[2]):
            yield value
        for inner in value if isinstance(value, tuple | list) else (value,):
            for one in inner if isinstance(inner, list) else [inner]:
                if isinstance(one, _parser.SubPattern):
                    yield from groups_repeated(one)
assert any(groups_repeated(_parser.parse("a|(b(?:cd)*+)")))
assert not any(groups_repeated(_parser.parse("[ab]*+(?>(?:cd)*)")))
for pattern, flags in made:
    if isinstance(pattern, str) and any(groups_repeated(_parser.parse(pattern, flags))):
        print("WRONG", pattern)
print(len(made))
"""
"""Prints every pattern of the program that repeats a group possessively, and how many patterns there are."""


@pytest.mark.slow
def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python 3.11.0 to 3.11.4 match such a repeat wrongly (CPython gh-106052): `(?>(?:…)*)` says the same in all."""
    command = [sys.executable, "-W", "ignore", "-c", ALL_PATTERNS]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    *wrong, count = said.stdout.split("\n")[:-1] or [said.stderr]
    assert not wrong and int(count) > 300, said.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("FOO=1 BAR='a b' pytest", ["FOO=1", "BAR=a b", "pytest"]),
        ("cut -d' ' -f2 x", ["cut", "-d ", "-f2", "x"]),
        (r"cat a\ b.py", ["cat", "a b.py"]),
        ("sed --in-place=.bak --expression='s/a/b/' x", ["sed", "--in-place=.bak", "--expression=s/a/b/", "x"]),
        ("make test 2>&1 2>/dev/null X", ["make", "test", "X"]),
        ("ls 2>/dev/nullx", ["ls"]),
    ],
)
def test_a_shell_line_is_split_into_these_words(command: str, words: list[str]) -> None:
    assert simples(command)[0][0] == words


def test_costs_are_added_without_an_error_of_rounding() -> None:
    """`sum` of floats rounds at every step up to Python 3.11, and once from 3.12 on."""
    steps = [
        Step(
            step=n,
            turn=0,
            thread=MAIN,
            seq=n,
            message_id=None,
            model="m",
            timestamp=None,
            output_tokens=1,
            cost_usd=0.1,
        )
        for n in range(10)
    ]
    assert cost_of(steps) == 1.0


@pytest.mark.parametrize(
    ("address", "is_masked"),
    [
        ("8.8.8.8", False),  # as a version could be
        ("93.184.216.34", True),
        ("192.0.0.8", False),
        ("192.88.99.1", True),
        ("100.64.0.1", False),
        ("2001:db8::1", False),
        ("2001:2::1", False),
        ("2001:20::5", True),
        ("2002:5db8:d822::1", True),
        ("2001:0:5db8:d822::1", True),
        ("3fff::1", False),
    ],
)
def test_which_addresses_are_of_the_open_net_is_no_matter_of_the_python(address: str, is_masked: bool) -> None:
    """`ipaddress` changed its mind in 3.11.10, 3.12.4 and 3.13."""
    assert ("[address" in Redactor().plain(f"from {address} on")) is is_masked
