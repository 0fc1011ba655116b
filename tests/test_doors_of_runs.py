"""Ways out that need eval runs, a repository or the page: the same planted set leaves by none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from agentsignals.cli import main
from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows
from tests.inspect_logs import archive, at, call, header, model, sample, say, tool, usage, user
from tests.repositories.story import Story, block
from tests.test_doors import PLANTED, session, written
from tests.ui.served import ask, serving

COMMANDS = (
    f"PGPASSWORD={PLANTED['variable in a command']} psql -h db",
    f"curl -u ops:{PLANTED['login in a command']} https://api.acme.io/deploy",
    f"git push https://bob:{PLANTED['login in an address']}@git.acme.io/shop.git",
)
FILE = f"/home/{PLANTED['user name']}/shop/redis://u:{PLANTED['file name']}@h/a.py"
TASK = f"fix-token={PLANTED['branch']}"
RUNS_VERBS = (
    ("compare",), ("compare", "--markdown"), ("compare", "--json"), ("failures",), ("failures", "--json"), ("audit",),
    ("audit", "--json"), ("drivers", "--no-models"), ("drivers", "--json", "--no-models"), ("align", "RUN", "RUN"),
    ("align", "RUN", "RUN", "--json"), ("findings",), ("findings", "--json"),
)  # fmt: skip
REPOSITORY_VERBS = (
    ("receipt", "REPO"), ("receipt", "REPO", "HEAD", "--markdown"), ("receipt", "REPO", "HEAD", "--json"),
    ("witness", "REPO"), ("witness", "REPO", "--json"), ("rules", "REPO"), ("rules", "REPO", "--json"),
)  # fmt: skip


def left_in(text: str, planted: dict[str, str] = PLANTED) -> list[str]:
    """Return what of the planted set stands in a text, in letters of any case, in markup or an address."""
    low = "\n".join((text, unescape(re.sub("<[^>]*>", "", text)), text.replace("\\\\", "\\"))).lower()
    return [name for name, value in planted.items() if value.lower() in low or quote(value).lower() in low]


def run(n: int, uuid: str, solves: bool, served: str) -> dict[str, object]:
    asked = user(f"DB_PASSWORD={PLANTED['title']} does not work, mend it", f"m{n}")
    events: list[object] = [{"event": "sample_init", **at(0)}]
    for k, command in enumerate(COMMANDS):
        events.append(model(2 * k, [asked], say("", f"a{k}", tool_calls=[call(f"c{k}", "bash", cmd=command)]),
                            used=usage(100 + n, 10), model=served))  # fmt: skip
        failed = f"Exit code 2\nFATAL: DB_PASSWORD={PLANTED['error']} refused"
        events.append(tool(2 * k + 1, f"c{k}", "bash", failed, arguments={"cmd": command}))
    edit = call("e", "text_editor", command="str_replace", path=FILE, old_str="a", new_str=f"b{n}")
    events += [model(8, [asked], say("", "a9", tool_calls=[edit]), used=usage(90, 9), model=served)]
    events += [tool(9, "e", "text_editor", "edited", arguments=edit["arguments"])]
    error = {} if solves or n % 2 else {"error": {"message": f"ToolTimeout: token={PLANTED['tool name']}"}}
    return sample(
        f"{TASK}-{n}", uuid=uuid, messages=[asked], events=events, **error,
        scores={"tests": {"value": "C" if solves else "I", "explanation": f"password={PLANTED['error']} was refused"}},
    )  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for k, candidate in enumerate((f"acme/token={PLANTED['model name']}", "acme/other")):
        logged = archive(
            *(run(n, f"U{k}-{n}", solves=(n + k) % 3 == 0, served=candidate) for n in range(8)),
            head=header(model=candidate, run_id=f"R{k}", task_id=f"T{k}"),
        )
        (folder / f"run{k}.eval").write_bytes(logged)
    pipeline.analyze([str(folder)], folder / "store", jobs=1)
    return folder / "store"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    story = Story(tmp_path_factory.mktemp("story"))
    agent = story.agent("work")
    agent.prompt(f"DB_PASSWORD={PLANTED['title']} does not work, mend it")
    for command in COMMANDS:
        agent.log.ran("Bash", f"Exit code 2\nDB_PASSWORD={PLANTED['error']} refused", error=True, command=command)
    agent.write(f"token={PLANTED['file name']}.py", block("new", 5))
    agent.write("app.py", block("more", 5))
    agent.say()
    story.commit(f"mend it, token={PLANTED['branch']}", agent)
    story.publish()
    return story


@pytest.mark.parametrize("words", [*RUNS_VERBS, *REPOSITORY_VERBS], ids=" ".join)
def test_no_verb_over_eval_runs_or_a_repository_lets_a_planted_secret_out(
    words: tuple[str, ...], runs: Path, story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    store = story.folder / "store" if "REPO" in words else runs
    _, found = rows(Store(runs), "SELECT session_id FROM sessions WHERE n_tool_calls > 0 ORDER BY 1 LIMIT 2")
    named = {"REPO": iter([str(story.root)]), "RUN": (session_id for (session_id,) in found)}
    asked = [next(named[word]) if word in named else word for word in words]
    code = main([*asked, "--store", str(store), "--quiet"])
    out = capsys.readouterr()
    assert code == 0, out.err
    assert out.out.strip()
    assert left_in(out.out) == []


def test_a_data_set_of_audited_passes_lets_no_planted_secret_out(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", "--to", "audit", "-o", str(tmp_path / "out"), "--title", f"mend token={PLANTED['title']}"]
    code = main([*words, "--store", str(runs), "--quiet"])
    out = capsys.readouterr()
    assert code == 0, out.err
    text = written(tmp_path / "out")
    assert '"cannot_tell"' in text
    assert left_in(out.out + text) == []


def test_agent_trace_files_let_no_planted_secret_out(
    story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", "--to", "agent-trace", "--redact", "-o", str(tmp_path / "out"), "--quiet"]
    assert main([*words, "--store", str(story.folder / "store")]) == 0, capsys.readouterr().err
    assert left_in(written(tmp_path / "out")) == []


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the page answers, by address."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "in").mkdir()
    for n in range(12):
        (folder / "in" / f"s{n}.jsonl").write_bytes(session(n))
    pipeline.analyze([str(folder / "in")], folder / "store", jobs=1)
    assert main(["findings", "--store", str(folder / "store"), "--quiet"]) == 0
    _, found = rows(Store(folder / "store"), "SELECT id FROM findings")
    findings = [f"/finding/{quote(own, safe='')}" for (own,) in found]
    with serving(Store(folder / "store")) as server:
        studies = sorted(set(re.findall(r'href="(/studies/[^"]*)"', ask(server, "/studies").text)))
        named = [*findings, "/studies", *map(unescape, studies), "/search?q=FATAL", "/search?q=login"]
        answers = {path: ask(server, path) for path in ("/", "/sessions", *named)}
    assert {path: answer.status for path, answer in answers.items() if answer.status != 200} == {}
    yield {path: answer.text for path, answer in answers.items()}


def test_pages_that_quote_many_sessions_mask_secrets_and_lists_show_records_as_they_are(pages: dict[str, str]) -> None:
    left = {path: left_in(text) for path, text in pages.items()}
    lists = {path: left.pop(path) for path in ("/", "/sessions")}
    assert {path: planted for path, planted in left.items() if planted} == {}
    assert all("title" in planted for planted in lists.values())
    assert sum(path.startswith("/finding/") for path in left) > 1
    assert sum(path.startswith("/studies/") for path in left) > 2


def test_what_is_planted_is_in_the_stores(runs: Path, story: Story) -> None:
    evals = {**PLANTED}
    del evals["version"]
    assert left_in(written(runs / "shards"), evals) == list(evals)
    commits = {name: PLANTED[name] for name in ("title", "error", "file name", "login in a command")}
    assert left_in(written(story.folder / "store" / "shards"), commits) == list(commits)
