"""The session page: diffs, filters, jumps, parts, the raw line, pictures, and what is unusual."""

from __future__ import annotations

import base64
import json
import re
import time
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.ui.pages.session import _declared
from agentsignals.ui.server import Server
from tests.build import call, event, say, session, think, user
from tests.claude import SESSION, Log
from tests.questions.stores import store_of
from tests.ui.browser import browsing, needs_browser, slow_network
from tests.ui.served import EVIL, Elements, ask, page, serving

PATCH = """*** Begin Patch
*** Update File: src/app.py
@@
 first
-old
+new
+newer
 last
@@
-gone
*** Add File: docs/new.md
+# Title
*** Delete File: docs/old.md
*** End Patch
"""


def words(text: str) -> str:
    return " ".join(Elements(text).said.split())


def lines(text: str) -> list[tuple[str, str, str, str]]:
    """Of each line of the diffs: its number before and after, its mark, its text."""
    shown = r'<span class="l(?: \w+)?"><i>(\d*)</i><i>(\d*)</i><b>(.)</b>(.*?)</span>(?=<span class="l[ "]|</pre>)'
    found = re.findall(shown, text, re.DOTALL)
    return [(before, after, mark, re.sub("<[^>]+>", "", code)) for before, after, mark, code in found]


# -- what was changed --------------------------------------------------------------------------------------------------


def test_an_edit_is_a_diff_with_the_numbers_of_the_file(tmp_path: Path) -> None:
    edit = call(
        "Edit",
        path="/w/a.py",
        old_string="x = 1\ny = 2\nz = 3",
        new_string="x = 1\ny = 20\nz = 3",
        hunks=[Hunk(start_line=41, end_line=41, added=1, removed=1, old_start=31)],
    )
    with serving(store_of(tmp_path / "s", session(user("go"), edit, session_id="s1", cwd="/w"))) as server:
        text = page(server, "/session/s1")
        assert lines(text) == [
            ("30", "40", " ", "x = 1"),
            ("31", "", "-", "y = 2"),
            ("", "41", "+", "y = 20"),
            ("32", "42", " ", "z = 3"),
        ]
        assert '<span class="mi">20</span>' in text and "modify line 41 +1 −1" in words(text)
        assert "/w/a.py" not in words(text), "the folder of the session is left out"


def test_a_patch_is_shown_by_file_and_place_with_numbers_only_where_they_fit(tmp_path: Path) -> None:
    made = [
        Hunk(start_line=8, end_line=9, added=2, removed=1, old_start=8),
        Hunk(start_line=30, end_line=30, added=0, removed=1, old_start=29),
    ]
    fits = call("apply_patch", path="src/app.py", input=PATCH, hunks=made)
    other = call("apply_patch", path="src/app.py", input=PATCH, hunks=made[:1])
    with serving(
        store_of(
            tmp_path / "s",
            session(fits, session_id="fits", format="codex"),
            session(other, session_id="other", format="codex"),
        )
    ) as server:
        changed = lines(page(server, "/session/fits"))
        assert changed[:3] == [("7", "7", " ", "first"), ("8", "", "-", "old"), ("", "8", "+", "new")]
        assert ("29", "", "-", "gone") in changed and ("", "1", "+", "# Title") in changed
        text = page(server, "/session/fits")
        assert (
            "delete docs/old.md : the call contains no lines of it" in words(text) and text.count('class="diff"') == 2
        )
        assert lines(page(server, "/session/other"))[:2] == [("", "", " ", "first"), ("", "", "-", "old")]


def test_what_a_command_writes_is_a_diff_beside_the_command(tmp_path: Path) -> None:
    command = (
        "cat > new.py <<'E'\nx = <1>\nE\n"
        "sed -i 's/old_name/new_name/' a.py && sed -i '7i import os' b.py && make > c.txt"
    )
    failed = "cat > d.txt <<'E'\nfirst line\nE\npytest && echo 'not written' >> d.txt"
    parts = [
        call("Bash", command=command),
        call("Bash", command="sed -i 's/same/same/' a.py"),
        call("Bash", command=failed, status="error", result="1 failed"),
        call("Bash", command="echo y > e.txt", status="error", result="e.txt: Permission denied"),
    ]
    with serving(store_of(tmp_path / "s", session(user("go"), *parts, session_id="s1"))) as server:
        text = page(server, "/session/s1")
    assert lines(text) == [
        ("", "1", "+", "x = &lt;1&gt;"),
        ("", "", "-", "old_name"),
        ("", "", "+", "new_name"),
        ("", "7", "+", "import os"),
        ("", "1", "+", "first line"),
    ]
    assert "not made" not in words(text)
    assert [name for name in ("new.py", "a.py", "b.py") if f"{name}" in words(text)] == ["new.py", "a.py", "b.py"]
    assert "whole command" in words(text) and "cat &gt; new.py" in text, "the command itself stays to be read"


def test_a_failed_edit_says_that_nothing_was_made_and_a_new_file_is_all_new(tmp_path: Path) -> None:
    failed = call("Edit", path="a.py", old_string="a", new_string="b", status="error", result="no such text")
    made = call("Write", path="b.txt", content="one\ntwo\n", creates=True)
    with serving(store_of(tmp_path / "s", session(failed, made, session_id="s1"))) as server:
        text = page(server, "/session/s1")
        assert "Requested, but not applied:" in words(text) and "no such text" in words(text)
        assert lines(text)[-2:] == [("", "1", "+", "one"), ("", "2", "+", "two")]


def test_a_plan_and_a_list_of_things_to_do_are_shown_as_such(tmp_path: Path) -> None:
    plan = call("ExitPlanMode", plan="# Way\n\n1. **first**")
    todo = call("TodoWrite", todos=[{"content": "read", "status": "completed"}, {"content": EVIL, "status": "pending"}])
    odd = [call("TodoWrite", todos=["text", {"status": 7}, None]), call("ExitPlanMode", plan=[1])]
    with serving(store_of(tmp_path / "s", session(plan, todo, *odd, session_id="s1"))) as server:
        text = page(server, "/session/s1")
        assert "<strong>first</strong>" in text and "✓ read" in words(text) and "<img" not in text


def test_hostile_changes_stay_text(tmp_path: Path) -> None:
    evil = [
        call("Edit", path=f"{EVIL}.py", old_string=EVIL, new_string=f"{EVIL}\n{EVIL}"),
        call("Write", path="a.html", content=EVIL),
    ]
    evil.append(call("Read", path="a.py", result=f"     1→{EVIL}\n     2→x = 1"))
    with serving(store_of(tmp_path / "s", session(*evil, session_id="s1"))) as server:
        shown = Elements(page(server, "/session/s1"))
        assert not {"img", "title"} & {name for name, attrs in shown.elements if "onerror" in attrs}
        assert "style" not in {key for _, attrs in shown.elements for key in attrs}
        assert "[U+202E]" in shown.said and "\u202e" not in shown.said


@pytest.mark.slow
def test_changes_made_to_take_long_do_not(tmp_path: Path) -> None:
    alike, mixed = "a\n" * 630, "".join(f"a\n{n}\n" for n in range(315))
    slow = [call("Edit", path="a.py", old_string=alike, new_string=mixed)] * 3
    large = [call("Write", path=f"b{n}.py", content="x = 1\n" * 3_000) for n in range(20)]
    with serving(store_of(tmp_path / "s", session(*slow, *large, session_id="s1"))) as server:
        began = time.process_time()
        text = page(server, "/session/s1")
        assert time.process_time() - began < 5.0
        assert "more lines are in the call’s line" in words(text) and len(text) < 6_000_000
        assert '<span class="n">x</span>' in text


def test_a_file_that_was_read_has_its_colours_and_its_numbers_apart(tmp_path: Path) -> None:
    read = call("Read", path="a.py", result="     7→def f():\n     8→    return 1")
    with serving(store_of(tmp_path / "s", session(read, session_id="s1"))) as server:
        text = page(server, "/session/s1")
        assert '<span class="no">7</span><span class="k">def</span>' in text


# -- which entries -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A session of 200 turns, of which every tenth call failed, with a long subagent and a short one."""
    parts = []
    for n in range(200):
        parts += [user(f"prompt {n}"), call("Bash", command=f"make {n}", status="error" if n % 10 == 3 else "ok")]
    parts += [call("Read", path=f"deep{n}.py", thread="agent-long") for n in range(410)]
    parts += [call("Bash", command="pytest", thread="agent-short", status="error"), event("compaction", "squeezed")]
    parts += [call("Grep", pattern="needle", path="src"), think("hm"), event("interrupt", "stop")]
    return store_of(tmp_path_factory.mktemp("many") / "s", session(*parts, session_id="many"))


def test_kinds_are_counted_and_shown_alone_wherever_they_are(many: Store) -> None:
    with serving(many) as server:
        whole = words(page(server, "/session/many"))
        assert "21 failures" in whole and "1 interruption" in whole and "1 compaction" in whole
        assert "no refusals" in whole
        failures = page(server, "/session/many?only=failures")
        assert len(re.findall('class="entry [^"]*failed', failures)) == 21 == failures.count('class="entry ')
        assert "subagent agent-short" in words(failures)
        both = page(server, "/session/many?only=compactions,interruptions,nonsense")
        assert both.count('class="entry ') == 2
        assert "pattern: needle" in words(page(server, "/session/many?only=searches"))


def test_words_are_found_in_texts_commands_and_results_of_the_session(many: Store) -> None:
    with serving(many) as server:
        assert page(server, "/session/many?q=PROMPT+19").count('class="entry ') == 11
        assert page(server, "/session/many?q=needle").count('class="entry ') == 1
        assert page(server, "/session/many?q=make+1&only=failures").count('class="entry ') == 11
        assert "No matching entries." in page(server, "/session/many?q=%25")


def test_the_script_is_told_where_to_jump_and_gets_parts_and_turns_as_pieces(many: Store) -> None:
    with serving(many) as server:
        marks = json.loads(page(server, "/session/many/marks"))
        assert len(marks["failures"]) == 21 and len(marks["prompts"]) == 200 and marks["compactions"]
        piece = page(server, "/session/many/part?page=2")
        assert "<html" not in piece and 'data-part="1"' in piece and piece.count('class="entry ') == 60
        last = marks["failures"][-2]
        assert f'id="e{last}"' in page(server, f"/session/many/part?at={last}")
        turns = page(server, "/session/many/turns?turn=199")
        assert 'data-low="150"' in turns and "200 prompt 199" in words(turns) and turns.count("<li ") == 50


def test_a_subagent_is_folded_where_it_began_and_a_long_one_is_shown_by_itself(many: Store) -> None:
    with serving(many) as server:
        at = many.session("many").tool_calls
        long, short = (next(c.seq for c in at if c.thread == name) for name in ("agent-long", "agent-short"))
        assert "subagent agent-long 410 entries, 410 calls" in words(page(server, "/session/many?page=7"))
        opened = page(server, f"/session/many?at={short}")
        assert '<details class="thread" data-thread="agent-short" open>' in opened
        alone = page(server, f"/session/many?at={long + 2}")
        assert "Only subagent agent-long." in words(alone) and "deep1.py" in alone and "1–60 of 410 entries" in alone


# -- the file ----------------------------------------------------------------------------------------------------------

RAW = SESSION
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(200)).decode()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    drawing = {"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": PICTURE}}
    log = Log(RAW)
    log.user([{"type": "text", "text": "like this [Image #1]"}, picture, drawing])
    log.say("key is AKIAIOSFODNN7EXAMPLQ <b>")
    path = tmp_path / "traces" / "project" / f"{RAW}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{line}\n" for line in log.lines))
    return path


def test_the_raw_line_is_indented_masked_and_shows_its_pictures(trace: Path, tmp_path: Path) -> None:
    pipeline.ingest([str(tmp_path / "traces")], tmp_path / "s", jobs=1)
    with serving(Store(tmp_path / "s")) as server:
        first = page(server, f"/session/{RAW}/raw/0")
        sources = Elements(first).all_of("src")
        assert [s for s in sources if s.startswith("data:")] == [f"data:image/png;base64,{PICTURE}"], (
            "no SVG, which can run"
        )
        second = page(server, f"/session/{RAW}/raw/1")
        assert "AKIAIOSFODNN7EXAMPLQ" not in second and "<b>" not in second and "assistant" in second
        assert 'details class="pictured" data-seq="0"' in page(server, f"/session/{RAW}")
        assert PICTURE in page(server, f"/session/{RAW}/image/0") and "no picture" in page(
            server, f"/session/{RAW}/image/1"
        )
        assert ask(server, f"/session/{RAW}/raw/99").status == 404 == ask(server, f"/session/{RAW}/raw/x").status

        grown = trace.read_text()
        trace.write_text(grown + "{}\n")
        assert "assistant" in page(server, f"/session/{RAW}/raw/1"), "what was read stands there still"
        trace.write_text(grown.replace("key", "kez"))
        assert "the file has changed" in words(page(server, f"/session/{RAW}/raw/1"))
        trace.unlink()
        assert "no longer exists" in words(page(server, f"/session/{RAW}/raw/1"))


# -- what is unusual ---------------------------------------------------------------------------------------------------


def test_what_is_unusual_has_its_place_among_how_many(tmp_path: Path) -> None:
    usual = [session(user("a"), *[call("Read", path="a.py")] * (n % 3), session_id=f"s{n}") for n in range(30)]
    odd = session(user("a"), *[call("Read", path="a.py")] * 40, session_id="odd")
    with serving(store_of(tmp_path / "many", *usual, odd)) as server:
        far = words(page(server, "/session/odd"))
        assert re.search(r"Unusual values .* highest of 31; median", far)
        assert re.search(r"\d+ of \d+ signals (is|are) in the highest or lowest", far)
    with serving(store_of(tmp_path / "few", *usual[:3], odd)) as server:
        assert "There are too few sessions to compare this one with." in words(page(server, "/session/odd"))


def test_a_signal_stands_along_the_session_by_turn_as_bars_and_as_a_table(tmp_path: Path) -> None:
    made = session(
        *(user("please mend the parser of the dates"), call("Bash", command="ls", result="a")),
        *(
            user("no, that is wrong, undo it"),
            call("Bash", command="pwd", result="/"),
            call("Read", path="a", result="x"),
        ),
        user("thanks"),
        session_id="s1",
    )
    with serving(store_of(tmp_path / "s", made)) as server:
        plain = page(server, "/session/s1?only=calls")
        links = [link for link in Elements(plain).all_of("href") if "signal=" in link]
        assert "?only=calls&signal=chat.tool_calls_per_turn#by-turn" in links and "Values by turn" not in plain
        counted = page(server, "/session/s1?signal=chat.tool_calls_per_turn")
        assert "up to 2, 3 turns" in words(counted) and counted.count('class="value"') == 3
        assert re.findall(r"<td>(\d)</td></tr>", counted)[:3] == ["1", "2", "0"]
        [second] = re.findall(r'<th scope="row"><a href="([^"]+)">2</a>', counted)
        assert second.startswith("?signal=chat.tool_calls_per_turn&amp;at=")
        labels = words(page(server, "/session/s1?signal=chat.pushback_type"))
        assert "non_pushback 1 turn" in labels and "Values by turn 2" in labels
        assert "Values by turn" not in page(server, f"/session/s1?{urlencode({'signal': EVIL})}")


def test_a_value_is_explained_with_its_place_its_rule_its_events_and_how_often_it_is_right(tmp_path: Path) -> None:
    usual = [session(user("a"), *[call("Bash", command="make")] * 4, session_id=f"s{n:02}") for n in range(30)]
    failing = [call("Bash", command="make", status="error", result=EVIL)] * 3
    odd = session(user("a"), *failing, call("Read", path="a.py"), user("thanks, perfect"), session_id="odd")
    with serving(store_of(tmp_path / "s", *usual, odd)) as server:
        rate = page(server, "/session/odd/explain/user.tool_error_rate")
        told = words(rate)
        assert "0.75 exact value 0.75 ratio; highest of 31 sessions of people with a value; median 0" in told
        assert "turn 1, event 1 Bash make error" in told and "line 2" in told
        assert 'href="/session/odd/raw/1"' in rate and 'href="/session/odd?at=1#e1"' in rate
        assert "This value is counted from the records of the log" in told and "Some errors are probes." in told
        outcome = page(server, "/session/odd/explain/user.session_outcome")
        assert re.search(r"agreement|Against planted cases: the same for \d+% \d+–\d+% of \d+", words(outcome))
        assert 'href="/session/odd/explain/user.output_applied"' in outcome
        assert "1 of 1 product" not in words(outcome), "alone among its like says nothing"
        turns = page(server, "/session/odd/explain/chat.turns_per_session")
        assert 'href="/session/odd/raw/0"' in turns, "an event beside evidence that is none"


def test_what_is_of_other_sessions_is_not_explained(server: Server) -> None:
    asked = ask(server, "/session/run-1%230/explain/user.session_outcome")
    assert asked.status == 404 and "user.session_outcome applies to product sessions" in asked.text
    assert ask(server, "/session/run-1%230/explain/sessions.cost_usd").status == 200


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_browser
def test_a_long_session_is_read_by_scrolling_and_by_keys(tmp_path: Path) -> None:
    parts = []
    for n in range(1500):
        status = "error" if n % 100 == 50 else "ok"
        parts += [user(f"prompt {n}"), say(f"reply {n}"), call("Bash", command=f"make {n}", status=status)]
    with serving(store_of(tmp_path / "s", session(*parts, session_id="long"))) as server, browsing() as reader:
        reader.goto(f"{server.url}session/long")

        def press(key: str, wanted: str) -> None:
            reader.keyboard.press(key)
            reader.locator(f"#{wanted}:focus").wait_for()

        press("j", "e0")
        press("j", "e1")
        press("n", "e4")
        press("k", "e2")
        failures = json.loads(page(server, "/session/long/marks"))["failures"]
        press("f", f"e{failures[0]}")
        with slow_network(reader):  # a second key pressed before the first one's part is there counts too
            reader.keyboard.press("f")
            reader.keyboard.press("f")
            reader.wait_for_url(f"**at={failures[2]}#**")
            reader.keyboard.press("F")
            reader.locator(f"#e{failures[1]}:focus").wait_for()
            reader.keyboard.press("/")  # while the part above is still to come
            reader.wait_for_timeout(800)
            assert reader.evaluate("document.activeElement.id") == "within"
            reader.evaluate("document.activeElement.blur()")
        press("F", f"e{failures[0]}")
        reader.wait_for_url(f"**at={failures[0]}#**")
        reader.keyboard.press("/")
        reader.keyboard.type("jfn")
        assert (
            reader.evaluate("document.activeElement.value") == "jfn"
            and reader.evaluate("document.activeElement.id") == "within"
        )
        reader.evaluate("document.activeElement.blur()")
        reader.keyboard.press("?")
        assert reader.locator("dialog").is_visible()
        reader.keyboard.press("Escape")
        for share in (0.3, 0.6, 0.9):
            reader.evaluate(f"scrollTo(0, document.documentElement.scrollHeight * {share})")
            near = "[...document.querySelectorAll('.entry')].some(e => Math.abs(e.getBoundingClientRect().top) < 400)"
            assert any(reader.evaluate(near) or reader.wait_for_timeout(200) for _ in range(50))
        assert reader.evaluate("document.querySelectorAll('.entry').length") < 900, "far parts are let go"
        reader.goto(f"{server.url}session/long?at={failures[-1]}#e{failures[-1]}")
        reader.wait_for_timeout(300)
        assert 0 <= reader.evaluate(f"document.getElementById('e{failures[-1]}').getBoundingClientRect().top") < 300


def test_a_label_shows_its_measured_precision_and_one_that_is_mostly_wrong_is_not_shown() -> None:
    def row(signal: str, value: str, labeller: str | None = None) -> dict[str, Any]:
        made = {"signal": signal, "value": msgspec.json.encode(value).decode(), "absent": None, "turn": 0}
        return made | {"labeller": labeller}

    rows = [row("chat.prompt_intent", name, "classifier") for name in ("debug", "refactor")]
    rows += [row("chat.prompt_intent", "understand", "human:ann"), row("chat.prompt_intent", "git", "openai:m")]
    rows += [row("user.agent_name", "x"), row("chat.pushback_type", "rejection")]
    rows += [row("user.session_outcome", "accepted"), row("chat.pushback_type", "correction")]
    shown = {(made["signal"], made["value"]): made["sure"] for made in _declared(rows)}
    assert ("chat.prompt_intent", '"refactor"') not in shown, "wrong in more than half of the cases"
    assert shown["chat.prompt_intent", '"debug"'] == "68%" and shown["chat.pushback_type", '"correction"'] == "69%"
    others = {"understand": "chat.prompt_intent", "git": "chat.prompt_intent", "rejection": "chat.pushback_type"}
    for value, signal in others.items():
        assert shown[signal, f'"{value}"'] == "~", (
            "the classifier's precision is not that of a person, a model or rules"
        )
    assert shown["user.session_outcome", '"accepted"'] == "~", "planted cases alone are no measure"


def test_a_session_is_resumed_and_shared_from_its_page(tmp_path: Path) -> None:
    made = session(user("use sk-ant-api03-" + "aB3" * 31 + "AA please"), session_id="abc-1", cwd="/w/it's")
    part = session(user("sub"), session_id="abc-2", parent_session_id="abc-1")
    with serving(store_of(tmp_path / "store", made, part)) as running:
        command = """cd '/w/it'"'"'s' && claude --resume abc-1"""
        assert f"<code>{command}</code>" in unescape(page(running, "/session/abc-1"))
        assert "claude --resume" not in page(running, "/session/abc-2"), "a subagent's session can't be resumed"
        listed = page(running, "/sessions")
        assert listed.count("data-copy=") == 1 and f'data-copy="{command}"' in unescape(listed)
        assert 'data-copy="claude --resume abc-1"' in page(running, "/search?q=please"), "a folder may name a person"
        shared = ask(running, "/session/abc-1/share")
        assert shared.status == 200 and "attachment" in shared.headers["Content-Disposition"]
        assert "please" in shared.text and "aB3aB3" not in shared.text
        assert ask(running, "/session/nobody/share").status == 404
