"""What is printed drives no terminal and runs in no spreadsheet, whatever traces, files and their names hold."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from agentsignals.cli import main
from agentsignals.store import Store
from agentsignals.words.text import inert, of_inert, visible_in_json
from tests.claude import Log

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x9b31m\x85\x7f\x00\x08\r\x0c\u202ex\u2066\u2028\u2029\u200b\ufeff\u061c\xad\U000e0041"
)
"""Escapes of 7 and 8 bits, moves of the cursor, what turns a line around, ends it, or is not seen."""
DRIVES = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions whose every text is hostile, in files whose names are, and one file that nothing reads."""
    made = tmp_path_factory.mktemp("visible")
    traces = made / "traces" / "\x1b[31mred\u202e"
    traces.mkdir(parents=True)
    for name, first in (("a", "look " + HOSTILE), ("b", "=cmd|'/c calc'!A1")):
        log = Log(session=f"s-{name}-\x1b[31m\u202e", name=name, cwd=f"/work/\x1b[31m{HOSTILE[1:]}".replace("\x00", ""))
        log.base["gitBranch"] = log.base["version"] = HOSTILE
        log.user(first)
        log.say(HOSTILE)
        log.ran("Bash", HOSTILE, error=HOSTILE, command=f"cat '{HOSTILE}'", description=HOSTILE)
        log.ran(f"mcp__{HOSTILE}__x", HOSTILE, path=HOSTILE)
        log.ran("Write", HOSTILE, file_path=f"/work/{HOSTILE}.py", content=HOSTILE)
        log.user("no, that is wrong " + HOSTILE)
        text = "\n".join(log.lines).replace('"model": "', f'"model": "x{json.dumps(HOSTILE)[1:-1]}')
        (traces / f"{name}\x9b\n\x1b.jsonl").write_text(text + "\n{cut \x1b[31m\n")
    (traces / "\x1b[31mnone.jsonl").write_text('{"type": "user"\x1b')
    assert main(["analyze", str(made / "traces"), "--store", str(made / "store"), "--jobs", "1", "--quiet"]) == 0
    return made


def _verbs(folder: Path) -> list[list[str]]:
    first, traces = next(iter(sorted(Store(folder / "store").manifest.sessions))), str(folder / "traces")
    out = folder / "\x1b[31mout"
    out.mkdir(exist_ok=True)
    return [
        ["analyze", traces],
        ["analyze", traces + HOSTILE.replace("\x00", "")],
        ["analyze", traces, "--format", HOSTILE],
        ["analyze", traces, "--no-report"],
        ["measure"],
        ["sessions"],
        ["sessions", "--where", f"agent = '{HOSTILE}'"],
        ["show", first],
        ["show", first, "--all"],
        ["show", HOSTILE],
        ["explain", first, "behavior.edit_calls"],
        ["explain", first, "behavior.test_runs"],
        ["explain", first, "request.first_prompt_tokens"],
        ["explain", first, HOSTILE],
        ["query", "SELECT * FROM sessions"],
        ["query", "SELECT * FROM turns"],
        ["query", "SELECT * FROM tool_calls"],
        ["query", "SELECT * FROM artifacts"],
        ["query", "SELECT * FROM signals"],
        ["query", "SELECT text FROM events", "--csv"],
        ["query", "SELECT * FROM sessions", "--csv"],
        ["query", "SELECT * FROM artifacts", "--csv"],
        ["query", f'SELECT 1 AS "{HOSTILE.replace(chr(0), "")}"', "--csv"],
        ["query", "SELECT chr(27) || '[31m' AS a, [chr(155)] AS b, {'c': chr(8238)} AS c"],
        ["query", f"SELECT {HOSTILE} FROM x"],
        ["inventory", HOSTILE],
        ["doctor"],
        ["report", "-o", str(out / "report.md")],
        ["export", "--to", "otel", "-o", str(out / "otel")],
        ["export", "--to", HOSTILE, "-o", str(out / "x")],
        ["compare", "--by", "model"],
        ["compare", "--by", HOSTILE],
        ["collect", "--dry-run", str(folder / "traces")],
        ["attribute", str(folder / "traces")],
        ["scan", str(folder / "traces")],
        ["agree", "sentiment"],
        ["agree", HOSTILE],
        ["label", "sentiment", "--estimate"],
        ["label", HOSTILE],
        ["label", "--take", str(out / "none")],
        ["annotate", "sentiment", "--as", "ann", "--sample", "2"],
        ["annotate", HOSTILE, "--as", HOSTILE],
        ["replicate", str(out / "none.yaml")],
        ["lab", "list"],
        ["lab", HOSTILE.replace("\x00", "")],
        ["serve", "--port", "99999999"],
        ["nonsense" + HOSTILE],
        ["query", "--" + HOSTILE],
    ]


@pytest.mark.slow
def test_no_verb_prints_what_drives_a_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{HOSTILE}\ns\nq\n"))
    answered = set()
    for words in _verbs(folder):
        for more in ([], ["--json"]):
            code = main([*words, "--store", str(folder / "store"), *more])
            out, err = capsys.readouterr()
            assert not DRIVES.search(out), (words, ascii(DRIVES.findall(out)))
            assert not DRIVES.search(err), (words, ascii(DRIVES.findall(err)))
            assert code == 0 or out + err, words
            if code == 0:
                answered.add(words[0])
            if more and out:
                json.loads(out)
    assert {"analyze", "sessions", "show", "explain", "query", "doctor", "report", "measure"} <= answered


def test_json_gives_the_text_as_it_was(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = "SELECT text FROM turns WHERE turn = 0 ORDER BY text DESC LIMIT 1"
    assert main(["query", asked, "--json", "--store", str(folder / "store")]) == 0
    ((text,),) = [row.values() for row in json.loads(capsys.readouterr().out)]
    assert text == Store(folder / "store").sql(asked).fetchall()[0][0] and "\x9b" in text and "\u202e" in text


@pytest.mark.slow
def test_a_report_holds_no_control_characters(folder: Path) -> None:
    for name in ("r.html", "r.md", "r.json"):
        assert main(["report", "-o", str(folder / name), "--store", str(folder / "store")]) == 0
        text = (folder / name).read_text("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text.split("/*! Vega")[0]), name


@pytest.mark.parametrize("live", [
    "=1+1", "+A1", "-A1", "@SUM(1)", "\t=1", "\r=1", " =1", "\n=1", '"=1', "'=1", "\uff1d1", "\ufeff=1", "\u200b=1",
    "\xa0=1", "=cmd|'/c calc'!A1", "--x", "-2+3+cmd|' /C calc'!A0",
])  # fmt: skip
def test_a_cell_that_would_run_does_not(live: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inert(live) == f"'{live}" and of_inert(inert(live)) == live
    quoted = live.replace("'", "''")
    asked = f"SELECT '{quoted}' AS \"{live.replace(chr(34), chr(34) * 2)}\", '{quoted}'"
    assert main(["query", asked, "--csv", "--store", str(folder / "store")]) == 0
    for row in csv.reader(io.StringIO(capsys.readouterr().out)):
        assert row and all(cell.startswith("'") for cell in row)


def test_numbers_and_plain_texts_stay_what_they_are(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = "SELECT -5 AS a, -1.5::DOUBLE AS b, -2.50::DECIMAL(9, 2) AS c, '-7' AS d, NULL AS e, 'a=b' AS f, true AS g"
    assert main(["query", asked, "--csv", "--store", str(folder / "store")]) == 0
    assert capsys.readouterr().out == "a,b,c,d,e,f,g\n-5,-1.5,-2.50,-7,,a=b,True\n"


def test_more_rows_than_are_held_are_refused_but_as_csv(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentsignals.cli.explore.MOST_ROWS", 20_000)
    for rows, more, code in ((20_000, [], 0), (20_001, [], 1), (20_001, ["--json"], 1), (20_001, ["--csv"], 0)):
        assert main(["query", f"FROM range({rows})", "--store", str(folder / "store"), *more]) == code
        out = capsys.readouterr().out
        assert code or len(out.splitlines()) >= rows


def test_escapes_in_json_are_read_back_as_what_they_stand_for() -> None:
    document = json.dumps({"a": HOSTILE + "\U000e0041"}, ensure_ascii=False)
    safe = visible_in_json(document)
    assert not DRIVES.search(safe) and json.loads(safe) == json.loads(document)
