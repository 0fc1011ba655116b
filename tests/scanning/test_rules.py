"""Every rule: what it must find, what it must leave alone, and that no text keeps it busy."""

from __future__ import annotations

import re
import time

import pytest

from agentsignals.scanning.languages import language_of, place_of
from agentsignals.scanning.own_rules import OwnRules, scan_one
from agentsignals.scanning.rules import rules
from agentsignals.scanning.rules.patterns import piles_up
from agentsignals.scanning.scanner import SourceFile
from tests.scanning.samples import all_samples

SAMPLES = all_samples()
LARGE = 60_000


def found(path: str, text: str) -> list[str]:
    return [one.rule for one in scan_one(path, text.encode()).findings]


def test_every_rule_has_samples_and_every_sample_a_rule() -> None:
    assert {rule.id for rule in rules()} == set(SAMPLES)
    assert len({rule.id for rule in rules()}) == len(rules()) >= 50


@pytest.mark.parametrize("rule", sorted(SAMPLES))
def test_a_rule_finds_what_it_is_for_once(rule: str) -> None:
    for text in SAMPLES[rule].finds:
        assert found(SAMPLES[rule].path, text).count(rule) == 1, text


@pytest.mark.parametrize("rule", sorted(SAMPLES))
def test_a_rule_leaves_look_alikes_alone(rule: str) -> None:
    for text in SAMPLES[rule].leaves:
        assert rule not in found(SAMPLES[rule].path, text), text


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_a_rule_says_what_it_is_about(rule: object) -> None:
    told = next(one for one in rules() if one is rule)
    assert told.cwe and all(re.fullmatch(r"CWE-\d{1,4}", cwe) for cwe in told.cwe)
    assert told.message.endswith(".") and told.languages and told.version >= 1
    assert told.severity in ("low", "medium", "high") and told.confidence in ("low", "medium", "high")


@pytest.mark.parametrize("rule", sorted(SAMPLES))
def test_no_text_of_60_000_characters_keeps_a_rule_busy(rule: str) -> None:
    """Samples again and again, their beginnings, and their single pieces: what near misses are made of."""
    path = SAMPLES[rule].path
    texts = {text for text in SAMPLES[rule].finds for _ in (0,)} | {t[: len(t) * 2 // 3] for t in SAMPLES[rule].finds}
    texts |= {word for text in SAMPLES[rule].finds for word in re.findall(r"\S+", text)[:6]}
    for text in sorted(texts):
        for joint in ("\n", " ", ""):
            whole = (text + joint) * (LARGE // (len(text) + len(joint)) + 1)
            lines = "\n".join(whole[at : at + 4_900] for at in range(0, LARGE, 4_900))
            began = time.process_time()
            scan_one(path, lines.encode())
            assert time.process_time() - began < 3, (text[:60], joint)


@pytest.mark.parametrize(
    "text",
    [
        "/*" * 30_000,
        "`" * 59_999,
        '"' * 59_999,
        "'\\" * 30_000,
        "<!--" * 15_000,
        "(" * 60_000,
        "[" * 60_000,
        "a = " + "(" * 500,
        "-" * 60_000 + "1",
        "f(" * 3_000 + ")" * 3_000,
        "${{" * 20_000,
        "x." * 30_000,
        "not " * 9_000 + "x",
    ],
)
@pytest.mark.parametrize(
    "path", ["a.py", "a.ts", "a.go", "a.html", "a.php", "Dockerfile", ".github/workflows/a.yml", "a.sh"]
)
def test_hostile_texts_are_scanned_in_time_or_left_out_with_a_reason(path: str, text: str) -> None:
    lines = "\n".join(text[at : at + 4_900] for at in range(0, len(text), 4_900))
    began = time.process_time()
    for whole in (text, lines):
        told = scan_one(path, whole.encode())
        assert told.skipped in (None, "unparsed", "minified")
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"eval(x)\n\xff\xfe", None),
        (b"\0\0eval(x)", "not_text"),
        (b"x" * 1_000_001, "too_large"),
        (b"y" * 5_001, "minified"),
        (b"", None),
    ],
)
def test_what_can_not_be_scanned_says_why(data: bytes, reason: str | None) -> None:
    assert scan_one("a.js", data).skipped == reason


def test_what_python_can_not_parse_is_said_and_rules_over_its_text_still_apply() -> None:
    told = scan_one("a.py", b"def f(:\nURL = 'postgres://app:h7nter22@db1.shop.net/x'\n")
    assert (told.skipped, [one.rule for one in told.findings]) == ("unparsed", ["any-address-with-password"])


def test_lines_are_counted_as_everybody_counts_them() -> None:
    [one] = scan_one("a.py", b"x = 1\r\n\r\nsubmit(\r\n  eval(\r\n    y\r\n  ))\r\n").findings
    assert (one.rule, one.line, one.end_line, one.text) == ("py-eval", 4, 6, "eval( y ))")


def test_a_finding_is_known_again_by_its_text_without_white_space() -> None:
    [one] = scan_one("a.ts", b"a()\neval( text )\nb()").findings
    [two] = scan_one("a.ts", b"x()\n\n\n    eval(text)\n").findings
    assert one.match == scan_one("b.ts", b"a()\neval( text )\nb()").findings[0].match
    assert one.around != two.around


@pytest.mark.parametrize(
    ("path", "language", "place"),
    [
        ("a/b.py", "python", "code"),
        ("Dockerfile.dev", "dockerfile", "code"),
        ("a.TSX", "javascript", "code"),
        ("README.md", None, "code"),
        ("tests/a.go", "go", "test"),
        ("pkg/a_test.go", "go", "test"),
        ("src/a.test.ts", "javascript", "test"),
        ("contest/a.py", "python", "code"),
        ("node_modules/x/a.js", "javascript", "vendored"),
        ("a.min.js", "javascript", "vendored"),
        ("LICENSE", None, "code"),
        ("", None, "code"),
    ],
)
def test_language_and_place_by_the_path(path: str, language: str | None, place: str) -> None:
    assert (language_of(path), place_of(path)) == (language, place)


def test_the_version_names_the_rules() -> None:
    assert OwnRules().version.startswith(f"{len(rules())}-")
    assert OwnRules().scan([SourceFile("a.md", b"eval(x)")])[0].findings == []


@pytest.mark.parametrize(
    ("pattern", "slow"),
    [
        ("(a+)+", True),
        ("(a*)*", True),
        (r"(\w+\s*)+", True),
        ("(?:a+){2,}", True),
        ("(?P<n>a+)*", True),
        ("(a|a)*", False),
        ("(a+b)+", False),
        ("(a+){3}", False),
        (r"\(a+\)+", False),
        ("[(a+)]+", False),
        ("(ab)+", False),
        ("((", False),
        (")", False),
        ("\\", False),
    ],
)
def test_patterns_whose_repetitions_pile_up(pattern: str, slow: bool) -> None:
    assert piles_up(pattern) is slow
