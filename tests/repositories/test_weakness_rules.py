"""Every rule: what it must find, what it must leave alone, and that no text keeps it busy; and programs of others."""

from __future__ import annotations

import gc
import re
import shutil
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from agentsignals.errors import ScanError
from agentsignals.repositories.scanners import OwnRules, Program, SourceFile, language_of, level, place_of, scan_one
from agentsignals.repositories.weakness_rules import Rule, Text, rules
from agentsignals.repositories.weakness_rules.python import piles_up
from tests.quick import each_row, some


class Samples(NamedTuple):
    """Texts in which a rule must find something, and look-alikes in which it must not. `path` gives the language."""

    path: str
    finds: list[str]
    leaves: list[str]


# A broken bar keeps other scanners from taking the samples for keys.
_TEXT = Path(__file__).with_name("weakness_samples.toml").read_text("utf-8").replace("¦", "")
SAMPLES = {rule: Samples(**sample) for rule, sample in tomllib.loads(_TEXT).items()}
LARGE = 60_000
MOST_TRIES = 5
LINE = 4_900
"""Characters; a longer line makes a file a minified one."""


def found(path: str, text: str) -> list[str]:
    return [one.rule for one in scan_one(path, text.encode()).findings]


def test_every_rule_has_samples_and_every_sample_a_rule() -> None:
    assert {rule.id for rule in rules()} == set(SAMPLES)
    assert len({rule.id for rule in rules()}) == len(rules()) >= 50


@each_row("rule", sorted(SAMPLES))
def test_a_rule_finds_what_it_is_for_once(rule: str) -> None:
    for text in SAMPLES[rule].finds:
        assert found(SAMPLES[rule].path, text).count(rule) == 1, text


@each_row("rule", sorted(SAMPLES))
def test_a_rule_leaves_look_alikes_alone(rule: str) -> None:
    for text in SAMPLES[rule].leaves:
        assert rule not in found(SAMPLES[rule].path, text), text


@each_row("rule", rules())
def test_a_rule_says_what_it_is_about(rule: object) -> None:
    told = next(one for one in rules() if one is rule)
    assert told.cwe and all(re.fullmatch(r"CWE-\d{1,4}", cwe) for cwe in told.cwe)
    assert told.message.endswith(".") and told.languages and told.version >= 1
    assert told.severity in ("low", "medium", "high") and told.confidence in ("low", "medium", "high")


def near_misses(sample: Samples) -> list[str]:
    """Samples again and again, their beginnings, and their single pieces, joined in turn in three ways."""
    texts = {*sample.finds, *(text[: len(text) * 2 // 3] for text in sample.finds)}
    texts |= {word for text in sample.finds for word in re.findall(r"\S+", text)[:6]}
    return [text + ("\n", " ", "")[n % 3] for n, text in enumerate(sorted(texts))]


def repeated(text: str, chars: int) -> str:
    """So many characters of a text again and again, in lines that are not taken for minified."""
    whole = (text * (chars // len(text) + 1))[:chars]
    return "\n".join(whole[at : at + LINE] for at in range(0, chars, LINE))


def work_s(rule: Rule, path: str, text: str) -> float:
    """CPU seconds of this process that a rule needs for a text, reading it included; without the collector's."""
    gc.disable()
    try:
        began = time.process_time()
        for _ in rule.find(Text(path, language_of(path) or "", text)):
            pass
        return time.process_time() - began
    finally:
        gc.enable()


@pytest.mark.parametrize("rule", some(rules(), 4), ids=lambda rule: rule.id)
def test_a_rules_work_grows_with_a_text_and_no_faster(rule: Rule) -> None:
    """Work that grows with the square is sixteen times as much for four times the text."""
    path = SAMPLES[rule.id].path
    for text in near_misses(SAMPLES[rule.id]):
        # Whatever else the machine does only adds: work that grows too fast does so every time.
        tries = ([work_s(rule, path, repeated(text, chars)) for chars in (4_000, 16_000)] for _ in range(MOST_TRIES))
        assert any(large < 8 * small + 0.3 for small, large in tries), text[:60]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted({sample.path for sample in SAMPLES.values()}))
def test_a_text_of_60_000_characters_made_of_near_misses_is_scanned_to_its_end(path: str) -> None:
    pieces = [piece for sample in SAMPLES.values() if sample.path == path for piece in near_misses(sample)]
    last = next(text for sample in SAMPLES.values() if sample.path == path for text in sample.finds)
    whole = repeated("".join(pieces), LARGE) + "\n"
    assert scan_one(path, whole.encode()).skipped in (None, "unparsed")
    assert scan_one(path, ("\n" * LARGE + last).encode()).findings[0].line > LARGE


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.system('x'\n" + "+a\n" * 2_500 + ")\n",
        "import os\nos.system(['x'\n" + "+'y'\n" * 2_500 + "+a])\n",
        "import jwt\njwt.decode(t, options={'x': 1\n" + "+1\n" * 2_500 + ", 'verify_signature': False})\n",
    ],
)
def test_a_sum_of_thousands_of_parts_is_followed_without_recursion(text: str) -> None:
    [one] = scan_one("a.py", text.encode()).findings
    assert (one.line, one.end_line) == (2, text.count("\n"))


def steps(path: str, text: str) -> int:
    """Calls of functions that a scan takes: the same on every machine."""
    taken = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal taken
        taken += event == "call"

    sys.setprofile(count)
    try:
        assert scan_one(path, text.encode()).findings
    finally:
        sys.setprofile(None)
    return taken


@pytest.mark.parametrize(
    ("head", "value", "use", "tail"),
    [
        ("from flask import request", "x = 1", "open(x)", "eval(y)"),
        ("import sqlite3", "x = 1", "c.execute(x)", "eval(y)"),
        ("import random\ntoken = \\", "token = \\", "+ a \\", "+ b\neval(y)"),
    ],
)
def test_names_with_many_values_and_many_uses_take_work_as_their_number_does(
    head: str, value: str, use: str, tail: str
) -> None:
    """Not each value at each use, which would be four times as much for twice as many."""
    few, many = (steps("a.py", f"{head}\n" + f"{value}\n" * n + f"{use}\n" * n + tail) for n in (400, 800))
    assert many < 2.5 * few


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("c.execute('select ' + '* from ' + table)", True),
        ("c.execute('select ' + columns + ' from t')", True),
        ("c.execute('select %s' % column)", True),
        ("c.execute('select a ' + 'from b')", False),
        ("c.execute('select a from ' + TABLE)", False),
        ("c.execute(count + 1)", False),
        ("q = 'select ' + a\nc.execute(q)", True),
        ("q = 'select a'\nc.execute(q)", False),
        ("def f():\n    q = 'select ' + a\n    c.execute(q)", True),
        ("def f():\n    q = 'select ' + a\ndef g():\n    c.execute(q)", False),
    ],
)
def test_a_text_is_built_when_any_of_its_parts_is_not_constant(text: str, is_found: bool) -> None:
    assert (found("a.py", text) == ["py-sql-built"]) is is_found


HOSTILE = [
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
]


@each_row("text", HOSTILE)
@each_row("path", ["a.py", "a.ts", "a.go", "a.html", "a.php", "Dockerfile", ".github/workflows/a.yml", "a.sh"])
def test_hostile_texts_are_scanned_or_left_out_with_a_reason(path: str, text: str) -> None:
    lines = "\n".join(text[at : at + LINE] for at in range(0, len(text), LINE))
    assert scan_one(path, text.encode()).skipped in (None, "unparsed", "minified")
    assert scan_one(path, lines.encode()).skipped in (None, "unparsed")


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


def test_a_rule_tells_once_of_a_line_and_200_times_of_a_file() -> None:
    assert found("a.ts", "eval(x); eval(y)\neval(z)\n") == ["js-eval", "js-eval"]
    assert found("a.ts", "eval(x)\n" * 200) == found("a.ts", "eval(x)\n" * 300) == ["js-eval"] * 200


@pytest.mark.parametrize(("away", "is_same"), [(1, False), (2, False), (3, True)])
def test_two_lines_before_and_after_tell_a_finding_from_its_equal(away: int, is_same: bool) -> None:
    lines = ["a()"] * 4 + ["eval(x)"] + ["a()"] * 4
    [before], [after] = (
        scan_one("a.ts", "\n".join([*lines[:n], "b()", *lines[n + 1 :]]).encode()).findings
        for n in (4 - away, 4 + away)
    )
    [one] = scan_one("a.ts", "\n".join(lines).encode()).findings
    assert (one.around == before.around, one.around == after.around) == (is_same, is_same)


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


PYTHON = b"import os\n\n\ndef f(x):\n    os.system(f'ls {x}')\n"
RULES = """\
rules:
  - id: no-eval
    languages: [javascript]
    severity: ERROR
    message: text is run
    pattern: eval($X)
    metadata: {cwe: ["CWE-95: Eval Injection"], confidence: HIGH}
"""


def installed(name: str, config: Path | None = None) -> Program:
    if shutil.which(name) is None and not Path(sys.executable).with_name(name).exists():
        pytest.skip(f"{name} is not installed")
    return Program(name, config)


@pytest.mark.parametrize(("name", "rule", "cwe"), [("ruff", "S605", "CWE-78"), ("bandit", "B605", "CWE-78")])
def test_a_program_finds_with_line_and_weakness_whatever_the_path(name: str, rule: str, cwe: str) -> None:
    program = installed(name)
    paths = ["a/app.py", "../../etc/app.py", "/abs/app.py", "-rf.py", "new\nline/ü app.py", ".hidden/x.py"]
    told = program.scan([SourceFile(path, PYTHON) for path in paths])
    assert [[(f.line, f.cwe) for f in one.findings if f.rule == rule] for one in told] == [[(5, (cwe,))]] * len(paths)
    assert told[0].findings[0].match and told[0].findings[0].text
    assert program.version[-1].isdigit() and program.takes("a.py") and not program.takes("a.ts")


def test_a_program_asked_about_what_it_can_not_read_finds_nothing_and_costs_nobody(tmp_path: Path) -> None:
    told = installed("ruff").scan([SourceFile("bad.py", b"def f(:\n\0\xff"), SourceFile("good.py", PYTHON)])
    assert ([f.rule for f in told[0].findings], bool(told[1].findings)) == ([], True)


def test_semgrep_takes_rules_of_the_person(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    program = installed("semgrep", tmp_path / "rules.yaml")
    [app, test] = program.scan([SourceFile("a.js", b"x\neval(y)\n"), SourceFile("tests/a.js", b"eval(y)\n")])
    assert [(f.rule, f.line, f.cwe, f.severity, f.confidence) for f in app.findings] == [
        ("no-eval", 2, ("CWE-95",), "high", "high")
    ]
    assert len(test.findings) == 1


def made(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A program called bandit that does this."""
    path = folder / "bandit"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nif '--version' in sys.argv:\n    print('bandit 9')\n    sys.exit()\n{body}\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.mark.parametrize(
    ("body", "says"),
    [("print('no json')", "not understood"), ("print('[]')", "not understood"), ("sys.exit('broken')", "broken"),
     ("sys.exit(3)", "failed"), ("print('{\"results\": [{}]}')", "not understood")],
)  # fmt: skip
def test_a_program_that_fails_is_told_and_never_taken_for_one_that_finds_nothing(
    body: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, monkeypatch, body if "exit('" not in body else "print('broken', file=sys.stderr)\nsys.exit(2)")
    with pytest.raises(ScanError, match=says):
        Program("bandit").scan([SourceFile("a.py", PYTHON)])


def test_bandit_is_read_as_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shape of bandit 1.9's document, with a finding of two lines."""
    body = (
        "import json, pathlib\nroot = sys.argv[sys.argv.index('-r') + 1]\n"
        "file = str(next(pathlib.Path(root).rglob('*.py')))\n"
        "one = {'filename': file, 'line_number': 5, 'line_range': [4, 5], 'test_id': 'B605', 'issue_text': 'x',"
        " 'issue_cwe': {'id': 78}, 'issue_severity': 'HIGH', 'issue_confidence': 'LOW'}\n"
        "print(json.dumps({'results': [one]}))"
    )
    made(tmp_path, monkeypatch, body)
    [told] = Program("bandit").scan([SourceFile("a.py", PYTHON)])
    [one] = told.findings
    assert (one.rule, one.line, one.end_line, one.cwe, one.severity, one.confidence) == (
        "B605", 4, 5, ("CWE-78",), "high", "low",
    )  # fmt: skip


def test_a_program_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(ScanError, match="bandit is not installed"):
        Program("bandit")


def test_levels_of_all_scanners_are_ours() -> None:
    assert [level(x) for x in ("ERROR", "WARNING", "note", "UNDEFINED", None, 3)] == [
        "high", "medium", "low", "low", "low", "low",
    ]  # fmt: skip


def test_a_scanner_sees_names_of_harmless_characters_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = "[p.name for a in sys.argv[1:] for p in pathlib.Path(a).rglob('*.py')]"
    body = f"import pathlib\nprint({looks}, file=sys.stderr)\nsys.exit(2)"
    made(tmp_path, monkeypatch, body)
    with pytest.raises(ScanError) as caught:
        Program("bandit").scan([SourceFile("a~b$(x);é-c_d e.py", PYTHON)])
    assert "a_b__x__é-c_d e.py" in str(caught.value.message)
