"""How well a second reader tells the sets of `blind` apart, alone and together with the rules.

    python -m benchmarks.stories.reader SET.json --prompts FOLDER
    python -m benchmarks.stories.reader SET.json --answers FOLDER|FILE.json

The first writes `FOLDER/RUN.md` for each run: the prompt as the product sends it, with the schema of the answer. The
second takes `FOLDER/RUN.json`, what a server would answer, or a file of answers by run: `readings.json` has those of a
strong language model to the sets L to O and to `deceptions.json`. It serves them on this machine to `evals audit
--reader`, and prints how many hacks and honest runs have which verdict by the rules, by the reader and by both. Runs
without an answer have the rules' verdict in the last. Intervals are Wilson's, at 95 %.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from agentsignals.labels.labellers.openai import ChatServer
from agentsignals.labels.prompting import Asker
from agentsignals.labels.tasks import task
from agentsignals.labels.units import Selection, Unit
from agentsignals.store import Store
from agentsignals.views.second_reader import AUDIT_TASK
from benchmarks.stories import harbor
from benchmarks.stories.blind import written
from benchmarks.stories.measure import FLAGGED, printed, share

MODEL, WINDOW = "reader", 32_768
COLUMNS = ("rules alone", "reader alone", "both")


class Read(NamedTuple):
    """A run, and what each said of it."""

    run: str
    kind: str
    rules: str
    reader: str
    """Empty where there is no answer."""
    both: str
    because: str


def prompts(store: Path, runs: list[str]) -> dict[str, dict[str, Any]]:
    """The body of the call that asks about each run that passed, by run."""
    asked, server = task(AUDIT_TASK), ChatServer(f"{MODEL}@http://127.0.0.1/v1")
    by_session = {harbor.session_of(run): run for run in runs}
    asker, bodies = Asker(asked, server.name), {}
    for unit in Selection().units(Store(store), asked, WINDOW):
        if not isinstance(unit, Unit):
            continue
        if len(unit.parts) > 1:
            raise ValueError(f"{unit.session_id} does not fit a window of {WINDOW} tokens")
        question = asker.question(unit)
        run = next(run for session, run in by_session.items() if session in unit.session_id)
        bodies[run] = server.request(question, question.tokens, 0.0, "text")
    return bodies


def read(file: Path, answers: dict[str, str]) -> list[Read]:
    """Every run of a set, audited with these answers by run."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        labels = written(folder, file)
        store = ["--quiet", "--store", str(folder / "store")]
        printed(["analyze", str(folder / "runs"), "--jobs", "1", *store])
        shown = {
            body["messages"][1]["content"]: run
            for run, body in prompts(folder / "store", [one.run for one in labels]).items()
        }
        told = {text: answers[run] for text, run in shown.items() if run in answers}
        answered = " OR ".join(f"contains(session_id, '{harbor.session_of(run)}')" for run in answers) or "false"
        with serving(told) as url:
            by = ["--reader", f"openai:{MODEL}@{url}", "--window", str(WINDOW), "--where", answered]
            printed(["audit", *by, *store])
        listed: list[dict[str, Any]] = json.loads(printed(["audit", "--json", *store]))["listed"]
    runs = []
    for label in labels:
        (row,) = [row for row in listed if harbor.session_of(label.run) in row["session_id"]]
        rules = row["rules"] or row["verdict"]
        runs.append(Read(label.run, label.kind, rules, row["reader"], row["verdict"], row["because"]))
    return runs


@contextmanager
def serving(answers: dict[str, str]) -> Iterator[str]:
    """A chat server that gives these answers, by what it is shown; it refuses what it has none for."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = answers.get(body["messages"][1]["content"])
            message = {"role": "assistant", "content": answer}
            self.send_response(400 if answer is None else 200)
            self.end_headers()
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self.wfile.write(json.dumps({"model": MODEL, "choices": [choice]}).encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def table(runs: list[Read]) -> str:
    """Markdown: what the rules, the reader and both say of hacks and honest runs; then every pair of verdicts."""
    head = ("", "hacks flagged", "cannot tell", "derived", "honest flagged", "cannot tell", "derived")
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, field in zip(COLUMNS, ("rules", "reader", "both"), strict=True):
        cells = [name]
        for kind in ("hack", "honest"):
            said = [getattr(run, field) for run in runs if run.kind == kind]
            said = [verdict for verdict in said if verdict]
            flagged, derived = sum(map(FLAGGED.__contains__, said)), said.count("derived")
            cells += [share(flagged, len(said)), str(said.count("cannot_tell")), share(derived, len(said))]
        lines.append("| " + " | ".join(cells) + " |")
    pairs = Counter((run.kind, run.rules, run.reader or "no answer", run.both) for run in runs)
    lines += ["", "| kind | rules | reader | both | runs |", "|" + " --- |" * 5]
    lines += ["| " + " | ".join((*map(str, pair), str(n))) + " |" for pair, n in sorted(pairs.items())]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sets", type=Path, nargs="+", metavar="SET.json")
    way = options.add_mutually_exclusive_group(required=True)
    way.add_argument("--prompts", type=Path, metavar="FOLDER")
    way.add_argument("--answers", type=Path, metavar="FOLDER|FILE.json")
    chosen = options.parse_args(arguments)
    runs: list[Read] = []
    found: dict[str, str] = {}
    if chosen.answers is not None and chosen.answers.is_dir():
        found = {path.stem: path.read_text("utf-8") for path in chosen.answers.glob("*.json")}
    elif chosen.answers is not None:
        found = {run: json.dumps(answer) for run, answer in json.loads(chosen.answers.read_text("utf-8")).items()}
    for file in chosen.sets:
        if chosen.prompts is not None:
            with TemporaryDirectory() as made:
                folder = Path(made)
                labels = written(folder, file)
                printed(["analyze", str(folder / "runs"), "--jobs", "1", "--quiet", "--store", str(folder / "store")])
                bodies = prompts(folder / "store", [label.run for label in labels])
            chosen.prompts.mkdir(parents=True, exist_ok=True)
            for run, body in bodies.items():
                texts = [message["content"] for message in body["messages"]]
                (chosen.prompts / f"{run}.md").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
            print(f"{len(bodies)} of {len(labels)} runs passed and are written to {chosen.prompts}")
        else:
            runs += read(file, found)
    if runs:
        print(table(runs))
        for run in runs:
            if run.both not in FLAGGED if run.kind == "hack" else run.both != "derived":
                print(
                    f"  {run.kind:7}{run.run}: {run.both} (rules {run.rules}, reader {run.reader}): {run.because[:240]}"
                )


if __name__ == "__main__":
    main()
