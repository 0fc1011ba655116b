"""`lab`: retry loops and experiments on a model, their reports, runs held against each other, answers scored again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb
from agentsignals.errors import LabError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentsignals.lab.residual.interface import ResidualModel

_REPORTS = ("report.html", "report.md")


def arguments(parser: argparse.ArgumentParser) -> None:
    inner = parser.add_subparsers(dest="of", metavar="WHAT", required=True, parser_class=type(parser))
    for name, says, example, fill in _INNER:
        made = inner.add_parser(
            name, help=says, description=f"{says[:1].upper()}{says[1:]}.", epilog=f"Example: agentsignals lab {example}"
        )
        # Without a default of their own: `lab --json list` and `lab list --json` mean the same.
        made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON document on stdout")
        made.add_argument("--quiet", action="store_true", default=argparse.SUPPRESS, help="no progress on stderr")
        fill(made)


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tasks", metavar="NAMES", help="name the tasks of these families or files, too (or all)")


def _model_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", metavar="PATH_OR_ID", help="a model's folder, or its id on the Hub; runs here (extra lab)")
    add("--revision", metavar="REV", help="commit, branch or tag on the Hub")
    add("--dtype", default="auto", choices=("auto", "float32", "bfloat16", "float16"), help="default: as stored")
    add("--device", metavar="NAME", help="cpu, cuda, cuda:1, or auto: spread over all (default: the first GPU)")
    add("--attention", default="sdpa", choices=("sdpa", "eager", "flash_attention_2"), help="default sdpa")
    add("--batch", type=int, default=32, metavar="N", help="the most rows of a batch (default 32)")
    add("--batch-tokens", type=int, metavar="N", help="the most tokens of one (default: by a GPU's memory; else 8192)")
    add("--exact", action="store_true", help="each row alone: what it says depends on nothing beside it, in bf16, too")
    add("--out", metavar="RUN", required=True, help="the run's folder: new, empty, or of the same run, which goes on")


def _agent_arguments(parser: argparse.ArgumentParser) -> None:
    _model_arguments(parser)
    add = parser.add_argument
    add("--server", metavar="URL", help="instead of --model: a server that speaks chat completions; tasks go there")
    add("--server-model", metavar="NAME", help="the model's name at that server")
    add("--calls", type=int, default=8, metavar="N", help="calls of the server in flight (default 8)")
    add(
        "--tasks",
        metavar="NAMES",
        default="all",
        help="names, families, FILE.jsonl, published, all, tiny:COUNT (default all)",
    )
    add("--variants", metavar="NAMES", default="plain", help="plain, one_off, conflicting, hardcode_inviting")
    add("--conditions", metavar="FILE", help="a TOML file of [[condition]]s beside the baseline, with tones")
    add("--directions", metavar="FILE", help="directions (.npz) to steer along and to project on")
    add("--samples", type=int, default=1, metavar="N", help="episodes a task and condition (default 1)")
    add("--attempts", type=int, default=3, metavar="N", help="at most, an episode (default 3)")
    add("--temperature", type=float, default=0.2, metavar="T", help="0: the likeliest token (default 0.2)")
    add("--max-new-tokens", type=int, default=360, metavar="N", help="of an answer (default 360)")
    add("--seed", type=int, default=13, metavar="N", help="of the random numbers, shared by conditions (default 13)")
    add("--wording", metavar="NAME", default="plain", help="how tasks are put, as `lab list` names it (default plain)")
    _sandbox_arguments(parser)


def _sandbox_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--tier", default="default", choices=("strict", "default", "rlimits"), help="the sandbox that answers run in")
    add("--allow-weak-sandbox", action="store_true", help="run answers even where that sandbox lacks something")


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help="as `lab list` names it")
    parser.add_argument("--config", metavar="FILE", help="its settings as TOML (default: those it has)")
    parser.add_argument("--texts", metavar="FILE", help="contrast texts (TOML) in place of the setting's")
    parser.add_argument("--seed", type=int, default=13, metavar="N", help="default 13")
    _model_arguments(parser)


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's folder")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        help=".html, .md or .json (default: both in the run's folder)",
    )


def _compare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("one", metavar="RUN", help="a retry loop's folder")
    parser.add_argument("other", metavar="OTHER", help="the run to hold against it")


def _rescore_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="a run, or a folder of published results")
    parser.add_argument("--evaluator", metavar="NAME", default="1", help="1 (ours, default), legacy-first, legacy-last")
    _sandbox_arguments(parser)


def _audit_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="a clone of the published study, or a part of its results")
    parser.add_argument(
        "-o", "--out", metavar="FILE", action="append", default=[], help="write it, too: .html, .md or .json"
    )


_INNER: tuple[tuple[str, str, str, Callable[[argparse.ArgumentParser], None]], ...] = (
    ("list", "experiments, task families, wordings, sandbox tiers", "list", _list_arguments),
    (
        "agent",
        "the retry loop: write a function, hear of failed tests, try again",
        "agent --model Qwen/Qwen2.5-0.5B-Instruct --tasks times --out runs/a",
        _agent_arguments,
    ),
    ("run", "an experiment on a model", "run directions --model MODEL --out runs/directions", _run_arguments),
    ("report", "a run as a page and as Markdown", "report runs/a", _report_arguments),
    ("compare", "two retry loops, paired where tasks match", "compare runs/a runs/b", _compare_arguments),
    ("rescore", "stored answers by another evaluator, and what changes", "rescore runs/a --evaluator legacy-last",
     _rescore_arguments),
    ("audit", "what an audit finds in the published runs: rates re-scored, causes of failure, markers, geometry",
     "audit llm-emotions-coding-agents -o audit.html", _audit_arguments),
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    done = {"list": _list, "agent": _agent, "run": _run, "report": _report, "compare": _compare, "rescore": _rescore,
            "audit": _audit}  # fmt: skip
    try:
        return done[options.of](options)
    except ModuleNotFoundError as problem:
        if (problem.name or "agentsignals").partition(".")[0] == "agentsignals":
            raise
        raise LabError(
            f"The lab needs {problem.name}, which is not installed.",
            'Install what it needs: pip install "agentsignals[lab]".',
        ) from problem


def _list(options: argparse.Namespace) -> int:
    from agentsignals.cli import lab_results as words

    _tell(options, words.inventory(options.tasks), words.text_of_inventory)
    return 0


def _agent(options: argparse.Namespace) -> int:
    from agentsignals.cli import lab_results as words
    from agentsignals.cli.output import Bar
    from agentsignals.lab import run_setup
    from agentsignals.lab.retry.retry_runs import run_loop

    model: ResidualModel | None = None
    if (options.model is None) == (options.server is None):
        raise UsageError("Say --model or --server, and not both.", "agentsignals lab agent --model FOLDER --out RUN")
    if options.server is not None and not options.server_model:
        raise UsageError("--server came without --server-model.", "Name the model as that server does.")
    if options.server is not None and options.directions is not None:
        raise UsageError("A server can't be looked into.", "--directions need --model.")
    asked = _asked(options)
    run_setup.checked(asked)  # before a model is loaded, which takes a while
    if options.server is not None:
        writer, card = run_setup.served(options.server, options.server_model, _say, options.calls)
    else:
        writer = model = run_setup.loaded(options.model, _loading(options))
        card = run_setup.card_of(model)
    begun = run_setup.begin(Path(options.out), asked, card)
    for name, count in begun.left_out.items():
        _say(f"{name}: {count} tasks can't be asked and are left out; `lab list --tasks {name}` tells why")
    bar = Bar(options.quiet)
    with begun.run:
        into = run_setup.steered(model, begun, asked.directions) if model is not None and asked.directions else None
        try:
            ran = run_loop(
                begun.run, writer, begun.plan, begun.conditions, begun.tasks, begun.samples, into, progress=bar
            )
        finally:
            bar.close()
    _tell(options, words.ended(begun.run, ran), words.text_of_ended)
    return 0


def _asked(options: argparse.Namespace) -> Any:
    from agentsignals.lab.run_setup import Asked

    return Asked(
        tasks=options.tasks,
        variants=tuple(options.variants.split(",")),
        conditions=Path(options.conditions) if options.conditions else None,
        directions=Path(options.directions) if options.directions else None,
        samples=options.samples,
        attempts=options.attempts,
        temperature=options.temperature,
        max_new_tokens=options.max_new_tokens,
        seed=options.seed,
        tier=options.tier,
        allow_weak=options.allow_weak_sandbox,
        wording=options.wording,
    )


def _loading(options: argparse.Namespace) -> Any:
    from agentsignals.lab.residual.interface import Loading

    return Loading(
        revision=options.revision,
        dtype=options.dtype,
        device=options.device,
        attention=options.attention,
        batch=1 if options.exact else options.batch,
        batch_tokens=options.batch_tokens,
    )


def _run(options: argparse.Namespace) -> int:
    from msgspec import to_builtins

    from agentsignals.cli.output import Bar
    from agentsignals.lab import experiment_setup, experiments, run_setup
    from agentsignals.lab.runs import Config

    if options.model is None:
        raise UsageError("An experiment needs a model in this process.", "Say --model FOLDER.")
    chosen = experiments.experiment(options.experiment)
    config = experiments.config(options.experiment, experiment_setup.settings_of(options.config, options.texts))
    files = experiment_setup.checked_config(config)  # before a model is loaded, which takes a while
    model = run_setup.loaded(options.model, _loading(options))
    asked = Config(options.experiment, to_builtins(config))
    begun = experiment_setup.begin_experiment(Path(options.out), asked, model, options.seed, files)
    bar = Bar(options.quiet)
    with begun:
        try:
            chosen.run(begun, model, config, lambda done, of: bar(options.experiment, done, of))
        finally:
            bar.close()
    result = {"run": str(begun.folder), "experiment": options.experiment}
    _tell(options, result, lambda t: f"run     {t['run']}\nnext    agentsignals lab report {t['run']}")
    return 0


def _report(options: argparse.Namespace) -> int:
    from agentsignals.cli import lab_results as words
    from agentsignals.lab.runs import Run

    run = Run.read(Path(options.run))
    outputs = [Path(name) for name in options.output or ()] or [run.folder / name for name in _REPORTS]
    if odd := [path for path in outputs if path.suffix.lower() not in (".html", ".md", ".json")]:
        raise UsageError(f"The report {odd[0].name!r} has another ending.", "It is written as .html, .md or .json.")
    written = words.write_report(run, outputs)
    _tell(options, {"written": [str(path) for path in written]}, lambda t: "\n".join(t["written"]))
    return 0


def _compare(options: argparse.Namespace) -> int:
    from agentsignals.cli import lab_results as words
    from agentsignals.lab.comparing import compared
    from agentsignals.lab.runs import Run

    comparison = compared(Run.read(Path(options.one)), Run.read(Path(options.other)))
    _tell(options, words.plain(comparison), lambda _: words.text_of_tables(comparison))
    return 0


def _rescore(options: argparse.Namespace) -> int:
    from agentsignals.cli import lab_results as words
    from agentsignals.cli.output import Bar
    from agentsignals.lab.evaluation.case_runs import Confinement
    from agentsignals.lab.rescored import rescored

    bar = Bar(options.quiet)
    inside = Confinement(tier=options.tier, allow_weak=options.allow_weak_sandbox)
    try:
        result = rescored(Path(options.folder), options.evaluator, inside, bar)
    finally:
        bar.close()
    _tell(options, result, words.text_of_rescored)
    return 0


def _audit(options: argparse.Namespace) -> int:
    from agentsignals.cli import lab_results as words
    from agentsignals.cli.output import Bar

    bar = Bar(options.quiet)
    try:
        audit = words.audited(Path(options.folder), bar)
    finally:
        bar.close()
    words.write_pages(audit, [Path(path) for path in options.out])
    print(words.rendered(audit, ".json" if options.json else ".md"))
    return 0


def _tell(options: argparse.Namespace, result: Any, text: Callable[[Any], str]) -> None:
    from agentsignals.cli.output import json_text

    print(json_text(result) if options.json else text(result))


def _say(what: str) -> None:
    from agentsignals.cli.output import printable

    print(f"agentsignals: {printable(what)}", file=sys.stderr)


VERB = Verb(
    "lab",
    "a model's retry loops and experiments: run, report, compare, rescore",
    "lab agent --model FOLDER --tasks times --out runs/a",
    arguments,
    run,
)
