"""The grammar of the command line: every verb with its help, its arguments, and the function that runs it.

Where the first word names a verb, its parser alone is built and its module alone is loaded.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from agentsignals import __version__
from agentsignals.errors import UsageError

_EPILOG = (
    "Every verb has --help with an example, and --json for machines. Without a verb: reads what the agents on this"
    " machine keep, and says what stands out."
)
SEARCH_KINDS = ("title", "prompt", "reply", "command", "path", "result", "thinking", "other")
SEARCH_ORDERS = ("newest", "most")


class Verb(NamedTuple):
    """A verb of the command line."""

    name: str
    says: str
    """Its help, without a full stop."""
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    """Adds its arguments to those of every verb."""
    run: str
    """`module:function` below `agentsignals.cli`; takes the options and returns the exit code."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]  # ours raises, argparse's exits: neither returns
        hint = f"See `{self.prog} --help`."
        if near := self._near(message):
            hint = f"Did you mean {near}? {hint}"
        elif message.startswith("unrecognized arguments: -") or self.prog.endswith(" search"):
            hint = f"What begins with - and is no option goes behind --, as in `agentsignals search -- -word`. {hint}"
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint)

    @staticmethod
    def _near(message: str) -> str:
        """The choice that is most like the one that came; empty where none is, or the message is about no choice."""
        came, _, choices = message.partition("(choose from ")
        words = re.findall(r"[\w-]+", choices)
        return next(iter(get_close_matches(came.rpartition("invalid choice: ")[2].strip(" '"), words, 1)), "")


def build_parser(verb: str = "") -> argparse.ArgumentParser:
    """Build the parser of one verb, or of all where none has that name. `docs/cli.md` is made from it."""
    parser = Parser(
        prog="agentsignals", description="Turns coding-agent traces into facts people act on.", epilog=_EPILOG
    )
    parser.add_argument("--version", action="version", version=f"agentsignals {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    for each in [each for each in VERBS if each.name == verb] or VERBS:
        says = f"{each.says[:1].upper()}{each.says[1:]}."
        made = verbs.add_parser(
            each.name, help=each.says, description=says, epilog=f"Example: agentsignals {each.example}"
        )
        common(made)
        made.set_defaults(do=each.run)
        each.arguments(made)
    return parser


def common(made: argparse.ArgumentParser) -> None:
    """Add the options that every verb has."""
    made.add_argument("--json", action="store_true", help="one JSON document on stdout, nothing else there")
    made.add_argument("--quiet", action="store_true", help="no progress on stderr")
    made.add_argument(
        "--store",
        metavar="DIR",
        help="the store's folder, or s3://BUCKET/PREFIX (else $AGENTSIGNALS_STORE, else your data folder)",
    )


def _embedder(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--embedder",
        metavar="NAME",
        help="what compares texts in this store from now on: words (default), chars, sentence-transformers:MODEL,"
        " openai:MODEL[@URL], none",
    )


def _wait(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--wait", type=float, metavar="SECONDS", help="how long to wait for another run on this store (default 60)"
    )


def _context(made: argparse.ArgumentParser) -> None:
    made.add_argument("--context", choices=("product", "eval"), help="of people's sessions, or of eval runs, alone")


def _analyze(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "sources",
        metavar="SOURCE",
        nargs="*",
        help="a file or folder; an agent's name (claude-code, codex, …); git:PATH_OR_URL[#REF];"
        " hub:OWNER/NAME[@REV][#PATTERN]; s3://BUCKET[/PREFIX]",
    )
    made.add_argument("--format", metavar="NAME", help="read every file as this format instead of recognising it")
    made.add_argument("--jobs", type=int, metavar="N", help="worker processes (default: one a core, at most 8)")
    made.add_argument(
        "--engine", metavar="NAME", default="local", help="what runs the workers (default local): docs/scale.md"
    )
    made.add_argument("--exclude", metavar="FILE", help="list of data sets (owner/name) and sessions to leave out")
    made.add_argument("--strict", action="store_true", help="exit 1 when any record was skipped")
    _embedder(made)
    _wait(made)
    either = made.add_mutually_exclusive_group()
    either.add_argument("--report", metavar="FILE", help="also write a report (.html, .md or .json)")
    either.add_argument("--no-report", action="store_true", help="read and measure only; no findings")


def _measure(made: argparse.ArgumentParser) -> None:
    _embedder(made)
    _wait(made)


def _inventory(made: argparse.ArgumentParser) -> None:
    made.add_argument("text", metavar="TEXT", nargs="?", default="", help="words to find in name, path or meaning")
    made.add_argument("--context", choices=("eval", "product"), help="only signals of this context")
    made.add_argument("--high-value", action="store_true", help="only those marked high value")
    made.add_argument("--status", metavar="STATUS", help="only this status, as the table shows it")


def _show(made: argparse.ArgumentParser) -> None:
    made.add_argument("session", metavar="SESSION", help="its id, a unique beginning of it, or its log's file name")
    made.add_argument("--all", action="store_true", help="also thinking, results, subagents and side notes")


def _explain(made: argparse.ArgumentParser) -> None:
    made.add_argument("session", metavar="SESSION", help="its id, a unique beginning of it, or its log's file name")
    made.add_argument(
        "signal",
        metavar="SIGNAL",
        help="a dotted path of the inventory, or sessions.COLUMN of a total of tokens or money",
    )


def _query(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "sql", metavar="SQL", help="one SELECT, FROM, DESCRIBE …; it may take half of the memory, and nothing on disk"
    )
    made.add_argument(
        "--csv",
        action="store_true",
        help="comma-separated values on stdout, any number of rows; a cell that a spreadsheet would run begins with '",
    )
    _context(made)


def _report(made: argparse.ArgumentParser) -> None:
    made.add_argument("-o", "--output", metavar="FILE", required=True, help="where to: .html, .md or .json")
    made.add_argument("--study", metavar="NAME", nargs="+", help="only these studies")
    made.add_argument("--labeller", metavar="NAME", help="whose labels count (default: who gave most)")
    made.add_argument("--baseline", metavar="FILE", help="hold yours against it (`export --to baseline` makes one)")
    _context(made)


def _demo(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--folder", metavar="DIR", default="demo", help="where to put corpus, store and report (default ./demo)"
    )


def _doctor(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--repair",
        action="store_true",
        help="mend the store: read again what was damaged, put the rest aside and say what is lost",
    )


def _agree(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("task", metavar="TASK", help="what was judged; `agentsignals label` lists the tasks")
    add("first", metavar="LABELLER", help="rules, a model as `label` named it, human:NAME …")
    add("others", metavar="OTHER", nargs="*", help="another labeller of the store, or several")
    add("--gold", metavar="FILE", help="instead of another: labels in a file (.jsonl, .csv), taken as the truth")
    add("--column", metavar="NAME", help="with --gold: where the label stands (default: label, TASK_label or TASK)")
    add("--settle", metavar="FILE", help="also write both labels to a new gold file, for `annotate` to settle")


def _align(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("sessions", metavar="SESSION", nargs="*", help="two or more; the others are held against the first")
    add(
        "--task",
        metavar="ID",
        help="all attempts at a task, held against a run that solved it (the one of median length)",
    )
    add("--trial", metavar="ID", help="the attempts of a trial, held against the first of them")
    add("--markdown", action="store_true", help="as Markdown")


def _annotate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("task", metavar="TASK", help="what is judged; `agentsignals label` lists the tasks")
    add("--as", dest="person", metavar="NAME", required=True, help="who labels; the labels are human:NAME's")
    add("--gold", metavar="FILE", help="what to label (`label --export-gold`), or to settle (`agree --settle`)")
    add("--sample", type=int, metavar="N", help="without --gold: a sample of so many (default 100)")
    add("--seed", type=int, metavar="N", help="of the sample: two people with the same seed label the same things")


def _attribute(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repositories", metavar="REPO", nargs="+", help="a repository's folder or address")
    parser.add_argument("--afresh", action="store_true", help="also where nothing changed since the last time")
    _engine(parser)


def _collect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "repositories",
        metavar="REPOS",
        nargs="+",
        help="folders or addresses of repositories, OWNER/NAME, a folder of clones, a list, a saved search result",
    )
    parser.add_argument(
        "--list", action="store_true", help="only say which repositories these are; read and fetch none"
    )
    parser.add_argument("--no-forks", action="store_true", help="leave out what a search result calls a fork")
    parser.add_argument("--min-checkpoints", type=int, metavar="N", default=1, help="leave out those with fewer (1)")
    parser.add_argument("--min-commits", type=int, metavar="N", default=0, help="leave out those with fewer commits")
    parser.add_argument(
        "--min-linked",
        type=int,
        metavar="N",
        default=0,
        help="leave out those with fewer commits that name a checkpoint",
    )
    parser.add_argument(
        "--no-machine-prompts",
        action="store_true",
        help="leave out sessions that a program began (counted and labelled)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes that read transcripts")


def _compare(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--by", metavar="COLUMN", nargs="+", default=[], action="extend",
        help="what makes a candidate: model, agent, run, a cap, a knob (default: treatments that differ)")  # fmt: skip
    add(
        "--baseline",
        metavar="NAME",
        help="the candidate the others are held against (default: one of that name, else most known outcomes)",
    )
    add("--outcome", metavar="WHAT", default="reward",
        help="reward (default), resolved, or a signal of attempts: SIGNAL, SIGNAL=VALUE, SIGNAL>=NUMBER")  # fmt: skip
    add("--treatments", metavar="FILE", type=Path,
        help="who was tried, by folder, where the run does not record it (YAML or JSON; docs/compare.md)")  # fmt: skip
    add("--regression-weight", metavar="W", type=float, default=1.0,
        help="what a task that only the baseline solves counts; one of the candidate's counts 1 (default)")  # fmt: skip
    add("--anyway", action="store_true", help="compare candidates that had other tasks, data sets or limits")
    add("--markdown", action="store_true", help="the same as Markdown, for a pull request or a page")
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions` and `attempts`")
    add("--fail-if", metavar="CONDITION", action="append", default=[],
        help="a gate: exit 1 where a candidate meets it, 3 where that can't be told, else 0; may be repeated:"
        " 'solve_rate < baseline - 0.05', 'regressions > 0', 'cost_usd > 1.2 * baseline'")  # fmt: skip
    add("--decide-by", choices=("interval", "value"), default="interval",
        help="what must meet a condition: the whole 95%% interval (default), or the estimate")  # fmt: skip
    add("--junit", metavar="FILE", type=Path, help="also write the gate's outcome as JUnit XML")


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh"), help="whose script it is to be")


def _discover(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="PLACE", choices=("hub", "repos"), help="where to look: hub, repos")
    parser.add_argument(
        "names",
        metavar="REPO",
        nargs="*",
        help="repos: folders or addresses, OWNER/NAME, a folder of clones, a list, a saved search result",
    )
    parser.add_argument("--search", metavar="TEXT", help="words in the name")
    parser.add_argument("--owner", metavar="NAME", help="of this person or organisation only")
    parser.add_argument("--license", metavar="ID", help="only with this licence; `none` for those that state none")
    parser.add_argument(
        "--harness", metavar="NAME", help="only of this agent, as tags and file names tell (codex, pi …)"
    )
    parser.add_argument("--tag", metavar="TAG", action="append", default=[], help="that has this tag, too")
    parser.add_argument("--untagged", action="store_true", help="also data sets without the tag format:agent-traces")
    parser.add_argument(
        "--distinct", action="store_true", help="leave out data sets that hold the files of another one"
    )
    parser.add_argument("--exclude", metavar="FILE", help="list of data sets to leave out")
    parser.add_argument("--limit", type=int, metavar="N", help="the N most downloaded")


def _drivers(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--by", metavar="COLUMN", nargs="+", default=[], action="extend",
        help="what makes a treatment: model, agent, a cap, a knob (default: treatments that differ)")  # fmt: skip
    add("--outcome", metavar="WHAT", default="reward",
        help="reward (default), resolved, or a yes or no: SIGNAL, SIGNAL=VALUE, SIGNAL>=NUMBER")  # fmt: skip
    add("--treatments", metavar="FILE", type=Path,
        help="who was tried, by folder, where the run does not record it (YAML or JSON; docs/compare.md)")  # fmt: skip
    add("--within", choices=("treatment", "task"),
        help="what two attempts that are held against each other share: task and treatment, or the task alone, with"
        " treatments' means taken off (default: the first, where six tasks were solved and failed so)")  # fmt: skip
    add("--keep", metavar="SIGNAL", nargs="+", default=[], action="extend",
        help="let in a signal that reads the gold patch, or was set aside as a near copy of the outcome")  # fmt: skip
    add("--false-discoveries", metavar="SHARE", type=float, default=0.05,
        help="the share of wrong ones to expect among the signals named (default 0.05)")  # fmt: skip
    add("--no-models", action="store_true", help="contrasts alone, without what the extra `drivers` adds")
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions` and `attempts`")
    add("--markdown", action="store_true", help="the result as Markdown")


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", metavar="FORMAT", help="what is written; without one the formats are listed")
    parser.add_argument("-o", "--output", metavar="DIR", help="a new or empty folder; baseline: a file")
    parser.add_argument("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions`")
    parser.add_argument(
        "--redact",
        action=argparse.BooleanOptionalAction,
        help="mask keys, passwords, mail addresses and names in home folders (default: for parquet, hub, training)",
    )
    parser.add_argument(
        "--license", metavar="ID", help="hub, training: the licence that the card states (mit, cc-by-4.0 …)"
    )
    parser.add_argument("--title", metavar="TEXT", help="hub, training: the card's title")
    parser.add_argument(
        "--transcripts",
        choices=("sts", "found", "none"),
        default="sts",
        help="hub: conversations in the Hub's simple format (default), the files as found, or none",
    )
    parser.add_argument(
        "--kind",
        choices=("accepted", "preferences", "steps"),
        default="accepted",
        help="training: solved attempts as chats (default), pairs of a solved and a failed one, or steps with labels",
    )
    parser.add_argument(
        "--without-benchmarks", action="store_true", help="training: leave out what is of a known benchmark"
    )


def _findings(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("id", metavar="FINDING", nargs="?", help="one of them, with the events, files and lines that it rests on")
    add("--context", choices=("product", "eval"), help="of people's sessions, or of eval runs, alone")
    add("--effect", type=float, metavar="SHARE", help="the least share of the whole that is said (default 0.05)")
    add("--sureness", type=float, metavar="SHARE", help="how sure it has to be, 0 to 1 (default 0.33)")
    add("--rate", type=float, metavar="SHARE", help="of what is said, how much may be wrong by chance (default 0.05)")


def _forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help="its id, or a unique beginning of it")
    parser.add_argument("--deleted", action="store_true", help="those whose files are gone")


def _formats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="one format, with all that is known of it")


def _lab_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tasks", metavar="NAMES", help="name the tasks of these families or files, too (or all)")


def _lab_model(parser: argparse.ArgumentParser) -> None:
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


def _lab_agent(parser: argparse.ArgumentParser) -> None:
    _lab_model(parser)
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
    _lab_sandbox(parser)


def _lab_sandbox(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--tier", default="default", choices=("strict", "default", "rlimits"), help="the sandbox that answers run in")
    add("--allow-weak-sandbox", action="store_true", help="run answers even where that sandbox lacks something")


def _lab_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help="as `lab list` names it")
    parser.add_argument("--config", metavar="FILE", help="its settings as TOML (default: those it has)")
    parser.add_argument("--texts", metavar="FILE", help="contrast texts (TOML) in place of the setting's")
    parser.add_argument("--seed", type=int, default=13, metavar="N", help="default 13")
    _lab_model(parser)


def _lab_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's folder")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        help=".html, .md or .json (default: both in the run's folder)",
    )


def _lab_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("one", metavar="RUN", help="a retry loop's folder")
    parser.add_argument("other", metavar="OTHER", help="the run to hold against it")


def _lab_rescore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="a run, or a folder of published results")
    parser.add_argument("--evaluator", metavar="NAME", default="1", help="1 (ours, default), legacy-first, legacy-last")
    _lab_sandbox(parser)


def _lab_audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="a clone of the published study, or a part of its results")
    parser.add_argument(
        "-o", "--out", metavar="FILE", action="append", default=[], help="write it, too: .html, .md or .json"
    )


_LAB: tuple[tuple[str, str, str, Callable[[argparse.ArgumentParser], None]], ...] = (
    ("list", "experiments, task families, wordings, sandbox tiers", "list", _lab_list),
    (
        "agent",
        "the retry loop: write a function, hear of failed tests, try again",
        "agent --model Qwen/Qwen2.5-0.5B-Instruct --tasks times --out runs/a",
        _lab_agent,
    ),
    ("run", "an experiment on a model", "run directions --model MODEL --out runs/directions", _lab_run),
    ("report", "a run as a page and as Markdown", "report runs/a", _lab_report),
    ("compare", "two retry loops, paired where tasks match", "compare runs/a runs/b", _lab_compare),
    ("rescore", "stored answers by another evaluator, and what changes", "rescore runs/a --evaluator legacy-last",
     _lab_rescore),
    ("audit", "what an audit finds in the published runs: rates re-scored, causes of failure, markers, geometry",
     "audit llm-emotions-coding-agents -o audit.html", _lab_audit),
)  # fmt: skip


def _lab(parser: argparse.ArgumentParser) -> None:
    inner = parser.add_subparsers(dest="of", metavar="WHAT", required=True, parser_class=type(parser))
    for name, says, example, fill in _LAB:
        made = inner.add_parser(
            name, help=says, description=f"{says[:1].upper()}{says[1:]}.", epilog=f"Example: agentsignals lab {example}"
        )
        # Without a default of their own: `lab --json list` and `lab list --json` mean the same.
        made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON document on stdout")
        made.add_argument("--quiet", action="store_true", default=argparse.SUPPRESS, help="no progress on stderr")
        fill(made)


def _label_batch(parser: argparse.ArgumentParser) -> None:
    """The options of `label` that are about batch files."""
    add = parser.add_argument
    add("--export-batch", metavar="FILE", help="write what has no answer yet as a batch of requests; ask nothing")
    add(
        "--batch-form",
        choices=("openai", "anthropic"),
        help="of that file (default: anthropic for claude models, else openai)",
    )
    add("--again", action="store_true", help="with --export-batch: also what an earlier batch has no result of")
    add(
        "--import-batch",
        metavar="FILE",
        action="append",
        help="label by a file of results; may be given again for another file (errors)",
    )


def _label_topic(parser: argparse.ArgumentParser) -> None:
    """The options of `label` that topics alone have."""
    add = parser.add_argument
    add("--names", metavar="LABELLER", help="with topic: the model that names them, as openai:MODEL[@URL]")
    add("--method", metavar="NAME", help="with topic: k-means (default), or umap+hdbscan (extra topics)")
    add("--embedder", metavar="NAME[:MODEL]", help="with topic: what compares prompts (default: the store's)")


def _label(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("task", metavar="TASK", nargs="?", help="what is judged; without one the tasks are listed")
    add(
        "--by",
        metavar="LABELLER",
        help="rules (default: no model, no network), classifier (a small model that is shipped, no network) or"
        " classifier:FILE (one of your own), openai:MODEL[@URL[,URL…]] (any servers that speak OpenAI's protocol),"
        " vllm:MODEL or local:MODEL (in this process), hf:MODEL (a text classifier); clusters for the task topic",
    )
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions`")
    add("--limit", type=int, metavar="N", help="at most so many messages or sessions")
    add("--dry-run", action="store_true", help="say what would be asked and what it would cost; ask nothing")
    add("--concurrency", type=int, metavar="N", help="calls under way at once, at each address (default 8)")
    add("--per-minute", type=float, metavar="N", help="at most so many calls a minute")
    add("--window", type=int, metavar="TOKENS", help="how much the model can read (default: what the server says)")
    add("--timeout", type=float, metavar="SECONDS", help="for one call (default 120)")
    add("--examples", metavar="FILE", help="show the model some of each class out of a gold file; they are not judged")
    add("--label-first", action="store_true", help="ask for the verdict before its reason")
    add("--answers", type=int, metavar="N", help="so many answers to each question; what most of them say is the label")
    add("--no-redact", action="store_true", help="send texts to a server elsewhere as they are")
    add(
        "--from",
        dest="source",
        metavar="FILE",
        help="take labels instead: published ones (Parquet, or a folder of it), or a gold file (.jsonl, .csv)",
    )
    add("--labeller", metavar="NAME", help="with --from: who gave these labels; people are human:NAME")
    add("--column", metavar="NAME", help="with a gold file (--from, --examples): where the label stands")
    add("--export-gold", dest="gold", metavar="FILE", help="write things for people to label instead (.jsonl, .csv)")
    add("--sample", type=int, metavar="N", help="with --export-gold: how many (default 100), evenly of the labels --by")
    add("--seed", type=int, metavar="N", help="with --export-gold: of the sample; of topics: of the groups")
    _label_batch(parser)
    _label_topic(parser)


def _mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--skill", action="store_true", help="print the skill file (SKILL.md) that tells agents how to ask"
    )
    parser.add_argument(
        "--redact",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="mask keys, passwords, mail addresses and names in home folders (default)",
    )


def _attempts(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--by", metavar="COLUMN", nargs="+", default=[], action="extend",
        help="what makes a candidate: model, agent, a knob (default: treatments that differ)")  # fmt: skip
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions` and `attempts`")
    add("--markdown", action="store_true", help="print Markdown")


def _engine(parser: argparse.ArgumentParser) -> None:
    """Adds `--jobs` and `--engine`."""
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes (default: one a core, at most 8)")
    parser.add_argument(
        "--engine", metavar="NAME", default="local", help="what runs the workers (default local): docs/scale.md"
    )


def _receipt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repository", metavar="REPO", help="a repository's folder or address")
    parser.add_argument(
        "revision", metavar="REVISION", nargs="?", default="HEAD", help="a commit, A..B, or a branch (default: HEAD)"
    )
    parser.add_argument("--markdown", action="store_true", help="as Markdown, for a review")
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes that read transcripts")


def _replicate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("claims", metavar="CLAIMS", help="sentiment, swe-chat, emotion-lab, or a YAML file of claims")
    parser.add_argument(
        "--data", metavar="DIR", help="the data the claims are about (default: the store, where the claims say how)"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 also when a claim is untestable")


def _rules(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("repository", metavar="REPO", nargs="?",
        help="a repository's folder or address (default: what the store's traces show of such files)")  # fmt: skip
    add("--file", metavar="FILE", help="of this instruction file alone, as the repository calls it")
    add("--markdown", action="store_true", help="print Markdown")
    add("--jobs", type=int, metavar="N", help="worker processes that read transcripts")


def _scan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repositories", metavar="REPO", nargs="+", help="a repository's folder or address")
    parser.add_argument(
        "--scanner", metavar="NAME", help="rules (ours, always there), bandit, ruff or semgrep, when installed"
    )
    parser.add_argument("--config", metavar="FILE", help="a file or folder of rules, for semgrep")
    parser.add_argument("--sarif", metavar="FILE", help="take in a scanner's report instead of scanning")
    parser.add_argument("--afresh", action="store_true", help="scan also files that were scanned before")
    _engine(parser)


def _search(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "words",
        metavar="WORD",
        nargs="+",
        help="all in one passage; as one argument also '\"a phrase\" begin* -without tool:Bash agent: repo: session:'",
    )
    add(
        "--kind", choices=SEARCH_KINDS, action="append", default=[], help="passages of this kind alone; may be repeated"
    )
    add(
        "--order",
        choices=SEARCH_ORDERS,
        default="newest",
        help="the last active session first, or that with most passages",
    )
    add("--limit", type=int, default=20, metavar="N", help="at most so many sessions (default 20)")
    add("--hits", type=int, default=3, metavar="N", help="at most so many passages of each (default 3)")


def _serve(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("sources", metavar="SOURCE", nargs="*", help="watch these instead of what the store was read from")
    add("--port", type=int, metavar="N", help="where to listen (default 8321, or any free one; 0: any free one)")
    add("--open", action="store_true", help="open it in the browser")
    add("--no-watch", action="store_true", help="show the store as it is; read nothing that changes")
    parser.add_argument(
        "--annotate",
        metavar="FILE",
        nargs="?",
        const="gold.jsonl",
        help="let its page for labelling write this gold file (default gold.jsonl); it writes nothing else",
    )


def _sessions(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions`")
    behind = (
        "those that a number counts, largest part first: study:NAME:ID, study:NAME:TABLE:ROW, study:NAME:CHART:MARK"
    )
    behind += " or finding:ID"
    add("--behind", metavar="KEY", help=behind)
    add("--limit", type=int, default=50, metavar="N", help="at most so many (default 50)")


def _share(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="SESSION", nargs="?", help="its id, or the beginning of it")
    add("-o", "--out", metavar="FILE", help="a new file: .html; for a team also .json")
    add("--pictures", action="store_true", help="of a session its pictures, too: what they show can't be masked")
    add("--team", action="store_true", help="instead: counts, costs, failures, outcomes and signals; no text at all")
    add("--check", metavar="FILE", help="instead: look whether a team's file holds no text, word by word")


def _tune(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("plan", metavar="PLAN", type=Path, help="a TOML file: command, knobs, tasks, budget (docs/tune.md)")
    add(
        "--out", metavar="FOLDER", type=Path, required=True, help="the search's folder: a new one, or one to go on with"
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--show", action="store_true", help="say how the search stands, and start nothing")
    choice.add_argument("--dry-run", action="store_true", help="say what would be run next, and start nothing")


def _validate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--gold", metavar="FILE", nargs="+", default=[], help="also hold rules against these labels (.jsonl, .csv)")
    add("--write", metavar="FILE", help="write the figures there, as the package ships them")


def _watch(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "source",
        metavar="SOURCE",
        nargs="?",
        help="a transcript, a folder or an agent's name (default: the agents on this machine)",
    )
    add("--once", action="store_true", help="say how it stands now, and end")
    add("--hook", action="store_true", help="answer the hook event on stdin: is this a loop? (docs/watch.md)")


def _witness(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repository", metavar="REPO", help="a repository's folder or address")
    parser.add_argument("--markdown", action="store_true", help="as Markdown")
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes that read transcripts")


VERBS = (
    Verb(
        "analyze",
        "read traces, measure them, report",
        "analyze ~/.claude/projects --report report.html",
        _analyze,
        "analyze:run_analyze",
    ),
    Verb(
        "measure",
        "compute the signals whose version, or whose session, changed",
        "measure",
        _measure,
        "analyze:run_measure",
    ),
    Verb(
        "inventory",
        "the catalogue of signals, with filter",
        "inventory edit --context product",
        _inventory,
        "explore:run_inventory",
    ),
    Verb("show", "one session as a readable timeline", "show 3f2a81", _show, "explore:run_show"),
    Verb(
        "explain",
        "one value with the evidence that made it",
        "explain 3f2a81 dynamics.repetition_rate",
        _explain,
        "explore:run_explain",
    ),
    Verb(
        "query",
        "DuckDB over the store's tables, read only",
        'query "SELECT name, count(*) FROM tool_calls GROUP BY 1"',
        _query,
        "explore:run_query",
    ),
    Verb(
        "report",
        "studies with charts in one file that opens offline",
        "report -o report.html",
        _report,
        "explore:run_report",
    ),
    Verb(
        "demo",
        "make a small sample corpus in several formats and analyse it, no network",
        "demo",
        _demo,
        "analyze:run_demo",
    ),
    Verb(
        "doctor",
        "what is installed, found, readable; what to do about the rest",
        "doctor",
        _doctor,
        "doctor:run_doctor",
    ),
    Verb(
        "agree", "how far two labellers agree", "agree sentiment rules --gold gold.jsonl", _agree, "labelling:run_agree"
    ),
    Verb(
        "align",
        "runs of one task step by step, and where they part",
        "align --task dask__dask-8685",
        _align,
        "attempts:run_align",
    ),
    Verb(
        "annotate",
        "label by hand, at a terminal",
        "annotate sentiment --as ann --sample 100",
        _annotate,
        "labelling:run_annotate",
    ),
    Verb(
        "attribute",
        "whose lines a repository's commits added, and what became of them",
        "attribute .",
        _attribute,
        "repositories:run_attribute",
    ),
    Verb(
        "audit",
        "whether passed attempts of eval runs were earned, each with what shows it; the resolve rate before and after",
        "audit --by model",
        _attempts,
        "attempts:run_audit",
    ),
    Verb(
        "collect",
        "bring repositories with checkpoints into the store",
        "collect ~/src list.txt",
        _collect,
        "repositories:run_collect",
    ),
    Verb(
        "compare",
        "candidates under their treatments: paired where tasks match, first attempts apart from retries",
        "compare --by model --outcome resolved",
        _compare,
        "compare:run_compare",
    ),
    Verb(
        "completion",
        "the script that has a shell complete verbs, options and files",
        "completion bash > ~/.local/share/bash-completion/completions/agentsignals",
        _completion,
        "grammar:run_completion",
    ),
    Verb(
        "discover",
        "data sets and repositories of traces that can be read",
        "discover hub --license mit",
        _discover,
        "repositories:run_discover",
    ),
    Verb(
        "drivers",
        "which signals go with success within task and treatment: correlations, against honest baselines",
        "drivers --by model --outcome resolved --markdown",
        _drivers,
        "attempts:run_drivers",
    ),
    Verb(
        "export",
        "sessions in formats that others read",
        "export --to atif -o trajectories",
        _export,
        "export:run_export",
    ),
    Verb(
        "failures",
        "why attempts of eval runs failed, by candidate, each with what shows it",
        "failures --by model",
        _attempts,
        "attempts:run_failures",
    ),
    Verb(
        "findings",
        "the few sentences that matter, ranked, each with what stands behind it",
        "findings",
        _findings,
        "explore:run_findings",
    ),
    Verb(
        "forget",
        "take sessions out of the store, or those whose files are gone",
        "forget --deleted",
        _forget,
        "doctor:run_forget",
    ),
    Verb(
        "formats",
        "what is read, what it rests on, which versions were met",
        "formats claude-code",
        _formats,
        "doctor:run_formats",
    ),
    Verb(
        "lab",
        "a model's retry loops and experiments: run, report, compare, rescore",
        "lab agent --model FOLDER --tasks times --out runs/a",
        _lab,
        "lab:run_lab",
    ),
    Verb(
        "label",
        "judge messages or sessions by rules or a model",
        "label sentiment --by openai:qwen3@http://127.0.0.1:8000/v1",
        _label,
        "labelling:run_label",
    ),
    Verb("mcp", "answer agents' questions over the store (Model Context Protocol)", "mcp", _mcp, "mcp:run_mcp"),
    Verb(
        "receipt",
        "what agents did for a commit, a branch or a pull request: owners, checks, what was not run, cost",
        "receipt . main..HEAD --markdown",
        _receipt,
        "repositories:run_receipt",
    ),
    Verb(
        "replicate",
        "published claims against computed values",
        "replicate sentiment --data dataset",
        _replicate,
        "experiments:run_replicate",
    ),
    Verb(
        "rules",
        "mechanical rules of instruction files (AGENTS.md …): in force, kept or broken with the line, their effect",
        "rules . --file AGENTS.md",
        _rules,
        "repositories:run_rules",
    ),
    Verb(
        "scan",
        "which weaknesses came with a repository's commits, and with whose lines",
        "scan .",
        _scan,
        "repositories:run_scan",
    ),
    Verb(
        "search",
        "find the sessions in which something was said, run or answered",
        'search "merge conflicts -rebase tool:Bash"',
        _search,
        "explore:run_search",
    ),
    Verb("serve", "the store as a web page on 127.0.0.1, as agents work", "serve --open", _serve, "serve:run_serve"),
    Verb(
        "sessions",
        "list the sessions",
        "sessions --where \"n_prompts > 10 AND agent = 'codex'\"",
        _sessions,
        "explore:run_sessions",
    ),
    Verb(
        "share",
        "one masked session, or a team's figures, as one file",
        "share SESSION --out session.html",
        _share,
        "export:run_share",
    ),
    Verb(
        "tune",
        "search over knobs: which treatment to run next, until the budget is spent; then a confirmation",
        "tune plan.toml --out search",
        _tune,
        "experiments:run_tune",
    ),
    Verb(
        "validate",
        "hold signals against gold and planted cases",
        "validate --gold gold.jsonl",
        _validate,
        "labelling:run_validate",
    ),
    Verb(
        "watch",
        "the session at work, live; or its hook's answer: is this a loop?",
        "watch --once",
        _watch,
        "watch:run_watch",
    ),
    Verb(
        "witness",
        "what git-ai's notes and Agent Trace files say of a repository's lines, beside ours",
        "witness .",
        _witness,
        "repositories:run_witness",
    ),
)


_COMPLETED = {"FILE": "FILE", "SOURCE": "FILE", "GOLD": "FILE", "DIR": "DIRECTORY", "FOLDER": "DIRECTORY"}
"""Metavars of files and folders, and how shtab completes them."""


def run_completion(options: argparse.Namespace) -> int:
    """Print the script by which a shell completes verbs, options and files (extra `completion`)."""
    from agentsignals.cli.output import json_text

    try:
        import shtab
    except ImportError as problem:
        raise UsageError(
            "Completion takes shtab, which is not installed.", "Install it: pip install 'agentsignals[completion]'."
        ) from problem
    parser = build_parser()
    _files(parser, shtab)
    text = shtab.complete(parser, shell=options.shell)
    print(json_text({"shell": options.shell, "text": text}) if options.json else text)
    return 0


def _files(parser: argparse.ArgumentParser, shtab: object) -> None:
    """Says of every argument that is a file or folder that it is, verbs of verbs included."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                _files(verb, shtab)
        elif str(action.metavar) in _COMPLETED:
            action.complete = getattr(shtab, _COMPLETED[str(action.metavar)])  # type: ignore[attr-defined]  # shtab's own
        elif not action.option_strings and not action.choices:
            # Anything may stand there: without a word on it zsh completes no option behind such a verb.
            action.complete = {"zsh": "( )"}  # type: ignore[attr-defined]  # shtab's own
