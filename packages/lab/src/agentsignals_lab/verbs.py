"""The verb `lab`: its actions, and its results as aligned text, as plain data, and as a page."""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentsignals import private_files
from agentsignals.cli.output import Bar, print_result, printable, table, tell
from agentsignals.errors import LabError, UsageError
from agentsignals.questions.question import formatted, times
from msgspec import to_builtins

from agentsignals_lab import how_to_install

if TYPE_CHECKING:
    from agentsignals.ui.document import Document

    from agentsignals_lab.residual.model import HookedModel
    from agentsignals_lab.retry_runs import Ran
    from agentsignals_lab.runs import Run


SHARED: dict[str, Any]
VERBS: dict[str, Any]
"""The verbs of `agentsignals lab` by name, declared as those of agentsignals are, and the arguments that they share."""
VERBS = json.loads(Path(__file__).with_name("verbs.json").read_bytes())
SHARED = VERBS.pop("shared")
_SHOWN = 44
_EXTRA = ("torch", "transformers", "tokenizers", "numpy", "sklearn")
"""Packages of the extra `torch`, as they are imported."""
_BROUGHT = (
    "`lab run`, and `lab agent` with --model, need more packages; the other verbs of `lab` and `lab agent --server` do"
    " not. {}"
)


def inventory(families: str | None) -> dict[str, Any]:
    """Return what can be run here; with `families`, their tasks by key."""
    from agentsignals_lab import experiments, sandbox, texts
    from agentsignals_lab.coding_tasks import chosen_tasks, task_files, tasks

    listed: dict[str, Any] = {
        "experiments": experiments.NAMES,
        "families": dict(Counter(task.family for task in tasks())),
        "tones": list(texts.tones()),
        "sandbox": [sandbox.missing() or "bubblewrap"],
        "not_installed": [name for name in _EXTRA if find_spec(name) is None],
    }
    if families is not None:
        listed["tasks"] = {task.key: task.says for task in chosen_tasks(families)}
        left_out = {f"{n} line {t.line} {t.id}": t.why for n, f in task_files(families).items() for t in f.left_out}
        listed |= {"left_out": left_out} if left_out else {}
    return listed


def text_of_inventory(listed: dict[str, Any]) -> str:
    lines = [table(("experiment", "question"), listed["experiments"].items(), 110), ""]
    lines.append(table(("family", "tasks"), listed["families"].items()))
    lines += ["", *(f"{name:<12}{', '.join(listed[name])}" for name in ("tones", "sandbox"))]
    if listed["not_installed"]:
        lines += ["", f"{', '.join(listed['not_installed'])}: not installed. {_BROUGHT.format(how_to_install())}"]
    if "tasks" in listed:
        lines += ["", table(("task", "says"), listed["tasks"].items(), 110)]
    if "left_out" in listed:
        lines += ["", table(("left out", "why"), listed["left_out"].items(), 110)]
    return "\n".join(lines)


def ended(run: Run, ran: Ran) -> dict[str, Any]:
    """Return the result of a retry loop."""
    from agentsignals_lab.conditions import beside
    from agentsignals_lab.report import OUTCOMES, asked_of, conditions_of, episodes_of, rate

    rows, controls = [], beside(asked_of(run))
    for name, episodes in conditions_of([row for row in episodes_of(run) if row.condition not in controls]).items():
        rates = {key.replace(" ", "_"): rate(episodes, of) for key, of in OUTCOMES.items()}
        failed = [row for row in episodes if row.failed_first]
        rows.append(
            {
                "condition": name,
                "episodes": len(episodes),
                **{key: estimate.value for key, estimate in rates.items()},
                "full_pass_interval": rates["full_pass"].interval,
                "failed_first": len(failed),
                "recovered": sum(row.recovered for row in failed),
            }
        )
    return {"run": str(run.folder), "episodes": ran.episodes, "new": ran.new, "conditions": rows}


def text_of_ended(summary: dict[str, Any]) -> str:
    heads = ("condition", "episodes", "visible", "full pass", "95 % interval", "recovered", "hardcoded")
    rows = [
        (
            row["condition"],
            row["episodes"],
            formatted(row["visible_pass"], "share"),
            formatted(row["full_pass"], "share"),
            " to ".join(formatted(end, "share") for end in row["full_pass_interval"] or ()),
            f"{row['recovered']} of {row['failed_first']}",
            formatted(row["hardcoded"], "share"),
        )
        for row in summary["conditions"]
    ]
    folder = printable(summary["run"])
    lines = [f"run       {folder}", f"episodes  {summary['episodes']:,}, {summary['new']:,} of them new", ""]
    lines += [table(heads, rows, _SHOWN), ""]
    lines.append(f"next      agentsignals lab report {folder}; agentsignals analyze {folder}")
    return "\n".join(lines)


def document(run: Run) -> Document:
    """The run's report before it has a form."""
    from agentsignals.ui.document import FORM, Document

    from agentsignals_lab.report import sections

    experiment = run.config.experiment.replace("_", " ").capitalize()
    return Document(
        form=FORM,
        agentsignals=version("agentsignals"),
        made_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        sessions=1,
        schema=0,
        prices=(),
        context="eval",
        contexts={"eval": 1},
        sections=sections(run),
        about=f"{experiment} of {run.manifest.model.get('name') or 'a model'}",
    )


# `lab`: retry loops and experiments on a model, their reports, runs held against each other.

_REPORTS = ("report.html", "report.md")


def run_lab(options: argparse.Namespace) -> int:
    try:
        return int(globals()[f"run_{options.of}"](options))
    except ModuleNotFoundError as problem:
        if (problem.name or "agentsignals").startswith("agentsignals"):
            raise
        raise LabError(
            f"The lab needs {problem.name}, which is not installed.",
            f"Install what it needs: {how_to_install()}",
        ) from problem


def run_list(options: argparse.Namespace) -> int:
    return print_result(options, inventory(options.tasks), text_of_inventory)


def run_new(options: argparse.Namespace) -> int:
    import agentsignals_lab as lab

    folder, ours = Path(options.folder), Path(lab.__file__).parent
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LabError(f"{folder} already exists.", "Name a new folder, or an empty one.")
    try:
        private_files.make_folder(folder)
        for path in sorted((ours / "sample_study").glob("*.*")):
            private_files.write(folder / path.name, path.read_text("utf-8"))
        shutil.copytree(ours / "sample_study" / "model", folder / "model")  # whose words the files are in, 0.6 MB
    except OSError as problem:
        raise LabError(f"{folder} can't be written: {problem.strerror}.", "Name another folder.") from problem
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    result = {"study": str(folder), "files": files}
    said = (
        f"study     {printable(str(folder))}\nnext      cd {printable(str(folder))}; its README.md has the commands\n"
    )
    return print_result(options, result, lambda t: said + "\n".join(f"          {name}" for name in t["files"]))


def run_agent(options: argparse.Namespace) -> int:
    from agentsignals_lab import retry_runs
    from agentsignals_lab.residual import load
    from agentsignals_lab.retry_runs import run_loop
    from agentsignals_lab.served_model import Served

    if (options.model is None) == (options.server is None):
        raise UsageError(
            "Give either --model or --server.", "For example: agentsignals lab agent --model FOLDER --out RUN"
        )
    if options.server is not None and not options.server_model:
        raise UsageError("--server needs --server-model.", "Add --server-model NAME: the model's name on that server.")
    if options.server is not None and options.directions is not None:
        raise UsageError(
            "--directions reads activations, which a server does not return.", "Give --model instead of --server."
        )
    asked = retry_runs.Asked(**{name: getattr(options, name) for name in retry_runs.Asked.__struct_fields__})
    prepared = retry_runs.prepared(asked)  # before a model is loaded, which takes a while
    writer: HookedModel | Served
    if options.server is not None:
        writer = Served(options.server, options.server_model, concurrency=options.calls, tell=tell)
        begun = retry_runs.begin(Path(options.out), prepared, writer.card)
    else:
        writer = model = load(options.model, _loading(options))
        begun = retry_runs.begin(Path(options.out), prepared, to_builtins(model.card))
    for name, n in begun.left_out.items():
        tell(f"{name}: {times(n, 'task')} left out; `lab list --tasks {name}` lists the reasons")
    with begun.run, Bar(options.quiet) as bar:
        into = retry_runs.steered(model, begun, asked.directions) if asked.directions else None
        ran = run_loop(begun.run, writer, begun.plan, begun.conditions, begun.tasks, begun.samples, into, progress=bar)
    return print_result(options, ended(begun.run, ran), text_of_ended)


def _loading(options: argparse.Namespace) -> Any:
    from agentsignals_lab.residual import Loading

    names = ("revision", "dtype", "device", "attention", "batch_tokens")
    how = {name: getattr(options, name) for name in names}
    return Loading(batch=1 if options.exact else options.batch, **how)


def run_run(options: argparse.Namespace) -> int:
    from agentsignals_lab import experiments
    from agentsignals_lab.residual import load
    from agentsignals_lab.runs import Config

    if options.model is None:
        raise UsageError("An experiment needs --model.", "Give a model's folder or its name on the Hub.")
    chosen = experiments.experiment(options.experiment)
    config = experiments.config(options.experiment, experiments.settings_of(options.config, options.texts))
    files = experiments.checked_config(config)  # before a model is loaded, which takes a while
    model = load(options.model, _loading(options))
    asked = Config(options.experiment, to_builtins(config))
    begun = experiments.begin(Path(options.out), asked, model, options.seed, files)
    with begun, Bar(options.quiet) as bar:
        chosen.run(begun, model, config, lambda done, of: bar(options.experiment, done, of))
    result = {"run": str(begun.folder), "experiment": options.experiment}
    return print_result(options, result, lambda t: f"run     {t['run']}\nnext    agentsignals lab report {t['run']}")


def run_report(options: argparse.Namespace) -> int:
    from agentsignals.ui import check_report
    from agentsignals.ui.report import write_document

    from agentsignals_lab.runs import Run

    run = Run.read(Path(options.run))
    outputs = [Path(name) for name in options.output or ()] or [run.folder / name for name in _REPORTS]
    for path in outputs:
        check_report(path)
    made = document(run)
    written = [str(write_document(made, path, {})) for path in outputs]
    return print_result(options, {"written": written}, lambda t: "\n".join(t["written"]))


def run_inspect(options: argparse.Namespace) -> int:
    from agentsignals_lab.report import write_logs
    from agentsignals_lab.runs import Run

    run = Run.read(Path(options.run))
    folder = Path(options.output) if options.output else run.folder / "inspect"
    written = [str(path) for path in write_logs(run, folder)]
    return print_result(options, {"written": written}, lambda t: "\n".join(t["written"]))
