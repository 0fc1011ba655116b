"""Every way out of the machine: what arrives at a server elsewhere, and what is written for others, holds no secret."""

from __future__ import annotations

import json
import random
import re
import socket
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentsignals import export, find
from agentsignals.cli import main
from agentsignals.errors import ExportError
from agentsignals.export import verify_export
from agentsignals.ingest import pipeline
from agentsignals.labels import gold
from agentsignals.labels.gold import GoldRow
from agentsignals.labels.tasks import tasks
from agentsignals.model import Session
from agentsignals.redaction import Redactor
from agentsignals.signals import DECLARED, catalog, signal
from agentsignals.store import secrets as pseudonym_key_module
from agentsignals.views.session import Evidence, SessionView
from tests.embedding_server import serving as serving_vectors
from tests.labels.server import serving as serving_chat
from tests.labels.stores import session_id, store_of
from tests.planted_stores import STORES
from tests.questions.stores import store_of as stored
from tests.quick import some
from tests.redaction.planted import CONTEXTS, KINDS, pieces, said

FAR = "judge.far"
WAYS = ("env", "python", "yaml quoted", "json")
PLANTED = [(kind, make(random.Random(kind)), way) for n, (kind, make) in enumerate(KINDS.items())  # noqa: S311  (draws)
           for way in (WAYS[n % len(WAYS)],)]  # fmt: skip


def planted(n: int) -> list[str]:
    """Messages that hold every secret between them, a few each."""
    told = [f"Please look at this, it fails:\n{said(secret, CONTEXTS[way])}" for _, secret, way in PLANTED]
    return ["\n".join(told[at::n]) for at in range(n)]


def leaks(arrived: str) -> list[str]:
    """The kinds of which a part arrived, in plain, escaped, in letters of any case, or in base64; never the part."""
    low = arrived.lower()
    texts = (low, low.replace("\\\\", "\\"), unquote(low))
    parts = {text[n : n + 8] for text in texts for n in range(len(text))}
    return [kind for kind, secret, _ in PLANTED
            if any(p.lower() in parts if len(p) == 8 else p.lower() in low for p in pieces(secret))
            or any(b64encode(p.encode()).decode()[:-4] in arrived for p in secret.value.splitlines())]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sessions; people and agent both say secrets."""
    messages = planted(9)
    folder = tmp_path_factory.mktemp("out")
    return store_of(folder, messages[:3], messages[3:6], messages[6:], answer="I ran it:\n" + planted(1)[0]).folder


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A name elsewhere that leads here: the program takes it for another machine, the bytes are real."""
    found = socket.getaddrinfo
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *rest, **more: found("127.0.0.1" if host == FAR else host, *rest, **more)
    )
    yield FAR


def url_of(server: Any) -> str:
    return str(server.url).replace("127.0.0.1", FAR)


def ran(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Runs a verb; what it said on stderr."""
    main([*map(str, arguments)])
    return capsys.readouterr().err


def texts_in(folder: Path) -> list[str]:
    """What every file of a folder says, with its name and what a table says of itself."""
    about = [f"{p.name} {pq.read_metadata(p).metadata}" for p in sorted(folder.rglob("*.parquet"))]
    return about + [json.dumps(pq.read_table(p).to_pylist(), default=str, ensure_ascii=False) if p.suffix == ".parquet"
            else p.read_text("utf-8") for p in sorted(folder.rglob("*")) if p.is_file()]  # fmt: skip


def test_what_is_planted_is_in_the_store(store: Path) -> None:
    whole = json.dumps([pq.read_table(p).to_pylist() for p in sorted(store.rglob("events.parquet"))], default=str)
    assert len(leaks(whole)) == len(KINDS)


@pytest.mark.parametrize("name", some(tasks(), 3))
def test_a_model_elsewhere_is_sent_no_secret_whatever_it_judges(
    name: str, store: Path, far: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_chat() as server:
        told = ran(capsys, "label", name, "--by", f"openai:m@{url_of(server)}", "--store", store, "--window", "20000")
        arrived = json.dumps(server.requests) + json.dumps(server.headers)
    assert leaks(arrived) == []
    assert far in told and "masked" in told, "it says what goes where"
    if server.requests:
        assert "it fails" in arrived or "I ran it" in arrived


def test_a_study_sends_a_model_elsewhere_no_secret(
    store: Path, far: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_chat() as server:
        by = ("--by", f"openai:m2@{url_of(server)}", "--against", "rules", "-o", tmp_path / "study.html")
        told = ran(capsys, "study", "sentiment", *by, "--store", store)
        arrived = json.dumps(server.requests) + json.dumps(server.headers)
    assert server.requests and leaks(arrived) == [] and far in told and "masked" in told


def test_only_who_asks_for_it_sends_texts_as_they_are(
    store: Path, far: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_chat() as server:
        by = ("label", "sentiment", "--by", f"openai:m@{url_of(server)}", "--store", store)
        told = ran(capsys, *by, "--no-redact")
    assert len(leaks(json.dumps(server.requests))) > len(KINDS) // 2
    assert far in told and "as they are" in told


def test_an_embedder_elsewhere_is_sent_no_secret(store: Path, far: str, capsys: pytest.CaptureFixture[str]) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(serving_vectors())
        told = ran(capsys, "measure", "--all", "--embedder", f"openai:letters@{url_of(server)}", "--store", store)
    assert server.texts and leaks(json.dumps(server.requests)) == []
    assert far in told and "masked" in told


WITHOUT_WORDS = ("baseline", "training", "agent_trace", "audit")
"""What is made of figures alone, of eval runs, and of commits (tests/repositories/test_witnesses.py)."""


@pytest.mark.parametrize(
    ("to", "transcripts"),
    [("hub", "found"), *((name, "sts") for name in export.WRITERS.places if name not in WITHOUT_WORDS)],
)
def test_what_is_written_for_others_holds_no_secret(
    to: str, transcripts: str, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    ran(capsys, "export", "--to", to, "-o", out, "--store", store, "--redact", "--transcripts", transcripts)
    texts = texts_in(out)
    assert any("it fails" in text for text in texts)
    assert leaks("\n".join(texts)) == []


@pytest.mark.slow
def test_a_session_in_a_file_of_its_own_holds_no_secret(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n in range(3):
        ran(capsys, "share", session_id(n), "--out", tmp_path / f"{n}.html", "--store", store)
    texts = texts_in(tmp_path)
    assert all("it fails" in text and "I ran it" in text for text in texts)
    plain = "\n".join(re.sub("<[^>]*>", "", text) for text in texts)
    assert leaks("\n".join([*texts, *map(unescape, texts), unescape(plain)])) == []


CUTS = (80, 118, 130, 200)


@pytest.mark.slow
@pytest.mark.parametrize("to", some(["parquet", "hub"], 2))
def test_a_secret_across_every_place_where_texts_are_cut_leaves_in_no_table(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = [f"{'x ' * ((CUTS[n % 4] - 16) // 2)}{said(secret, CONTEXTS['env'])}".rstrip()
           for n, (_, secret, _) in enumerate(PLANTED)]  # fmt: skip
    store = store_of(tmp_path, cut, cut).folder
    ran(capsys, "export", "--to", to, "-o", tmp_path / "out", "--store", store)
    assert leaks("\n".join(texts_in(tmp_path / "out"))) == []


def written(path: Path, text: str) -> Path:
    """A file that holds a text, which nobody masked."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"signal": ["a", "b"], "value": ["fine", f'{{"{text}": 1}}']}), path)
    else:
        path.write_text(f"fine\nbegins {text} ends\n")
    return path


@pytest.mark.parametrize("name", ["signals.parquet", "README.md", "a.jsonl"])
def test_parts_of_what_was_masked_elsewhere_are_masked_at_the_door(name: str, tmp_path: Path) -> None:
    key = KINDS["openai"](random.Random(1)).value  # noqa: S311  (draws, no secret)
    bare = KINDS["aws secret"](random.Random(2)).value  # noqa: S311  (as above)
    for forgot in (key.lower()[9:40], key[20:44], bare, bare.upper()[3:]):
        redactor = Redactor()
        redactor.text(f"use {key} now, AWS_SECRET_ACCESS_KEY={bare}")
        path = written(tmp_path / name, forgot)
        verify_export(tmp_path, redactor)
        (told,) = (text for text in texts_in(tmp_path) if "fine" in text)
        assert "[cut]" in told or "[secret]" in told
        assert not any(forgot[n : n + 8] in told for n in range(len(forgot) - 7))
        assert redactor.counts == {"key": 1, "secret": 2}
        path.unlink()


@pytest.mark.parametrize("name", ["signals.parquet", "README.md", "a.jsonl"])
def test_what_forgets_to_mask_is_refused_at_the_door_without_a_word_of_it(name: str, tmp_path: Path) -> None:
    key = KINDS["openai"](random.Random(1)).value  # noqa: S311  (draws, no secret)
    redactor = Redactor()
    for forgot in (key, b64encode(key.encode()).decode()):
        path = written(tmp_path / name, forgot)
        with pytest.raises(ExportError) as refused:
            verify_export(tmp_path, redactor)
        assert forgot[:8] not in str(refused.value.message) and name in refused.value.message
        assert ("row 2" in refused.value.message) == (path.suffix == ".parquet") and not path.exists()


@pytest.fixture
def canary() -> Iterator[str]:
    """A signal that forgets to mask: it says the first message in small letters, cut."""

    @signal("toy.canary", "str", "words", origin="a test")
    def canary(view: SessionView, why: Evidence) -> str:
        """What a person said, folded and cut."""
        return view.turns[0].text.lower()[20:50]

    catalog.catalogue.cache_clear()
    catalog.plan.cache_clear()
    yield KINDS["openai"](random.Random(1)).value  # noqa: S311  (draws, no secret)
    del DECLARED["canary"]
    catalog.catalogue.cache_clear()
    catalog.plan.cache_clear()


@pytest.mark.parametrize("to", ["parquet", "hub", "Choice"])
def test_what_a_signal_forgets_to_mask_is_masked_at_the_door(
    to: str, canary: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, out = store_of(tmp_path, [f"use {canary} please"]), tmp_path / "out"
    assert main(["measure", "--store", str(store.folder), "--quiet"]) == 0
    if to == "Choice":  # as a program calls it
        parquet = export.WRITERS.get("parquet")
        assert isinstance(parquet, export.WholeWriter)
        assert parquet.write(store, [*store.manifest.sessions], out, export.Choice(redactor=Redactor()))
    else:
        assert main(["export", "--to", to, "-o", str(out), "--store", str(store.folder), "--quiet"]) == 0
    told = "\n".join(texts_in(out))
    assert "toy.canary" in told and "[cut]" in told and canary[20:28].lower() not in told.lower()


@pytest.mark.parametrize("name", ["gold.jsonl", "gold.csv"])
def test_a_gold_file_with_a_key_is_not_written_unless_it_is_not_to_be_masked(name: str, tmp_path: Path) -> None:
    row = GoldRow(session_id="s", reason=KINDS["openai"](random.Random(1)).value)  # noqa: S311  (draws, no secret)
    with pytest.raises(ExportError):
        gold.write(tmp_path / name, [row])
    assert not (tmp_path / name).exists() and gold.write(tmp_path / name, [row], masked=False) == 1


def test_prints_of_lines_that_were_not_masked_stay_at_home(store: Path, tmp_path: Path) -> None:
    main(["export", "--to", "parquet", "-o", str(tmp_path / "out"), "--store", str(store), "--quiet"])
    told = pq.read_table(tmp_path / "out" / "signals.parquet").column("signal").to_pylist()
    assert "corpus.message_counts" in told and "user.edited_line_prints" not in told


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Two sessions in which one person is named in both, another in one."""
    first, second = "look into /home/marjolein/a and mail Jo@Example.org", "why is /srv/n1/home/marjolein/b like that?"
    return store_of(tmp_path, [first, "see /home/ferdinand/a"], [second, "thanks, jo@example.org"]).folder


@pytest.fixture
def another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes this one another, with a user's data of its own."""

    def change(name: str) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / name))
        pseudonym_key_module._kept_or_passing.cache_clear()

    change("first")
    return change


@pytest.fixture(autouse=True)
def no_key_is_remembered() -> Iterator[None]:
    yield
    pseudonym_key_module._kept_or_passing.cache_clear()


def who(text: str) -> Counter[str]:
    return Counter(re.findall(r"\[(?:user|mail)-[0-9a-f]{8}\]", text))


def test_answers_that_were_paid_for_are_found_again_by_the_next_process_and_not_by_another_machine(
    people: Path, far: str, capsys: pytest.CaptureFixture[str], another_machine: Callable[[str], None]
) -> None:
    asked = []
    with serving_chat() as server:
        for machine in ("first", "first", "second"):
            another_machine(machine)
            ran(capsys, "label", "sentiment", "--by", f"openai:m@{url_of(server)}", "--store", people)
            asked.append(json.dumps(server.requests))
            server.requests.clear()
    assert asked[1] == "[]"
    assert sorted(who(asked[0]).values()) == sorted(who(asked[2]).values()) == [1, 2, 2]
    assert who(asked[0]).keys().isdisjoint(who(asked[2]))


@pytest.mark.parametrize(
    ("to", "more"), some([("parquet", ()), ("sts", ("--redact",)), ("hub", ("--transcripts", "found"))], 3)
)
def test_a_person_is_one_in_all_that_is_written_and_in_the_next_export(
    to: str,
    more: tuple[str, ...],
    people: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    another_machine: Callable[[str], None],
) -> None:
    told = []
    for n, machine in enumerate(("first", "first", "second")):
        another_machine(machine)
        out = tmp_path / f"out{n}"
        ran(capsys, "export", "--to", to, "-o", out, "--store", people, *more)
        told.append("\n".join(texts_in(out)))
    assert not [name for name in ("marjolein", "ferdinand", "xample.org") if any(name in text for text in told)]
    assert len(who(told[0])) == 3 and who(told[0]) == who(told[1])
    assert who(told[0]).keys().isdisjoint(who(told[2]))


def test_an_embedder_elsewhere_is_told_nobody_apart(
    people: Path, far: str, capsys: pytest.CaptureFixture[str], another_machine: Callable[[str], None]
) -> None:
    with serving_vectors() as server:
        ran(capsys, "measure", "--all", "--embedder", f"openai:letters@{url_of(server)}", "--store", people)
    arrived = json.dumps(server.requests)
    assert "/home/[user]/a" in arrived and "[mail]" in arrived and not who(arrived)


PLACES = ("file", "folder", "session", "cwd", "branch", "version", "record", "message", "tool", "model", "call", "path",
          "argument", "title")  # fmt: skip
KEYS = ("github classic", "anthropic", "aws id", "gitlab", "npm", "mail")


@pytest.fixture(scope="module")
def named_by_keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A store in which a key stands wherever a trace has a name, and the keys by place."""
    key = {place: KINDS[KEYS[n % len(KEYS)]](random.Random(place)).value for n, place in enumerate(PLACES)}  # noqa: S311
    folder = tmp_path_factory.mktemp("names")
    base = {"sessionId": key["session"], "cwd": f"/srv/{key['cwd']}", "version": f"2.1.20{key['version']}",
            "gitBranch": f"fix/{key['branch']}", "timestamp": "2026-03-02T09:00:00Z"}  # fmt: skip
    used = {"type": "tool_use", "id": key["call"], "name": f"mcp__{key['tool']}__go",
            "input": {"file_path": f"/srv/x/{key['path']}.py", key["argument"]: 1}}  # fmt: skip
    answer = {"id": key["message"], "role": "assistant", "model": f"claude-{key['model']}", "content": [used],
              "usage": {"input_tokens": 3, "output_tokens": 4}}  # fmt: skip
    result = {"type": "tool_result", "tool_use_id": key["call"], "content": "fine"}
    records = [
        {"type": "user", "uuid": key["record"], "message": {"role": "user", "content": "please look"}},
        {"type": "assistant", "uuid": "u2", "message": answer},
        {"type": "user", "uuid": "u3", "message": {"role": "user", "content": [result]}},
    ]
    lines = [json.dumps({**base, "parentUuid": None, **record}) for record in records]
    lines.append(json.dumps({"type": "summary", "summary": f"about {key['title']}", "leafUuid": key["record"]}))
    source = folder / f"p-{key['folder']}" / f"{key['file']}.jsonl"
    source.parent.mkdir()
    source.write_text("\n".join(lines) + "\n")
    pipeline.analyze([str(source.parent)], folder / "store", jobs=1)
    return folder / "store", key


@pytest.mark.parametrize(
    "to",
    some(
        [
            "hub, found",
            "report",
            "report as text",
            "parquet",
            "hub",
            "sts",
            "atif",
            "opentraces",
            "otel_genai",
            "training",
        ],
        3,
    ),
)
def test_a_key_in_a_name_leaves_by_no_door(
    to: str, named_by_keys: tuple[Path, dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, key = named_by_keys
    out = tmp_path / "out"
    if to.startswith("report"):
        out.mkdir()
        ran(capsys, "report", "-o", out / ("a.md" if "text" in to else "a.html"), "--store", store)
    else:
        name, _, transcripts = to.partition(", ")
        way = ["--transcripts", transcripts or "sts", "--kind", "steps"]
        ran(capsys, "export", "--to", name, "-o", out, "--store", store, "--redact", *way)
    told = "\n".join([*texts_in(out), *(p.name for p in out.rglob("*"))]).lower()
    assert "please look" in told or to.startswith("report")
    assert len(told) > 500 and [place for place, value in key.items() if value.lower()[8:20] in told] == []


@pytest.mark.slow
@pytest.mark.parametrize(("trouble", "name"), some([("a hot file", "routes.py"), ("a failing tool", "deploy.sh")], 2))
def test_findings_say_no_key_and_nothing_to_a_terminal(
    trouble: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {at: KINDS[kind](random.Random(at)).value for at, kind in (("acme/shop", "npm"), (name, "anthropic"))}  # noqa: S311
    traces = msgspec.json.encode(STORES[trouble](1)).decode()
    for at, key in keys.items():
        traces = traces.replace(at, f"{key}\\u001b[2J\\u009b31m{at}")
    store = stored(tmp_path, *msgspec.json.decode(traces, type=list[Session]))
    (made, *_) = find(store).answers
    told = [str(made), made.id]
    for line in ([], ["--json"], [made.id], [made.id, "--json"]):
        assert main(["findings", *line, "--store", str(store.folder)]) == 0
        told.append(capsys.readouterr().out)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", told[-1])
    assert all("[key]" in text for n, text in enumerate(told) if n != 1)
    parts = [key.lower()[n : n + 8] for key in keys.values() for n in range(len(key) - 7)]
    assert [part for part in parts for text in told if part in text.lower()] == []
