"""Tables of secrets and look-alikes (`secret_forms.jsonl`): of each set nearly all are masked, by themselves and by
every way out; of look-alikes nearly none is changed."""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

from agentsignals.cli import main
from agentsignals.cli.mcp import Tools
from agentsignals.ingest import pipeline
from agentsignals.redaction import Redactor
from agentsignals.store import Store
from tests.claude import Log
from tests.test_doors import DRIVEN, Ran, to_file, written
from tests.ui.served import ask, serving


class Form(NamedTuple):
    kind: str
    text: str
    secrets: list[str]
    leaves: bool
    """The masker is known to miss it."""


def sets() -> dict[str, list[Form]]:
    """Return the forms of each set. A line with an object begins a set and says what was masked of it before a rule was
    mended on it; others are a class, a text and its made-up secrets, then null if they are missed. Texts without
    any are look-alikes."""
    found: dict[str, list[Form]] = {}
    for line in Path(__file__).with_name("secret_forms.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if isinstance(row, dict):
            forms = found.setdefault(row["set"], [])
        else:
            forms.append(Form(row[0], row[1], [*filter(None, row[2:])], row[-1] is None))
    return found


_lowered = lru_cache(maxsize=1)(str.lower)
"""Hundreds of forms are looked for in one text of megabytes."""


def left_in(text: str, secrets: list[str]) -> list[str]:
    """Return the secrets that stand in a text, in letters of any case."""
    low = _lowered(text)
    return [secret for secret in secrets if secret.lower() in low]


SETS = sets()
FORMS = [form for form in SETS["by class"] if form.secrets]
HARMLESS = [form.text for forms in SETS.values() for form in forms if not form.secrets]
SECRET_KINDS = frozenset(("key", "login", "private key", "secret"))
COMMANDS = ("options", "user and", "short options", "positional", "standard input", "variables", "headers", "broken")
SESSION = "7a1d2c3b-0000-4000-8000-{:012d}"
KINDS = [*dict.fromkeys(form.kind for form in FORMS)]
MOST = 0.05


@pytest.mark.parametrize("name", SETS)
def test_nearly_all_forms_are_masked_and_nearly_no_look_alike_is(name: str) -> None:
    forms = [form for form in SETS[name] if form.secrets]
    left = []
    for form in forms:
        told = (Redactor().text(form.text), Redactor().text(json.dumps({"command": form.text}, ensure_ascii=False)))
        left += [form] if any(left_in(out, form.secrets) for out in told) else []
    assert left == [form for form in forms if form.leaves]  # one that is masked stays masked
    assert len(left) <= MOST * len(forms), left
    harmless = [form.text for form in SETS[name] if not form.secrets]
    changed = []
    for text in harmless:
        redactor = Redactor()
        redactor.text(text)
        changed += [text] if redactor.counts.keys() & SECRET_KINDS else []
    assert len(changed) <= 0.02 * len(harmless), changed


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session for each class: its forms in commands, prompts, results and files."""
    folder = tmp_path_factory.mktemp("forms")
    (folder / "in").mkdir()
    for n, kind in enumerate(KINDS):
        log = Log(SESSION.format(n))
        log.wait(9000 * n)
        log.user("look at it, login again")
        for k, form in enumerate(form for form in FORMS if form.kind == kind):
            if kind.startswith(COMMANDS):
                log.ran("Bash", "Exit code 2\nFATAL", error=True, command=form.text)
            elif k % 3 == 0:
                log.user(form.text)
                log.say("I will look.")
            elif k % 3 == 1:
                log.ran("Bash", form.text, command="cat notes")
            else:
                log.ran("Edit", "ok", file_path="/w/a.py", old_string="a", new_string=form.text)
        (folder / "in" / f"s{n}.jsonl").write_bytes(log.data())
    pipeline.analyze([str(folder / "in")], folder / "store", jobs=1)
    return folder / "store"


def shared(ran: Ran, store: Path, tmp: Path) -> str:
    return "".join(
        to_file(f"{n}.html", "share", SESSION.format(n), "--out")(ran, store, tmp) for n in range(len(KINDS))
    )


def mcp(ran: Ran, store: Path, tmp: Path) -> str:
    tools = Tools(store, Redactor(b"k" * 32))
    told = [tools.show(SESSION.format(n), everything=True) for n in range(len(KINDS))]
    return "\n".join([*told, tools.query("SELECT text FROM events"), tools.query("SELECT arguments FROM tool_calls")])


def search_page(ran: Ran, store: Path, tmp: Path) -> str:
    with serving(Store(store)) as server:
        return "".join(
            ask(server, f"/search?q={word}").text for word in ("password", "token", "FATAL", "secret", "api")
        )


WAYS = {**{" ".join(way): run for way, run in DRIVEN.items() if way[0] != "analyze"}, "share SESSION": shared,
        "mcp ": mcp, "search page": search_page}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_nearly_all_forms_are_masked_by_every_way_out(
    way: str, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ran(*words: object) -> str:
        code = main([*map(str, words)])
        out = capsys.readouterr()
        assert code == 0, out
        return out.out

    told = WAYS[way](ran, store, tmp_path).replace("\\\\", "\\")
    assert told.strip()
    left = Counter(form.kind for form in FORMS if left_in(told, form.secrets))
    print(f"{way}: {left.total()} of {len(FORMS)} left")
    assert left.total() <= MOST * len(FORMS), left


def test_all_forms_are_in_the_store(store: Path) -> None:
    whole = written(store / "shards").replace("\\n", "\n").replace("\\\\", "\\")
    assert sum(bool(left_in(whole, form.secrets)) for form in FORMS) == len(FORMS)
