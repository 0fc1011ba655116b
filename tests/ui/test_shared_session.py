"""One session as one file: what it shows, that it is masked and whole by itself, and when it is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from agentsignals.cli import main
from agentsignals.errors import ExportError
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from agentsignals.redaction import Redactor
from agentsignals.store import Store
from agentsignals.ui import sharing as shared_session
from tests.build import call, event, say, session, think, user
from tests.claude import SESSION, Log
from tests.questions.stores import store_of
from tests.ui.browser import browsing, needs_browser, overflow_px, serious
from tests.ui.served import EVIL, EVIL_ID, Elements
from tests.verbs import printed

KEY = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7fG9hJ1kL3mN5pQ7rS9tU1vW3xY5zA7bC9dE1fG3hJ5kL-aBcDeFgH"


def talk() -> Session:
    """With Markdown, an edit, a subagent, thoughts, a failure; a key in a file that is read, and in a command."""
    return session(
        user("Mend the **parser**\nit is in /home/marion/parser.py"),
        think("where is it"),
        say("## A plan\n\n* first `this`\n\n```python\ndef f(): return 1\n```"),
        call("Read", path="/home/marion/conf.py", result=f'API_KEY = "{KEY}"\nx = 1\n'),
        call("Edit", path="conf.py", old_string="a\nx = 1\nb", new_string="a\nx = 2\nb", result="done"),
        call("Bash", command=f"curl -H 'x-api-key: {KEY}' https://api.example", status="error", result="401"),
        call("Read", path="deep.py", thread="agent-7", result="deep"),
        user("thanks"),
        session_id="talk-1",
        cwd="/home/marion",
        repo="marion/tools",
    )


def written(folder: Path, made: Session, redactor: Redactor | None = None) -> str:
    path = folder / "session.html"
    shared_session.write(made, path, redactor or Redactor())
    return path.read_text("utf-8")


def test_a_session_is_told_with_its_markdown_diffs_results_and_subagents(tmp_path: Path) -> None:
    text = written(tmp_path, talk())
    said = " ".join(Elements(text).said.split())
    assert "Turn 1" in said and "Mend the **parser** it is in" in said, "what is no Markdown stays as it was typed"
    assert 'class="heading h2">A plan' in text and "<li>first <code>this</code></li>" in text
    assert re.search(r'"l cut".*<b>-</b>.*"l add".*<b>\+</b>', text, re.DOTALL) and "Edit conf.py diff" in said
    assert 'class="entry tool_call failed"' in text and "401" in said
    assert '<details class="thread"><summary>subagent agent-7' in text and 'href="#t1"' in text


def test_secrets_and_people_are_masked_before_colours_take_them_apart_and_the_top_says_so(tmp_path: Path) -> None:
    text = written(tmp_path, talk())
    said = Elements(text).said
    assert "marion" not in said.replace("marion/tools", "") and re.search(r"/home/\[user-[0-9a-f]{8}\]", said)
    plain = "".join(Elements(text).said.split(" "))
    assert not [n for n in range(14, len(KEY) - 8) if KEY[n : n + 8] in plain]
    assert (
        re.search(r"Masked: \d × key, \d × user\.", " ".join(said.split()))
        and "Read the file before you share it" in said
    )


def test_the_file_is_whole_by_itself_and_forbids_the_rest(tmp_path: Path) -> None:
    text = written(tmp_path, talk())
    told = Elements(text)
    assert not {name for name, _ in told.elements} & {"script", "img", "link", "iframe", "form", "object"}
    assert all(link.startswith("#") for link in [*told.all_of("href"), *told.all_of("src")])
    [style] = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    policy = next(str(a["content"]) for _, a in told.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in policy
    assert (
        policy.startswith("default-src 'none'; style-src 'sha256-") and "url(" not in style and "@import" not in style
    )
    assert not told.all_of("style")


def test_a_hostile_session_stays_text(tmp_path: Path, store: Store) -> None:
    text = written(tmp_path, store.session(EVIL_ID))
    told = Elements(text)
    assert "window.pwned=1" in told.said and "[U+202E]" in told.said
    assert not {name for name, _ in told.elements} & {"script", "img"} and EVIL not in text
    assert not [name for _, attrs in told.elements for name in attrs if name.startswith("on")]


class Forgetful(Redactor):
    """Masks nothing, as one would that lacks a pattern."""

    def text(self, text: str, times: int = 1) -> str:
        return text


@pytest.mark.parametrize(
    "made",
    [
        session(user(f"use {KEY}")),
        session(call("Read", path="a.py", result=f'{{"a": "{KEY}"}}')),
        session(user("x"), event("meta", KEY)),
    ],
)
def test_what_the_last_look_sees_leaves_no_file(tmp_path: Path, made: Session) -> None:
    with pytest.raises(ExportError, match=r"was not written: a secret \(key\)"):
        written(tmp_path, made, Forgetful())
    assert list(tmp_path.iterdir()) == []


def test_parts_of_a_secret_that_only_a_name_gave_away_are_masked_elsewhere(tmp_path: Path) -> None:
    drawn = "q7Xw2Lk9Zt4Rb8Nf6Hs3"
    text = written(tmp_path, session(user(f'PASSWORD="{drawn}"'), say(f"I saw {drawn[:16]} there"), user("ok")))
    assert drawn[:12] not in text and "[cut]" in text and "3 × secret" in Elements(text).said


def test_a_file_is_bounded_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    made = session(user("go"), *(say("word " * 3000) for _ in range(20)), say("y" * 30_000))
    path = tmp_path / "s.html"
    done = shared_session.write(made, path, Redactor(), most_bytes=200_000)
    assert done.bytes == path.stat().st_size < 250_000 and done.left_out > 5 and done.entries + done.left_out == 22
    assert f"The last {done.left_out} entries are omitted" in Elements(path.read_text()).said
    assert "10,000 more characters are omitted" in " ".join(Elements(written(tmp_path, made)).said.split())


def test_the_verb_writes_a_new_page_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_of(tmp_path / "store", talk())
    out = tmp_path / "s.html"
    common = ("--store", str(store.folder), "--json")
    done = json.loads(printed(capsys, "share", "talk-1", "--out", out, *common))
    assert done["file"] == str(out) and done["masked"]["key"] >= 2 and done["bytes"] == out.stat().st_size
    for arguments in (["talk-1", "--out", str(out)], ["talk-1", "--out", str(tmp_path / "s.pdf")]):
        assert main(["share", *arguments, *common]) == 1
    assert main(["share", "no-such", "--out", str(tmp_path / "t.html"), *common]) == 2
    assert main(["share", "talk-1", "--out", str(tmp_path / "no" / "t.html"), *common]) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.html", "store"]
    assert isinstance(Store(store.folder).session("talk-1"), Session)


def test_pictures_are_put_in_when_they_are_asked_for_and_the_top_says_that_nothing_looked_into_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(200)).decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    log = Log(SESSION)
    log.user([{"type": "text", "text": 'like this [Image #1] <img src="picture-0:0">'}, picture])
    trace = tmp_path / "traces" / "project" / f"{SESSION}.jsonl"
    trace.parent.mkdir(parents=True)
    trace.write_text("".join(f"{line}\n" for line in log.lines))
    pipeline.ingest([str(tmp_path / "traces")], tmp_path / "store", jobs=1)
    asked = ["share", SESSION, "--store", str(tmp_path / "store"), "--json", "--out"]
    assert main([*asked, str(tmp_path / "without.html")]) == 0
    plain = (tmp_path / "without.html").read_text()
    assert json.loads(capsys.readouterr().out)["pictures"] == 0 and data not in plain and "img-src" not in plain
    assert json.loads(printed(capsys, *asked, tmp_path / "with.html", "--pictures"))["pictures"] == 1
    shown = Elements((tmp_path / "with.html").read_text())
    assert shown.all_of("src") == [f"data:image/png;base64,{data}"]
    assert "included unmasked" in shown.said and "img-src data:" in shown.all_of("content")[0]
    trace.unlink()
    assert json.loads(printed(capsys, *asked, tmp_path / "gone.html", "--pictures"))["pictures"] == 0


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("phone", [False, True])
def test_a_browser_opens_it_without_network_and_complains_of_nothing(tmp_path: Path, phone: bool) -> None:
    written(tmp_path, talk())
    with browsing(phone=phone, dark=phone) as tab:
        tab.goto((tmp_path / "session.html").as_uri())
        assert tab.evaluate("getComputedStyle(document.querySelector('.add')).backgroundColor") != "rgba(0, 0, 0, 0)"
        assert serious(tab) == [] and overflow_px(tab) == 0
