"""The export for a team: no text of a store comes through in any writing, nobody is alone in a figure, and a file that
holds anything else is refused."""

from __future__ import annotations

import base64
import codecs
import json
import random
import re
import shutil
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentsignals.cli import main
from agentsignals.errors import ExportError
from agentsignals.export import team as export
from agentsignals.ingest.corpus_signals import versions_on_ask
from agentsignals.ingest.shard import session_entry, signal_versions
from agentsignals.model import Session
from agentsignals.signals.catalog import measure
from agentsignals.store import Store, parquet, shards, sidecars, tables
from agentsignals.store.index import ShardEntry
from agentsignals.store.parquet import signal_rows
from agentsignals.ui import sharing as team_page
from agentsignals.ui.snapshot import Snapshot
from agentsignals.views.session import SessionView
from tests.build import START, call, say, session, user
from tests.questions.stores import store_of

WEEK = 7 * 86_400 * 1_000_000
AGENT, MODEL = "claude-code", "claude-opus-4-5"
CLOSED = {
    ("sessions", "context"), ("signals", "signal"), ("signals", "level"), ("signals", "absent"),
    ("tool_calls", "status"), ("charges", "cause"), ("repeated_calls", "kind"),
}  # fmt: skip
"""Columns whose words are ours: with others in them there would be nothing to export. All other columns of text are
planted, each row with words of its own."""
KEYS = frozenset(("session_id", "thread", "call_id", "artifact_id", "trial_id"))
"""Columns that join tables: what stood there is another word, the same everywhere."""


def talk(n: int, week: int = 0, **facts: Any) -> Session:
    """An ordinary session that began in that week, with a failed call and a price."""
    made = session(
        user("fix it, please"),
        say("Looking.", model=facts.pop("model", MODEL), input_tokens=1000 + n, output_tokens=100),
        call("Bash", command="pytest -q", status="error" if n % 2 else "ok", result="1 failed"),
        call("Edit", path="a.py", old_string="x", new_string="y"),
        user("thanks, that works"),
        session_id=f"s{n}-{week}",
        **facts,
    )
    made.agent = facts.get("agent", AGENT)
    for row in [*made.events, *made.turns, *made.steps]:
        row.timestamp = None if row.timestamp is None else row.timestamp + week * WEEK
    made.started_at, made.ended_at = START + week * WEEK + n, START + week * WEEK + n + 60_000_000
    return made


def exported(store: Store) -> export.Team:
    return export.team(Snapshot(store).rows)


# -- no text -----------------------------------------------------------------------------------------------------------


class Planter:
    """Makes words that stand nowhere else, and remembers them."""

    def __init__(self) -> None:
        self._chance = random.Random(18)  # noqa: S311  (draws)
        self.words: dict[str, str] = {}
        """Each with its column."""
        self._keys: dict[str, str] = {}

    def word(self, column: str) -> str:
        made = "".join(self._chance.choices(string.ascii_letters, k=14))
        self.words[made] = column
        return made

    def key(self, column: str, before: str) -> str:
        if before not in self._keys:
            self._keys[before] = self.word(column)
        return self._keys[before]

    def planted(self, name: str, table: pa.Table) -> pa.Table:
        """The table with words of ours for every text in it, and where there was none."""
        for at, field in enumerate(table.schema):
            if (name, field.name) in CLOSED:
                continue
            column, old = f"{name}.{field.name}", table.column(at).to_pylist()
            if field.type == pa.string():
                table = table.set_column(at, field, pa.array([self._text(column, v) for v in old], field.type))
            elif field.type == pa.list_(pa.string()):
                table = table.set_column(at, field, pa.array([[self.word(column)] for _ in old], field.type))
        return table

    def _text(self, column: str, before: str | None) -> str:
        name = column.partition(".")[2]
        if name in KEYS and before is not None:
            return before if before == "main" else self.key(column, before)
        if column in ("sessions.agent", "sessions.model") and before in (AGENT, MODEL):
            return before
        return json.dumps(self.word(column)) if column in ("signals.value", "signals.detail") else self.word(column)


def planted_store(folder: Path) -> tuple[Store, dict[str, str]]:
    """A store with words of ours in every column of text of every table."""
    store, planter = Store(folder, create=True), Planter()
    sessions = [talk(n) for n in range(7)] + [talk(n, week=1, agent="x", model="y") for n in range(6)]
    rows, attempts = [], []
    for made in sessions:
        results = measure(SessionView(made))
        rows.append(signal_rows(made, results))
        attempts += shards.attempt_rows(made, results)
    whole = shards.shard_rows(sessions, rows, attempts).tables
    with shards.Draft(folder, "one") as draft:
        for name in tables.NAMES:
            table = whole.get(name)
            if table is None or not table.num_rows:
                table = parquet.SCHEMAS[name].empty_table()
                table = pa.Table.from_pylist([dict.fromkeys(table.schema.names)], table.schema)
                assert name in (
                    *("artifacts", "checkpoints", "labels", "charges", "repeated_calls", "cache_losses", "attempts"),
                )
            draft.add({name: planter.planted(name, table)})
    store.manifest.shards["one"] = ShardEntry(signals=signal_versions(), tables=draft.parts)
    store.manifest.across_signals = versions_on_ask()  # the planted values are no numbers to compute with
    for made, figures in zip(sessions, map(tables.totals, sessions), strict=True):
        name = planter.key("sessions.session_id", made.session_id)
        store.manifest.sessions[name] = session_entry("one", "f", made.context, figures)
    store.save()
    with sidecars.changing(folder) as held:
        for name in tables.OF_REPOSITORIES:
            schema = parquet.SCHEMAS[name]
            one = pa.Table.from_pylist([dict.fromkeys(schema.names)], schema)
            held.put(f"repos/x/{name}", planter.planted(name, one))
    return Store(folder), planter.words


WRITINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "backwards": lambda word: word[::-1],
    "rot13": lambda word: codecs.encode(word, "rot13"),
    "hex": lambda word: word.encode().hex(),
    "wide hex": lambda word: word.encode("utf-16-le").hex(),
    "base32": lambda word: base64.b32encode(word.encode()).decode().rstrip("=")[:-1],
    "base85": lambda word: base64.b85encode(word.encode()).decode()[:-5],
    "quoted": lambda word: quote(word).replace(word, "".join(f"%{ord(c):02x}" for c in word)),
    "escaped": lambda word: "".join(f"\\u{ord(c):04x}" for c in word),
    "entities": lambda word: "".join(f"&#{ord(c)};" for c in word),
    "a number": lambda word: str(int.from_bytes(word.encode())),
    "numbers": lambda word: ", ".join(str(ord(c)) for c in word),
    **{
        f"base64 at {n}": lambda word, n=n: base64.b64encode(b"x" * n + word.encode()).decode()[4 * (n > 0) : -4]
        for n in range(3)
    },
}


def leaks(text: str, words: dict[str, str]) -> dict[str, str]:
    """Words of which six letters stand in a text, with their columns; of each column one word in any writing."""
    low = text.lower()
    six = {low[n : n + 6] for n in range(len(low))}
    seen = {w: c for w, c in words.items() if any(w.lower()[n : n + 6] in six for n in range(len(w) - 5))}
    of_columns = {column: word for word, column in words.items()}
    return seen | {w: c for c, w in of_columns.items() for write in WRITINGS.values() if write(w).lower() in low}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, str]]:
    return planted_store(tmp_path_factory.mktemp("planted") / "store")


def test_every_column_of_text_is_planted(planted: tuple[Store, dict[str, str]]) -> None:
    store, words = planted
    columns = {
        f"{name}.{field.name}"
        for name in (*tables.NAMES, *tables.OF_REPOSITORIES)
        for field in parquet.SCHEMAS[name]
        if field.type in (pa.string(), pa.list_(pa.string())) and (name, field.name) not in CLOSED
    }
    held: set[str] = set()
    for path in store.folder.rglob("*.parquet"):
        for column in pq.read_table(path).columns:
            for value in column.to_pylist():
                texts = value if isinstance(value, list) else [value]
                held |= {text.strip('"') for text in texts if isinstance(text, str)}
    in_files = {words[word] for word in held & words.keys()}
    of_keys = {column for column in columns if column.partition(".")[2] in KEYS}
    assert len(columns) > 90 and columns - of_keys <= in_files
    assert {"sessions.agent", "sessions.model", "sessions.session_id"} <= in_files


@pytest.mark.parametrize("ending", [".json", ".html"])
def test_no_text_of_any_column_comes_through_in_any_writing(
    planted: tuple[Store, dict[str, str]], tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, words = planted
    path = tmp_path / f"team{ending}"
    assert main(["share", "--team", "--out", str(path), "--store", str(store.folder)]) == 0
    text = path.read_text("utf-8")
    assert leaks(text, words) == {} == leaks(capsys.readouterr().out, words)
    made = team_page.checked(path)
    assert {(c.agent, c.model, c.sessions) for c in made.cells} == {
        (AGENT, MODEL, 7),
        (export.OTHER_AGENT, export.OTHER_MODEL, 6),
    }
    assert made.spreads and made.proof.strings > 100 and made.proof.vocabulary in text


def test_a_word_that_did_come_through_would_be_seen(planted: tuple[Store, dict[str, str]]) -> None:
    word, column = next(iter(planted[1].items()))
    for name, write in WRITINGS.items():
        assert leaks(f'{{"agent": "xx{write(word)}yy"}}', {word: column}) == {word: column}, name


# -- nobody alone ------------------------------------------------------------------------------------------------------


def of(folder: Path, *sessions: Session) -> export.Team:
    return exported(store_of(folder, *sessions))


def test_figures_are_those_of_the_sessions(tmp_path: Path) -> None:
    [cell] = of(tmp_path / "s", *(talk(n) for n in range(6))).cells
    assert (cell.week, cell.agent, cell.model, cell.sessions) == ("2026-W01", AGENT, MODEL, 6)
    assert (cell.prompts, cell.calls, cell.failed_calls) == (12, 12, 3)
    assert cell.input_tokens == 6015 and cell.output_tokens == 600 and cell.cost_usd
    assert sum(cell.outcomes.values()) == 6


@pytest.mark.parametrize(
    ("groups", "cells", "left_out"),
    [
        ([(AGENT, MODEL, 5)], {(AGENT, MODEL): 5}, 0),
        ([(AGENT, MODEL, 6), (AGENT, "claude-haiku-4-5", 4)], {(AGENT, MODEL): 6}, 1),
        ([(AGENT, MODEL, 3), (AGENT, "claude-haiku-4-5", 2)], {(AGENT, "several"): 5}, 0),
        ([(AGENT, MODEL, 5), ("pi", MODEL, 3), ("opencode", MODEL, 3)], {(AGENT, MODEL): 5, ("several",) * 2: 6}, 0),
    ],
)
def test_cells_of_fewer_than_five_stand_with_others_or_nowhere(
    tmp_path: Path, groups: list[tuple[str, str, int]], cells: dict[tuple[str, str], int], left_out: int
) -> None:
    sessions: list[Session] = []
    for agent, model, n in groups:
        sessions += [talk(len(sessions) + k, agent=agent, model=model) for k in range(n)]
    made = of(tmp_path / "s", *sessions)
    assert {(c.agent, c.model): c.sessions for c in made.cells} == cells and made.proof.cells_left_out == left_out
    assert {s.n for s in made.spreads} <= {c.sessions for c in made.cells} | {0} | set(range(5, 7))
    assert sum(c.sessions for c in made.cells) == sum(cells.values()), "no sum has what no cell shows"


def test_sessions_without_a_time_stand_together(tmp_path: Path) -> None:
    sessions = [talk(n) for n in range(6)]
    for made in sessions:
        made.started_at = made.ended_at = None
    made = of(tmp_path / "s", *sessions)
    assert [(c.week, c.sessions) for c in made.cells] == [("no_week", 6)]
    assert export.check(export.encode(made)) == made


def test_too_few_sessions_are_no_export(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="No agent has 5 sessions in one week"):
        of(tmp_path / "s", *(talk(n, week=n) for n in range(8)))


@pytest.mark.parametrize(
    ("counted", "shown"),
    [
        ({"accepted": 9}, {"accepted": 9}),
        ({"accepted": 9, "failed": 4}, {}),
        ({"accepted": 9, "failed": 6, "no_verdict": 2}, {"accepted": 9}),
        ({"accepted": 9, "failed": 3, "no_verdict": 2}, {"accepted": 9}),
    ],
)
def test_an_outcome_of_few_is_not_told_by_subtraction(counted: dict[str, int], shown: dict[str, int]) -> None:
    assert export.frequent_outcomes(export.Counter(counted)) == shown


# -- what is no export -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> export.Team:
    return of(tmp_path_factory.mktemp("team") / "s", *(talk(n) for n in range(6)))


def changes(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Files that hold something else, each by one change."""
    document = json.loads(content)

    def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
        copy = json.loads(content)
        change(copy)
        return json.dumps(copy, indent=1, sort_keys=True).encode() + b"\n"

    yield "a text for an agent", changed(lambda d: d["cells"][0].update(agent="marion"))
    yield "a text for a week", changed(lambda d: d["cells"][0].update(week="marion-W0"))
    yield "a day", changed(lambda d: d["cells"][0].update(week="2026-01-01"))
    yield "a week that is none", changed(lambda d: d["cells"][0].update(week="2026-W99"))
    yield "other digits", changed(lambda d: d["cells"][0].update(week="202\u0666-W01"))
    yield "a field more", changed(lambda d: d["cells"][0].update(title="x"))
    yield "a field more of a known word", changed(lambda d: d["cells"][0].update(n=1))
    yield "a text for a signal", changed(lambda d: d["spreads"][0].update(signal="user.secret"))
    yield "a text for an outcome", changed(lambda d: d["cells"][0]["outcomes"].update(marion=7))
    yield "a long number", changed(lambda d: d["cells"][0].update(input_tokens=1234567.0))
    yield "a fine number", changed(lambda d: d["spreads"][0].update(mean=0.123456))
    yield "a huge number", changed(lambda d: d["cells"][0].update(calls=int.from_bytes(b"marion was here")))
    yield "another hash", changed(lambda d: d["proof"].update(vocabulary="6d6172696f6e" + "0" * 52))
    yield "a count of the proof", changed(lambda d: d["proof"].update(strings=d["proof"]["strings"] + 1))
    yield "a small cell", changed(lambda d: d["cells"][0].update(sessions=4))
    yield "a small outcome", changed(lambda d: d["cells"][0].update(outcomes={"accepted": 2}))
    yield "a cell twice", changed(lambda d: d["cells"].append(document["cells"][0]))
    yield "a blank", content.replace(b"\n", b" \n", 1)
    yield "an escape", content.replace(b'"claude-code"', b'"cl\\u0061ude-code"', 1)
    yield (
        "a field twice",
        content.replace(b'"agent": "claude-code"', b'"agent": "marion",\n   "agent": "claude-code"', 1),
    )
    yield "something behind", content + b"\n"
    yield "another encoding", b"\xff" + content
    yield "no export", b"{}"
    yield "nothing", b""


def test_a_file_that_holds_anything_else_is_refused_and_not_repeated(made: export.Team) -> None:
    content = export.encode(made)
    assert export.check(content) == made
    for name, other in changes(content):
        assert other != content, name
        with pytest.raises(ExportError) as refused:
            export.check(other)
        assert "marion" not in refused.value.message, name


def test_a_page_is_what_its_data_gives_and_nothing_else(made: export.Team, tmp_path: Path) -> None:
    page = team_page.document(made)
    path = tmp_path / "team.html"
    path.write_bytes(page)
    assert team_page.checked(path) == made
    text = page.decode()
    others = [
        text.replace("<h2>Weeks", "<h2>Wceks"),
        text.replace("</body>", "<!-- marion --></body>"),
        text.replace("2026-W01", "2026-W02", 1),
        text.replace(' id="data"', ""),
        text + "x",
    ]
    for other in others:
        assert other != text
        path.write_text(other)
        with pytest.raises(ExportError):
            team_page.checked(path)
    assert not re.search(r"<script|src=|href=|https?:", text)


def test_the_verb_checks_a_file_and_takes_one_wish_at_a_time(
    made: export.Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "team.json"
    path.write_bytes(export.encode(made))
    assert main(["share", "--check", str(path)]) == 0 and "no text" in capsys.readouterr().out
    path.write_text("{}")
    assert main(["share", "--check", str(path)]) == 1
    assert main(["share", "--check", str(tmp_path / "no.json")]) == 1
    for wrong in (["--team"], ["s1", "--team", "--out", "x.html"], ["--check", "x", "--out", "y"], [], ["s1"]):
        assert main(["share", *wrong]) == 2, wrong
    shutil.rmtree(tmp_path)
