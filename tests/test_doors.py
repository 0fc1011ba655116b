"""Each way out of the machine is in one list, and masks one planted set as the list says, in letters of any case."""

from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from agentsignals import export
from agentsignals.cli import build_parser, doors, main, masking, verbs
from agentsignals.cli.mcp import Tools
from agentsignals.ingest import pipeline
from agentsignals.redaction import Redactor
from agentsignals.redaction.values import RandomValues
from agentsignals.store import Store, secrets
from agentsignals.store.secrets import FILE, known_secrets
from tests.claude import Log

PLANTED = {
    "variable in a command": "Jd6pF4gM0uZx7r",
    "login in a command": "Bn5hT8cQ1yWs3e",
    "login in an address": "Tq9cV2hD7kMw4s",
    "title": "Rf4jM9bS2gXv6h",
    "file name": "Gs8wE5nC7mYd1k",
    "model name": "Pk6tB3rL8vNq2z",
    "version": "Lw3xN7dF5rJc9p",
    "branch": "Yb2vK8sG4hQm6t",
    "tool name": "Cf7zD3wP9nRx5j",
    "error": "Hm4qS6tB8kVz2d",
    "user name": "brunhildgard",
}
"""Named where they stand."""
BARE = {"bare": "Xk5rW2pZ7mTq", "bare and short": "vR8k-3nQ", "bare phrase": "Walnut-tram-47-Reef"}
"""Named in one session, bare in all others: in a title, a branch, a folder, a command, an error."""
UNNAMED = "q7Zk2Wm9Xv4Tb8Rn3Jd6Hs1Pf5"
"""Random, and named nowhere."""


def session(n: int) -> bytes:
    title = ("mend the page", f"DB_PASSWORD={PLANTED['title']} does not work, mend it", "mend the build")[n % 3]
    commands = (
        f"PGPASSWORD={PLANTED['variable in a command']} psql -h db",
        f"curl -u ops:{PLANTED['login in a command']} https://api.acme.io/deploy",
        f"git push https://bob:{PLANTED['login in an address']}@git.acme.io/shop.git",
        f"./login svc {' '.join(BARE.values())} {UNNAMED}",
    )
    log = Log(f"6f1d2c3b-0000-4000-8000-{n:012d}", cwd=f"/home/{PLANTED['user name']}/shop")
    log.base["gitBranch"] = f"fix/token={PLANTED['branch']}" if n % 2 else f"fix/{BARE['bare']}"
    log.base["version"] = f"2.0.30+token={PLANTED['version']}"
    log.wait(9000 * n)
    log.user(f"{title}, {BARE['bare']}")
    log.say("I will look.", model=f"acme/token={PLANTED['model name']}" if n == 0 else "claude-opus-4-1-20250805")
    for k in range(6):
        error = f"Exit code 2\nFATAL: password {BARE['bare and short']} refused. DB_PASSWORD={PLANTED['error']}"
        log.ran("Bash", error, error=True, command=commands[(n + k) % 4])
    path = f"/home/{PLANTED['user name']}/shop/redis://u:{PLANTED['file name']}@h/{BARE['bare phrase']}/a.py"
    log.ran("Edit", "ok", file_path=path, old_string="a", new_string=f"b{n}")
    log.ran(f"mcp__token={PLANTED['tool name']}", "ok")
    log.user("no, that is wrong again!")
    log.say("I tested it; all done.")
    if n == 11:
        for name, value in zip(("DB_PASSWORD", "API_TOKEN", "ADMIN_PASSWORD"), BARE.values(), strict=True):
            log.ran("Bash", f"{name}={value}", command="cat .env")
    return log.data()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doors")
    (folder / "in").mkdir()
    for n in range(12):
        (folder / "in" / f"s{n}.jsonl").write_bytes(session(n))
    pipeline.analyze([str(folder / "in")], folder / "store", jobs=1)
    return folder / "store"


def written(path: Path) -> str:
    """What files say, their names included."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return "\n".join(f"{p.name}\n" + (json.dumps(pq.read_table(p).to_pylist(), default=str, ensure_ascii=False)
                                       if p.suffix == ".parquet" else p.read_text("utf-8")) for p in files)  # fmt: skip


Ran = Callable[..., str]


def to_file(name: str, *words: str) -> Callable[[Ran, Path, Path], str]:
    def run(ran: Ran, store: Path, tmp: Path) -> str:
        ran(*words, tmp / name, "--store", store, "--quiet")
        return written(tmp / name)

    return run


def printed(*words: str) -> Callable[[Ran, Path, Path], str]:
    return lambda ran, store, tmp: ran(*words, "--store", store, "--quiet")


def study(ran: Ran, store: Path, tmp: Path) -> str:
    """The page of two labellers: the rules, and labels of a person."""
    gold = tmp / "ann.csv"
    rows = [f"{session_id},1,NEGATIVE" for session_id in sorted(Store(store).manifest.sessions)]
    gold.write_text("\n".join(["session_id,turn,label", *rows]), "utf-8")
    ran("label", "sentiment", "--from", gold, "--labeller", "human:ann", "--store", store, "--quiet")
    return to_file("study.html", "study", "sentiment", "--by", "rules", "--against", "human:ann", "-o")(ran, store, tmp)


def each_finding(ran: Ran, store: Path, tmp: Path) -> str:
    ids = [made["id"] for made in json.loads(ran("findings", "--json", "--store", store))["answers"]]
    assert ids
    return "\n".join(ran("findings", own, *form, "--store", store) for own in ids for form in ((), ("--json",)))


def mcp(ran: Ran, store: Path, tmp: Path) -> str:
    tools, ids = Tools(store, Redactor(b"k" * 32)), [f"6f1d2c3b-0000-4000-8000-{n:012d}" for n in (0, 1, 3)]
    asked = [tools.overview(), tools.findings(), tools.sessions(), tools.search("FATAL"), tools.search("login")]
    asked += [tools.show(own, everything=True) for own in ids]
    asked += [tools.event(ids[0], seq) for seq in range(12)]
    return "\n".join([*asked, tools.query("SELECT * FROM tool_calls"), tools.query("SELECT * FROM sessions")])


DRIVEN: dict[tuple[str, str], Callable[[Ran, Path, Path], str]] = {
    **{("report", form): to_file(f"report{form}", "report", "-o") for form in (".html", ".md", ".json")},
    **{("export", f"--to {name}"): to_file(name, "export", "--redact", "--to", name, "-o")
       for name in ("atif", "hub", "opentraces", "otel_genai", "parquet", "sts")},
    ("export", "--to training"): to_file("training", "export", "--to", "training", "--kind", "steps", "-o"),
    ("findings", ""): printed("findings"),
    ("findings", "--json"): printed("findings", "--json"),
    ("findings", "FINDING"): each_finding,
    ("search", ""): printed("search", "FATAL"),
    ("search", "--json"): printed("search", "--json", "login"),
    ("share", "SESSION"): to_file("shared.html", "share", "6f1d2c3b-0000-4000-8000-000000000000", "--out"),
    ("mcp", ""): mcp,
    ("rules", ""): printed("rules"),
    ("label", "--export-gold"): to_file("gold.jsonl", "label", "sentiment", "--export-gold"),
    ("label", "--export-batch"): to_file("batch.jsonl", "label", "sentiment", "--by", "openai:gpt-4o-mini",
                                         "--export-batch"),
    ("study", "-o"): study,
    ("analyze", "--json"): lambda ran, store, tmp: ran("analyze", store.parent / "in", "--store", store, "--json",
                                                       "--quiet"),
    ("analyze", "--report"): lambda ran, store, tmp: ran("analyze", store.parent / "in", "--store", store, "--quiet",
                                                         "--report", tmp / "r.html") and written(tmp / "r.html"),
}  # fmt: skip
ELSEWHERE = {
    "agree": "tests/labels", "annotate": "tests/labels", "label": "tests/test_ways_out.py",
    "study": "tests/test_ways_out.py", "refusals": "tests/labels/test_refusals.py",
    "measure": "tests/test_ways_out.py", "analyze": "tests/store/test_embedders.py",
    **dict.fromkeys(("align", "audit", "compare", "drivers", "failures", "receipt", "witness", "serve"),
                    "tests/test_doors_of_runs.py"),
}  # fmt: skip
"""Verbs of which a way needs eval runs, a repository, a server or a person, and where it is tested."""


def test_every_verb_writer_and_way_is_in_the_list_and_is_tried() -> None:
    listed = {verb: doors(verb) for verb in verbs() if " " not in verb}
    assert [verb for verb, ways in listed.items() if not ways] == []
    assert {door.way for door in listed["export"]} == {f"--to {name}" for name in export.WRITERS.all()}
    masked = {
        (verb, door.way) for verb, ways in listed.items() for door in ways if door.masks not in ("record", "no_text")
    }
    untried = {(verb, way) for verb, way in masked - DRIVEN.keys() if verb not in ELSEWHERE}
    assert untried == {("export", "--to agent_trace"), ("export", "--to audit")}, "tests/test_doors_of_runs.py"
    assert DRIVEN.keys() <= masked


@pytest.mark.parametrize(("verb", "way"), DRIVEN)
def test_no_planted_secret_leaves(
    verb: str, way: str, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ran(*words: object) -> str:
        code = main([*map(str, words)])
        out = capsys.readouterr()
        assert code == 0, out.err
        return out.out

    text = DRIVEN[verb, way](ran, store, tmp_path)
    assert text.strip()
    plain = unescape(re.sub("<[^>]*>", "", text))
    low = "\n".join((text, plain, text.replace("\\\\", "\\"))).lower()
    (masks,) = (door.masks for door in doors(verb) if door.way == way)
    planted = (
        PLANTED | (BARE if masks in ("store", "random") else {}) | ({"unnamed": UNNAMED} if masks == "random" else {})
    )
    left = [name for name, value in planted.items() if value.lower() in low or quote(value).lower() in low]
    assert left == []


def test_what_is_planted_is_in_the_store(store: Path) -> None:
    whole = written(store / "shards").lower()
    assert [n for n, v in {**PLANTED, **BARE, "unnamed": UNNAMED}.items() if v.lower() not in whole] == []


def test_the_store_keeps_which_rows_give_a_secret_away_and_never_the_secret(store: Path) -> None:
    first = known_secrets(Store(store)).values
    assert set(BARE.values()) <= first
    kept = (store / FILE).read_text()
    assert not any(value in kept for value in first)


def test_only_other_code_of_masking_has_all_texts_looked_through_again(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes twice as long as reading the traces; a package that is installed beside it changes nothing."""
    told: list[str] = []
    first = known_secrets(Store(store)).values
    (tmp_path / "beside-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    for code, is_again in ((None, False), (lambda: "another", True)):
        if code is not None:
            monkeypatch.setattr(secrets, "_code", code)
        secrets._in_memory.clear()  # as in another process
        assert known_secrets(Store(store), progress=lambda what, *_: told.append(what)).values == first
        assert bool(told) is is_again


BY_WORKERS = """
import os, sys
from agentsignals.ingest import pipeline
from agentsignals.store import Store, secrets
pipeline.default_jobs, collected, mother = lambda: 2, secrets._collected, os.getpid()

def here(*task):
    dies = sys.argv[2] == "die" and task[-1] == min(Store(sys.argv[1]).manifest.shards)
    if dies and os.getpid() != mother:
        os._exit(9)
    assert dies or sys.argv[2] == "die" or os.getpid() != mother
    return collected(*task)

secrets._collected = here
print(*sorted(secrets.known_secrets(Store(sys.argv[1]), each=pipeline.in_processes).values))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forks")
@pytest.mark.parametrize("how", ["live", "die"])
def test_workers_find_the_secrets_that_one_process_does(store: Path, tmp_path: Path, how: str) -> None:
    pipeline.analyze([str(store.parent / "in")], tmp_path / "shared", jobs=1, shard_bytes=4_000)
    assert len(Store(tmp_path / "shared").manifest.shards) > 1
    command = [sys.executable, "-c", BY_WORKERS, tmp_path / "shared", how]
    ran = subprocess.run(command, capture_output=True, check=True)
    secrets._in_memory.clear()  # as in another process
    (tmp_path / "shared" / FILE).unlink()
    assert ran.stdout.decode() == " ".join(sorted(known_secrets(Store(tmp_path / "shared")).values)) + "\n"


def test_an_interrupted_search_for_secrets_goes_on_where_it_ended(store: Path, tmp_path: Path) -> None:
    pipeline.analyze([str(store.parent / "in")], tmp_path / "shared", jobs=1, shard_bytes=4_000)
    looked_at: list[str] = []
    secrets._in_memory.clear()  # other tests have read these texts

    def first_alone(function: Callable[[str], Any], shards: Sequence[str]) -> Iterator[Any]:
        yield function(shards[0])
        raise KeyboardInterrupt

    def each(function: Callable[[str], Any], shards: Sequence[str]) -> Iterator[Any]:
        looked_at.extend(shards)
        return map(function, shards)

    with pytest.raises(KeyboardInterrupt):
        known_secrets(Store(tmp_path / "shared"), each=first_alone)
    secrets._in_memory.clear()  # as in another process
    known_secrets(Store(tmp_path / "shared"), each=each)
    assert len(looked_at) == len(Store(tmp_path / "shared").manifest.shards) - 1 > 0


def test_each_verb_says_what_it_masks() -> None:
    parser = build_parser()
    (parsers,) = (action.choices for action in parser._actions if action.dest == "verb")
    assert isinstance(parsers, dict)
    groups = [parsers[name]._subparsers._group_actions[0].choices.items() for name in ("evals", "repo", "labels")]
    for verb, made in itertools.chain(parsers.items(), *groups):
        assert verb not in verbs() or masking(verb) in " ".join(made.description.split())


def test_what_looks_random_is_masked_and_public_ids_stay() -> None:
    found = RandomValues(["toolu_01Kx9mZ4vQ2nB7tR5wY8cD3f"])
    draw = random.Random(4)  # noqa: S311  (draws, no secret)
    chars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    drawn = ["".join(draw.choices(chars, k=26)) for _ in range(50)]
    assert sum(bool(found.spans(f"use {value} now")) for value in drawn) >= 48
    for text in (
        "toolu_01Kx9mZ4vQ2nB7tR5wY8cD3f", "commit 3f2c1aa9d8e7b6c5a4f3e2d1c0b9a8f7e6d5c4b3", "2026-04-01T10:00:00.000Z",
        "550e8400-e29b-41d4-a716-446655440000", "session-550e8400-e29b-41d4-a716-446655440000",
        "integrity sha512-4Kx9mZ4vQ2nB7tR5wY8cD3fA6sE1hJ0pL9oI8uY7t==",
        "test_that_user_2_can_log_in_3_times", "getUserNameFromSessionToken2", "h1:4Kx9mZ4vQ2nB7tR5wY8cD3fA6sE1hJ0pL=",
        "claude-opus-4-1-20250805", "/usr/lib/python3.11/site-packages/numpy/core/_multiarray_umath.so",
    ):  # fmt: skip
        assert found.spans(text) == [], text


def test_a_named_secret_inside_a_run_that_looks_random_is_still_learned() -> None:
    redactor = Redactor(random=RandomValues())
    masked = redactor.text("DB_PASSWORD=kT4w-9pQ\n\nA line.\nMore.\nStill more.\nand 8Kx9mZ4vQ2nB7tR5wY8cD3fA")
    assert (
        masked == "DB_PASSWORD=[secret]\n\nA line.\nMore.\nStill more.\nand [random]" and "kT4w-9pQ" in redactor.secrets
    )
