"""Scanners of others: run in earnest where they are installed, and told apart from their absence."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from agentsignals.errors import ScanError
from agentsignals.repositories.scanners import Program, SourceFile, level

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
