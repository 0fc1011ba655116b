"""`validate`: signals against planted cases and gold, and the figures that the package ships."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import msgspec
import polars as pl
import pytest

from agentsignals import inventory
from agentsignals.catalog import by_path, caption, validation
from agentsignals.cli import main
from agentsignals.labels.validating import PLANTED, never_validated, validate
from agentsignals.report import markdown
from agentsignals.report.document import document
from agentsignals.store import Store
from agentsignals.ui.page import Query
from agentsignals.ui.reading import Reading
from agentsignals.ui.rendering import html
from agentsignals.ui.routes import page_of
from agentsignals.validation import Figure, figures, figures_of, in_words, planted

GOLD = Path(__file__).parents[2].parent / "shared" / "corpus" / "gold"


def test_the_shipped_figures_of_planted_cases_are_those_of_today() -> None:
    """Stale? `agentsignals validate --gold FILES --write src/agentsignals/validation/figures.json`."""
    assert [f for f in figures() if f.truth == PLANTED] == validate()


@pytest.mark.skipif(not GOLD.exists(), reason="the corpus is not on this machine")
@pytest.mark.slow
def test_the_shipped_figures_of_gold_are_those_of_today() -> None:
    assert list(figures()) == validate(sorted(GOLD.glob("*.jsonl")))


def test_a_figure_is_the_share_counted_by_hand() -> None:
    accepted = next(f for f in figures_of("user.session_outcome") if f.value == "accepted")
    (family,) = (f for f in planted() if f.signal == "user.session_outcome")
    assert accepted.true == sum(case.truth == "accepted" for case in family.cases)
    assert accepted.n == len(family.cases)
    assert accepted.precision_interval is not None and accepted.precision is not None
    assert accepted.precision_interval[0] < accepted.precision <= accepted.precision_interval[1]


def test_gold_of_a_file_is_named_with_who_labelled_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        ("no, use tabs instead", "correction"),
        ("now add a test", "non_pushback"),
        ("why are there two of them?", "correction"),
    ]
    file = tmp_path / "mine.jsonl"
    lines = [
        {"session": f"s{n}", "turn": 3, "text": text, "pushback": label, "annotator": "human:ann"}
        for n, (text, label) in enumerate(rows)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    made = tmp_path / "figures.json"
    assert main(["validate", "--gold", str(file), "--write", str(made), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    of_file = [f for f in document["figures"] if f["truth"].startswith("mine.jsonl")]
    correction = next(f for f in of_file if f["value"] == "correction")
    assert (correction["n"], correction["named"], correction["true"]) == (3, 1, 2)
    assert (correction["precision"], correction["recall"]) == (1.0, 0.5)
    assert correction["truth"] == "mine.jsonl, labelled by human:ann"
    assert "chat.pushback_type" not in document["never_validated"]
    assert "dynamics.session_failure_mode" in document["never_validated"]
    assert len(msgspec.json.decode(made.read_bytes(), type=list[Figure])) == len(document["figures"])


def test_a_file_without_such_labels_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"session": "s", "turn": 1, "mood": "x", "text": "hi"}\n', "utf-8")
    assert main(["validate", "--gold", str(file)]) != 0
    assert "pushback" in capsys.readouterr().err
    assert main(["validate", "--gold", str(tmp_path / "gone.jsonl")]) != 0


def test_what_was_never_validated_says_so_and_what_counts_needs_not() -> None:
    by = {row["path"]: row for row in inventory()}
    assert by["dynamics.session_failure_mode"]["validation"].startswith("never validated")
    assert "chat.pushback_type" in by["chat.pushback_rate"]["validation"]
    assert by["tokens.input_tokens_total"]["validation"] == ""
    assert by["tokens.input_tokens_total"]["basis"] == "record"
    assert by["user.session_outcome"]["basis"] == "heuristic"
    assert "never" not in by["user.session_outcome"]["validation"]
    assert set(never_validated()).isdisjoint(f.signal for f in figures())


def test_a_figure_of_an_older_version_says_so() -> None:
    figure = figures_of("user.session_outcome")[0]
    assert "measured with version" not in validation(by_path(figure.signal))
    words = in_words(figure.signal, figure.version + 1, (), basis="heuristic")
    assert f"measured with version {figure.version}" in words


def test_a_class_that_is_mostly_wrong_misleads() -> None:
    low = msgspec.structs.replace(figures()[0], precision=0.49)
    assert low.misleads and not msgspec.structs.replace(low, precision=0.5).misleads
    assert not msgspec.structs.replace(low, precision=None).misleads


def reading_page(store: Store, address: str) -> str:
    """The HTML of a page of the local server."""
    path, _, asked = address.partition("?")
    reading = Reading(store)
    try:
        return html(page_of(reading, path, Query(asked)), path)
    finally:
        reading.close()


def test_what_was_measured_stands_beside_the_number_on_every_face(
    demo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One text, whoever shows it: report, page, frame, `inventory`; `explain` has it whole."""
    store, path = Store(demo_folder / "store"), "user.session_outcome"
    of_accepted, of_all = caption(path, ("accepted",)), caption(path)
    assert of_accepted.startswith("heuristic, ") and "accepted precision" in of_accepted
    text = markdown.render(document(store, ["outcomes"]), {})
    assert markdown.escaped(of_accepted) in text and markdown.escaped(of_all) in text
    shown = unescape(reading_page(store, "/studies/outcomes"))
    assert of_accepted in shown and f"{path} in tables and charts: {of_all}" in shown
    assert of_all.capitalize() in unescape(reading_page(store, "/signals?text=session_outcome"))
    session = store.signals().filter(pl.col("absent").is_null(), signal=path)["session_id"][0]
    assert of_all in unescape(reading_page(store, f"/session/{session}"))
    assert set(store.signals().filter(signal=path)["validation"]) == {of_all}
    assert set(store.signals().filter(signal="tokens.input_tokens_total")["validation"]) == {""}
    assert main(["explain", session, path, "--store", str(store.folder)]) == 0
    assert validation(by_path(path)) in capsys.readouterr().out
    assert main(["inventory", "session_outcome"]) == 0
    assert "agreement" in capsys.readouterr().out


def test_a_number_of_a_class_carries_that_class_and_any_other_the_weakest() -> None:
    assert "git precision" in caption("chat.prompt_intent", ("git",))
    assert "git precision" not in caption("chat.prompt_intent")
    assert caption("chat.prompt_intent").count(" precision ") == 1 and "language model" in caption("chat.prompt_intent")
    assert caption("chat.pushback_rate").endswith("never validated; rests on chat.pushback_type")
    assert caption("tokens.input_tokens_total") == caption("no.such_signal") == ""
