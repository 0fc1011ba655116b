"""The grammar of the command line: every verb with its help, its arguments, and the function that runs it.

Where the first word names a verb, its parser alone is built and its module alone is loaded.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, NamedTuple

from agentsignals import __version__
from agentsignals.cli.doors import masking
from agentsignals.errors import UsageError

_EPILOG = (
    "Every verb has --help with an example, and --json for machines. Without a verb: reads what the agents on this"
    " machine keep, and says what stands out."
)
SEARCH_KINDS = ("title", "prompt", "reply", "command", "path", "result", "thinking", "other")
SEARCH_ORDERS = ("newest", "most")


class Argument(NamedTuple):
    """One argument or option of a verb."""

    names: tuple[str, ...]
    how: dict[str, Any]
    """Keywords of `ArgumentParser.add_argument`."""

    def add(self, parser: argparse._ActionsContainer) -> None:
        parser.add_argument(*self.names, **self.how)


class Either:
    """Options that exclude each other."""

    def __init__(self, *arguments: Argument) -> None:
        self.arguments = arguments

    def add(self, parser: argparse._ActionsContainer) -> None:
        group = parser.add_mutually_exclusive_group()
        for argument in self.arguments:
            argument.add(group)


class Verb(NamedTuple):
    """A verb of the command line."""

    name: str
    says: str
    """Its help, without a full stop."""
    example: str
    """Arguments of an example."""
    module: str
    """The module of `agentsignals.cli` whose `run_NAME` takes the options and returns the exit code."""
    arguments: tuple[Argument | Either, ...] = ()


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]  # ours raises, argparse's exits: neither returns
        from difflib import get_close_matches

        hint = f"See `{self.prog} --help`."
        # The choice that is most like the one that came, where the message is about choices.
        came, _, choices = message.partition("(choose from ")
        asked = came.rpartition("invalid choice: ")[2].strip(" '")
        if near := get_close_matches(asked, re.findall(r"[\w-]+", choices), 1):
            hint = f"Did you mean {near[0]}? {hint}"
        elif message.startswith("unrecognized arguments: -") or self.prog.endswith(" search"):
            hint = f"What begins with - and is no option goes behind --, as in `agentsignals search -- -word`. {hint}"
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint)


def build_parser(verb: str = "") -> argparse.ArgumentParser:
    """Build the parser of one verb, or of all where none has that name. `docs/cli.md` is made from it."""
    says = "Turns coding-agent traces into facts people act on."
    parser = Parser(prog="agentsignals", description=says, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"agentsignals {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    for each in [each for each in VERBS if each.name == verb] or VERBS:
        made = _add_verb(verbs, each, "agentsignals", EVERY_VERB)
        made.set_defaults(do=f"{each.module}:run_{each.name}")
        if each.name == "lab":
            inner = made.add_subparsers(dest="of", metavar="WHAT", required=True, parser_class=Parser)
            for part in LAB:
                _add_verb(inner, part, "agentsignals lab", _EVERY_LAB_VERB)
    return parser


def _add_verb(verbs: Any, verb: Verb, program: str, common: tuple[Argument, ...]) -> argparse.ArgumentParser:
    says, example = f"{verb.says[:1].upper()}{verb.says[1:]}.", f"{program} {verb.name} {verb.example}".strip()
    if program == "agentsignals" and (masks := masking(verb.name)):
        says += f" What leaves: {masks}"
    made: argparse.ArgumentParser = verbs.add_parser(
        verb.name, help=verb.says, description=says, epilog=f"Example: {example}"
    )
    for argument in (*common, *verb.arguments):
        argument.add(made)
    return made


def _verb(example: str, module: str, says: str, *arguments: Argument | Either) -> Verb:
    name, _, given = example.partition(" ")
    return Verb(name, says, given, module, arguments)


def arg(spec: str, says: str, type: type | None = None, default: Any = None, **how: Any) -> Argument:  # noqa: A002  (argparse's word)
    """Declare an argument by names and placeholder, as in `-o --output FILE`. Without one, an option is a flag."""
    words = spec.split()
    names = tuple(word for word in words if word.startswith("-")) or (words[0],)
    if len(words) > len(names):
        how["metavar"] = words[-1]
    elif spec.startswith("-") and not how:
        how["action"] = "store_true"
    given = {"type": type, "default": default}
    return Argument(names, {**how, "help": says, **{name: value for name, value in given.items() if value is not None}})


def _several(spec: str, says: str) -> Argument:
    return arg(spec, says, None, [], nargs="+", action="extend")


# Arguments that several verbs have.

EVERY_VERB = (
    arg("--json", "one JSON document on stdout, nothing else there"),
    arg("--quiet", "no progress on stderr"),
    arg("--prices FILE", "your own prices of models (else prices.toml in your configuration folder): docs/prices.md"),
    arg("--store DIR", "the store's folder, or s3://BUCKET/PREFIX (else $AGENTSIGNALS_STORE, else your data folder)"),
)
_EVERY_LAB_VERB = (  # without a default of their own: `lab --json list` and `lab list --json` mean the same
    arg("--json", "one JSON document on stdout", default=argparse.SUPPRESS),
    arg("--quiet", "no progress on stderr", default=argparse.SUPPRESS),
)
_EMBEDDER = arg(
    "--embedder NAME",
    "what compares texts in this store from now on: words (default), chars, sentence-transformers:MODEL,"
    " openai:MODEL[@URL], none",
)
_REDACT_EMBEDDER = arg(
    "--redact", "with --embedder openai: mask secrets and names also for a server on this machine, from now on"
)
_WAIT = arg("--wait SECONDS", "how long to wait for another run on this store (default 60)", float)
_CONTEXT = arg("--context", "of people's sessions, or of eval runs, alone", choices=("product", "eval"))
_ID = "its id, a unique beginning of it, or its log's file name"
_WHERE = arg("--where SQL", "a condition over the columns of `sessions`", default="true")
_WHERE_ATTEMPTS = arg("--where SQL", "a condition over the columns of `sessions` and `attempts`", default="true")
_JOBS = arg("--jobs N", "worker processes (default: one a core, at most 8)", int)
_JOBS_READING = arg("--jobs N", "worker processes that read transcripts", int)
_ENGINE = arg("--engine NAME", "what runs the workers (default local): docs/scale.md", default="local")
_REPOSITORY = arg("repository REPO", "a repository's folder or address")
_REPOSITORIES = arg("repositories REPO", "a repository's folder or address", nargs="+")
_PLACES = "folders or addresses of repositories, OWNER/NAME, a folder of clones, a list, a saved search result"
_TREATMENTS = arg(
    "--treatments FILE",
    "who was tried, by folder, where the run does not record it: YAML, JSON, or a pattern (docs/compare.md)",
    Path,
)
_MASKED = "mask keys, passwords, mail addresses and names in home folders"
_ATTEMPTS = (
    _several("--by COLUMN", "what makes a candidate: model, agent, a knob (default: treatments that differ)"),
    _WHERE_ATTEMPTS,
    arg("--markdown", "print Markdown"),
)

_MODEL = (
    arg("--model PATH_OR_ID", "a model's folder, or its id on the Hub; runs here (extra lab)"),
    arg("--revision REV", "commit, branch or tag on the Hub"),
    arg("--dtype", "default: as stored", choices=("auto", "float32", "bfloat16", "float16"), default="auto"),
    arg("--device NAME", "cpu, cuda, cuda:1, or auto: spread over all (default: the first GPU)"),
    arg("--attention", "default sdpa", choices=("sdpa", "eager", "flash_attention_2"), default="sdpa"),
    arg("--batch N", "the most rows of a batch (default 32)", int, 32),
    arg("--batch-tokens N", "the most tokens of one (default: by a GPU's memory; else 8192)", int),
    arg("--exact", "each row alone: what it says depends on nothing beside it, in bf16, too"),
    arg("--out RUN", "the run's folder: new, empty, or of the same run, which goes on", required=True),
)
_SANDBOX = (
    arg("--tier", "the sandbox that answers run in", choices=("strict", "default", "rlimits"), default="default"),
    arg("--allow-weak-sandbox", "run answers even where that sandbox lacks something"),
)
LAB = (
    _verb(
        "list",
        "lab",
        "experiments, task families, wordings, sandbox tiers",
        arg("--tasks NAMES", "name the tasks of these families or files, too (or all)"),
    ),
    _verb(
        "agent --model Qwen/Qwen2.5-0.5B-Instruct --tasks times --out runs/a",
        "lab",
        "the retry loop: write a function, hear of failed tests, try again",
        *_MODEL,
        arg("--server URL", "instead of --model: a server that speaks chat completions; tasks go there"),
        arg("--server-model NAME", "the model's name at that server"),
        arg("--calls N", "calls of the server in flight (default 8)", int, 8),
        arg("--tasks NAMES", "names, families, FILE.jsonl, published, all, tiny:COUNT (default all)", default="all"),
        arg("--variants NAMES", "plain, one_off, conflicting, hardcode_inviting", default="plain"),
        arg("--conditions FILE", "a TOML file of [[condition]]s beside the baseline, with tones"),
        arg("--directions FILE", "directions (.npz) to steer along and to project on"),
        arg("--samples N", "episodes a task and condition (default 1)", int, 1),
        arg("--attempts N", "at most, an episode (default 3)", int, 3),
        arg("--temperature T", "0: the likeliest token (default 0.2)", float, 0.2),
        arg("--max-new-tokens N", "of an answer (default 360)", int, 360),
        arg("--seed N", "of the random numbers, shared by conditions (default 13)", int, 13),
        arg("--wording NAME", "how tasks are put, as `lab list` names it (default plain)", default="plain"),
        *_SANDBOX,
    ),
    _verb(
        "run directions --model MODEL --out runs/directions",
        "lab",
        "an experiment on a model",
        arg("experiment EXPERIMENT", "as `lab list` names it"),
        arg("--config FILE", "its settings as TOML (default: those it has)"),
        arg("--texts FILE", "contrast texts (TOML) in place of the setting's"),
        arg("--seed N", "default 13", int, 13),
        *_MODEL,
    ),
    _verb(
        "report runs/a",
        "lab",
        "a run as a page and as Markdown",
        arg("run RUN", "a run's folder"),
        arg("-o --output FILE", ".html, .md or .json (default: both in the run's folder)", action="append"),
    ),
    _verb(
        "compare runs/a runs/b",
        "lab",
        "two retry loops, paired where tasks match",
        arg("one RUN", "a retry loop's folder"),
        arg("other OTHER", "the run to hold against it"),
    ),
    _verb(
        "rescore runs/a --evaluator legacy-last",
        "lab",
        "stored answers by another evaluator, and what changes",
        arg("folder FOLDER", "a run, or a folder of published results"),
        arg("--evaluator NAME", "1 (ours, default), legacy-first, legacy-last", str, "1"),
        *_SANDBOX,
    ),
    _verb(
        "audit llm-emotions-coding-agents -o audit.html",
        "lab",
        "what an audit finds in the published runs: rates re-scored, causes of failure, markers, geometry",
        arg("folder FOLDER", "a clone of the published study, or a part of its results"),
        arg("-o --out FILE", "write it, too: .html, .md or .json", str, [], action="append"),
    ),
)

VERBS = (
    _verb(
        "analyze ~/.claude/projects --report report.html",
        "analyze",
        "read traces, measure them, report",
        arg(
            "sources SOURCE",
            "a file or folder; an agent's name (claude-code, codex, …); git:PATH_OR_URL[#REF];"
            " hub:OWNER/NAME[@REV][#PATTERN]; s3://BUCKET[/PREFIX]",
            nargs="*",
        ),
        arg("--format NAME", "read every file as this format instead of recognising it"),
        _JOBS,
        _ENGINE,
        arg("--exclude FILE", "list of data sets (owner/name) and sessions to leave out"),
        arg("--strict", "exit 1 when any record was skipped; an agent's state files are none"),
        _EMBEDDER,
        _REDACT_EMBEDDER,
        _WAIT,
        Either(
            arg("--report FILE", "also write a report (.html, .md or .json)"),
            arg("--no-report", "read and measure only; no findings"),
        ),
    ),
    _verb(
        "measure",
        "analyze",
        "compute the signals whose version, or whose session, changed",
        arg("--all", "also those that nobody asked for yet"),
        _EMBEDDER,
        _REDACT_EMBEDDER,
        _WAIT,
    ),
    _verb(
        "inventory edit --context product",
        "explore",
        "the catalogue of signals, with filter",
        arg("text TEXT", "words to find in name, path or meaning", str, "", nargs="?"),
        arg("--context", "only signals of this context", choices=("eval", "product")),
        arg("--high-value", "only those marked high value"),
        arg("--status STATUS", "only this status, as the table shows it"),
    ),
    _verb(
        "show 3f2a81",
        "explore",
        "one session as a readable timeline",
        arg("session SESSION", _ID),
        arg("--all", "also thinking, results, subagents and side notes"),
    ),
    _verb(
        "explain 3f2a81 dynamics.repetition_rate",
        "explore",
        "one value with the evidence that made it",
        arg("session SESSION", _ID),
        arg("signal SIGNAL", "a dotted path of the inventory, or sessions.COLUMN of a total of tokens or money"),
    ),
    _verb(
        'query "SELECT name, count(*) FROM tool_calls GROUP BY 1"',
        "explore",
        "DuckDB over the store's tables, read only",
        arg("sql SQL", "one SELECT, FROM, DESCRIBE …; it may take half of the memory, and nothing on disk"),
        arg(
            "--csv",
            "comma-separated values on stdout, any number of rows; a cell that a spreadsheet would run begins with '",
        ),
        _CONTEXT,
    ),
    _verb(
        "report -o report.html",
        "explore",
        "studies with charts in one file that opens offline",
        arg("-o --output FILE", "where to: .html, .md or .json", required=True),
        arg("--study NAME", "only these studies", nargs="+"),
        arg("--labeller NAME", "whose labels count (default: who gave most)"),
        arg("--baseline FILE", "hold yours against it (`export --to baseline` makes one)"),
        _CONTEXT,
    ),
    _verb(
        "demo",
        "analyze",
        "make a small sample corpus in several formats and analyse it, no network",
        arg("--folder DIR", "where to put corpus, store and report (default ./demo)", default="demo"),
    ),
    _verb(
        "doctor",
        "doctor",
        "what is installed, found, readable; what to do about the rest",
        arg("--repair", "mend the store: read again what was damaged, put the rest aside and say what is lost"),
    ),
    _verb(
        "agree sentiment rules --gold gold.jsonl",
        "labelling",
        "how far two labellers agree",
        arg("task TASK", "what was judged; `agentsignals label` lists the tasks"),
        arg("first LABELLER", "rules, a model as `label` named it, human:NAME …"),
        arg("others OTHER", "another labeller of the store, or several", nargs="*"),
        arg("--gold FILE", "instead of another: labels in a file (.jsonl, .csv), taken as the truth"),
        arg("--column NAME", "with --gold: where the label stands (default: label, TASK_label or TASK)"),
        arg("--settle FILE", "also write both labels to a new gold file, for `annotate` to settle"),
    ),
    _verb(
        "align --task dask__dask-8685",
        "attempts",
        "runs of one task step by step, and where they part",
        arg("sessions SESSION", "two or more; the others are held against the first", nargs="*"),
        arg("--task ID", "all attempts at a task, held against a run that solved it (the one of median length)"),
        arg("--trial ID", "the attempts of a trial, held against the first of them"),
        arg("--markdown", "as Markdown"),
    ),
    _verb(
        "annotate sentiment --as ann --sample 100",
        "labelling",
        "label by hand, at a terminal",
        arg("task TASK", "what is judged; `agentsignals label` lists the tasks"),
        arg("--as NAME", "who labels; the labels are human:NAME's", dest="person", required=True),
        arg("--gold FILE", "what to label (`label --export-gold`), or to settle (`agree --settle`)"),
        arg("--sample N", "without --gold: a sample of so many (default 100)", int),
        arg("--seed N", "of the sample: two people with the same seed label the same things", int),
    ),
    _verb(
        "attribute .",
        "repositories",
        "whose lines a repository's commits added, and what became of them",
        _REPOSITORIES,
        arg("--afresh", "also where nothing changed since the last time"),
        _JOBS,
        _ENGINE,
    ),
    _verb(
        "audit --by model",
        "attempts",
        "whether passed attempts of eval runs were earned, each with what shows it; the resolve rate before and after",
        *_ATTEMPTS,
    ),
    _verb(
        "collect ~/src list.txt",
        "repositories",
        "bring repositories with checkpoints into the store",
        arg("repositories REPOS", _PLACES, nargs="+"),
        arg("--list", "only say which repositories these are; read and fetch none"),
        arg("--no-forks", "leave out what a search result calls a fork"),
        arg("--min-checkpoints N", "leave out those with fewer (1)", int, 1),
        arg("--min-commits N", "leave out those with fewer commits", int, 0),
        arg("--min-linked N", "leave out those with fewer commits that name a checkpoint", int, 0),
        arg("--no-machine-prompts", "leave out sessions that a program began (counted and labelled)"),
        _JOBS_READING,
    ),
    _verb(
        "compare --by model --outcome resolved",
        "compare",
        "candidates under their treatments: paired where tasks match, first attempts apart from retries",
        _several(
            "--by COLUMN", "what makes a candidate: model, agent, run, a cap, a knob (default: treatments that differ)"
        ),
        arg(
            "--baseline NAME",
            "the candidate the others are held against (default: one of that name, else most known outcomes)",
        ),
        arg(
            "--outcome WHAT",
            "reward (default), resolved, or a signal of attempts: SIGNAL, SIGNAL=VALUE, SIGNAL>=NUMBER",
            str,
            "reward",
        ),
        _TREATMENTS,
        arg(
            "--regression-weight W",
            "what a task that only the baseline solves counts; one of the candidate's counts 1 (default)",
            float,
            1.0,
        ),
        _several("--only NAME", "compare these candidates alone with the baseline"),
        arg("--anyway", "compare candidates that had other tasks, data sets or limits"),
        arg("--markdown", "the same as Markdown, for a pull request or a page"),
        _WHERE_ATTEMPTS,
        arg(
            "--fail-if CONDITION",
            "a gate: exit 1 where a candidate meets it, 3 where that can't be told, else 0; may be repeated:"
            " 'solve_rate < baseline - 0.05', 'regressions > 0', 'cost_usd > 1.2 * baseline'",
            str,
            [],
            action="append",
        ),
        arg(
            "--decide-by",
            "what must meet a condition: the whole 95%% interval (default), or the estimate",
            choices=("interval", "value"),
            default="interval",
        ),
        arg("--junit FILE", "also write the gate's outcome as JUnit XML", Path),
    ),
    _verb(
        "completion bash > ~/.local/share/bash-completion/completions/agentsignals",
        "grammar",
        "the script that has a shell complete verbs, options and files",
        arg("shell", "whose script it is to be", choices=("bash", "zsh")),
    ),
    _verb(
        "discover hub --license mit",
        "repositories",
        "data sets and repositories of traces that can be read",
        arg("place PLACE", "where to look: hub, repos", choices=("hub", "repos")),
        arg("names REPO", f"repos: {_PLACES.replace(' of repositories', '')}", nargs="*"),
        arg("--search TEXT", "words in the name"),
        arg("--owner NAME", "of this person or organisation only"),
        arg("--license ID", "only with this licence; `none` for those that state none"),
        arg("--harness NAME", "only of this agent, as tags and file names tell (codex, pi …)"),
        arg("--tag TAG", "that has this tag, too", str, [], action="append"),
        arg("--untagged", "also data sets without the tag format:agent-traces"),
        arg("--distinct", "leave out data sets that hold the files of another one"),
        arg("--exclude FILE", "list of data sets to leave out"),
        arg("--limit N", "the N most downloaded", int),
    ),
    _verb(
        "drivers --by model --outcome resolved --markdown",
        "attempts",
        "which signals go with success within task and treatment: correlations, against honest baselines",
        _several(
            "--by COLUMN", "what makes a treatment: model, agent, a cap, a knob (default: treatments that differ)"
        ),
        arg(
            "--outcome WHAT",
            "reward (default), resolved, or a yes or no: SIGNAL, SIGNAL=VALUE, SIGNAL>=NUMBER",
            str,
            "reward",
        ),
        _TREATMENTS,
        arg(
            "--within",
            "what two attempts that are held against each other share: task and treatment, or the task alone, with"
            " treatments' means taken off (default: the first, where six tasks were solved and failed so)",
            choices=("treatment", "task"),
        ),
        _several(
            "--keep SIGNAL", "let in a signal that reads the gold patch, or was set aside as a near copy of the outcome"
        ),
        arg(
            "--false-discoveries SHARE",
            "the share of wrong ones to expect among the signals named (default 0.05)",
            float,
            0.05,
        ),
        arg("--no-models", "contrasts alone, without what the extra `drivers` adds"),
        _WHERE_ATTEMPTS,
        arg("--markdown", "the result as Markdown"),
    ),
    _verb(
        "export --to atif -o trajectories",
        "export",
        "sessions in formats that others read",
        arg("--to FORMAT", "what is written; without one the formats are listed"),
        arg("-o --output DIR", "a new or empty folder; baseline: a file"),
        _WHERE,
        arg("--redact", f"{_MASKED} (default: for parquet, hub, training)", action=argparse.BooleanOptionalAction),
        arg("--license ID", "hub, training: the licence that the card states (mit, cc-by-4.0 …)"),
        arg("--title TEXT", "hub, training: the card's title"),
        arg(
            "--transcripts",
            "hub: conversations in the Hub's simple format (default), the files as found, or none",
            choices=("sts", "found", "none"),
            default="sts",
        ),
        arg(
            "--kind",
            "training: solved attempts as chats (default), pairs of a solved and a failed one, or steps with labels",
            choices=("accepted", "preferences", "steps"),
            default="accepted",
        ),
        arg("--without-benchmarks", "training: leave out what is of a known benchmark"),
    ),
    _verb(
        "failures --by model",
        "attempts",
        "why attempts of eval runs failed, by candidate, each with what shows it",
        *_ATTEMPTS,
    ),
    _verb(
        "findings",
        "explore",
        "the few sentences that matter, ranked, each with what stands behind it",
        arg("id FINDING", "one of them, with the events, files and lines that it rests on", nargs="?"),
        _CONTEXT,
        arg("--effect SHARE", "the least share of the whole that is said (default 0.05)", float),
        arg("--sureness SHARE", "how sure it has to be, 0 to 1 (default 0.33)", float),
        arg("--rate SHARE", "of what is said, how much may be wrong by chance (default 0.05)", float),
    ),
    _verb(
        "forget --deleted",
        "doctor",
        "take sessions out of the store, or those whose files are gone",
        arg("sessions SESSION", "its id, or a unique beginning of it", nargs="*"),
        arg("--deleted", "those whose files are gone"),
    ),
    _verb(
        "formats claude-code",
        "doctor",
        "what is read, what it rests on, which versions were met",
        arg("name NAME", "one format, with all that is known of it", nargs="?"),
    ),
    _verb(
        "lab agent --model FOLDER --tasks times --out runs/a",
        "lab",
        "a model's retry loops and experiments: run, report, compare, rescore",
    ),
    _verb(
        "label sentiment --by openai:qwen3@http://127.0.0.1:8000/v1",
        "labelling",
        "judge messages or sessions by rules or a model",
        arg("task TASK", "what is judged; without one the tasks are listed", nargs="?"),
        arg(
            "--by LABELLER",
            "rules (default: no model, no network), classifier (a small model that is shipped, no network) or"
            " classifier:FILE (one of your own), openai:MODEL[@URL[,URL…]] (any servers that speak OpenAI's"
            " protocol); clusters for the task topic",
        ),
        _WHERE,
        arg("--limit N", "at most so many messages or sessions", int),
        arg("--dry-run", "say what would be asked and what it would cost; ask nothing"),
        arg("--concurrency N", "calls under way at once, at each address (default 8)", int),
        arg("--per-minute N", "at most so many calls a minute", float),
        arg("--window TOKENS", "how much the model can read (default: what the server says)", int),
        arg("--timeout SECONDS", "for one call (default 120)", float),
        arg("--examples FILE", "show the model some of each class out of a gold file; they are not judged"),
        arg("--label-first", "ask for the verdict before its reason"),
        arg("--answers N", "so many answers to each question; what most of them say is the label", int),
        arg(
            "--redact",
            f"{_MASKED}, also for a server on this machine, which may pass texts on (default: for a server elsewhere"
            " and in files)",
            action=argparse.BooleanOptionalAction,
        ),
        arg(
            "--from FILE",
            "take labels instead: published ones (Parquet, or a folder of it), or a gold file (.jsonl, .csv)",
            dest="source",
        ),
        arg("--labeller NAME", "with --from: who gave these labels; people are human:NAME"),
        arg("--column NAME", "with a gold file (--from, --examples): where the label stands"),
        arg("--export-gold FILE", "write things for people to label instead (.jsonl, .csv)", dest="gold"),
        arg("--sample N", "with --export-gold: how many (default 100), evenly of the labels --by", int),
        arg("--seed N", "with --export-gold: of the sample; of topics: of the groups", int),
        arg("--export-batch FILE", "write what has no answer yet as a batch of requests; ask nothing"),
        arg(
            "--batch-form",
            "of that file (default: anthropic for claude models, else openai)",
            choices=("openai", "anthropic"),
        ),
        arg("--again", "with --export-batch: also what an earlier batch has no result of"),
        arg(
            "--import-batch FILE",
            "label by a file of results; may be given again for another file (errors)",
            action="append",
        ),
        arg("--names LABELLER", "with topic: the model that names them, as openai:MODEL[@URL]"),
        arg("--method NAME", "with topic: k-means (default), or umap+hdbscan (extra topics)"),
        arg("--embedder NAME[:MODEL]", "with topic: what compares prompts (default: the store's)"),
    ),
    _verb(
        "mcp",
        "mcp",
        "answer agents' questions over the store (Model Context Protocol)",
        arg("--skill", "print the skill file (SKILL.md) that tells agents how to ask"),
        arg("--redact", f"{_MASKED} (default)", action=argparse.BooleanOptionalAction, default=True),
    ),
    _verb(
        "receipt . main..HEAD --markdown",
        "repositories",
        "what agents did for a commit, a branch or a pull request: owners, checks, what was not run, cost",
        _REPOSITORY,
        arg("revision REVISION", "a commit, A..B, or a branch (default: HEAD)", str, "HEAD", nargs="?"),
        arg("--markdown", "as Markdown, for a review"),
        _JOBS_READING,
    ),
    _verb(
        "replicate sentiment --data dataset",
        "experiments",
        "published claims against computed values",
        arg("claims CLAIMS", "sentiment, swe-chat, emotion-lab, or a YAML file of claims"),
        arg("--data DIR", "the data the claims are about (default: the store, where the claims say how)"),
        arg("--strict", "exit 1 also when a claim is untestable"),
    ),
    _verb(
        "rules . --file AGENTS.md",
        "repositories",
        "mechanical rules of instruction files (AGENTS.md …): in force, kept or broken with the line, their effect",
        arg(
            "repository REPO",
            "a repository's folder or address (default: what the store's traces show of such files)",
            nargs="?",
        ),
        arg("--file FILE", "of this instruction file alone, as the repository calls it"),
        arg("--markdown", "print Markdown"),
        _JOBS_READING,
    ),
    _verb(
        "scan .",
        "repositories",
        "which weaknesses came with a repository's commits, and with whose lines",
        _REPOSITORIES,
        arg("--scanner NAME", "rules (ours, always there), bandit, ruff or semgrep, when installed"),
        arg("--config FILE", "a file or folder of rules, for semgrep"),
        arg("--sarif FILE", "take in a scanner's report instead of scanning"),
        arg("--afresh", "scan also files that were scanned before"),
        _JOBS,
        _ENGINE,
    ),
    _verb(
        'search "merge conflicts -rebase tool:Bash"',
        "explore",
        "find the sessions in which something was said, run or answered",
        arg(
            "words WORD",
            "all in one passage; as one argument also '\"a phrase\" begin* -without tool:Bash agent: repo: session:'",
            nargs="+",
        ),
        arg(
            "--kind", "passages of this kind alone; may be repeated", choices=SEARCH_KINDS, action="append", default=[]
        ),
        arg(
            "--order",
            "the last active session first, or that with most passages",
            choices=SEARCH_ORDERS,
            default="newest",
        ),
        arg("--limit N", "at most so many sessions (default 20)", int, 20),
        arg("--hits N", "at most so many passages of each (default 3)", int, 3),
    ),
    _verb(
        "serve --open",
        "serve",
        "the store as a web page on 127.0.0.1, as agents work",
        arg("sources SOURCE", "watch these instead of what the store was read from", nargs="*"),
        arg("--port N", "where to listen (default 8321, or any free one; 0: any free one)", int),
        arg("--open", "open it in the browser"),
        arg("--no-watch", "show the store as it is; read nothing that changes"),
        arg("--no-token", "let in every user, container and program of this machine, not only who has the address"),
        arg(
            "--annotate FILE",
            "let its page for labelling write this gold file (default gold.jsonl); it writes nothing else",
            nargs="?",
            const="gold.jsonl",
        ),
    ),
    _verb(
        "sessions --where \"n_prompts > 10 AND agent = 'codex'\"",
        "explore",
        "list the sessions",
        _WHERE,
        arg(
            "--behind KEY",
            "those that a number counts, largest part first: study:NAME:ID, study:NAME:TABLE:ROW,"
            " study:NAME:CHART:MARK or finding:ID",
        ),
        arg("--limit N", "at most so many (default 50)", int, 50),
    ),
    _verb(
        "share SESSION --out session.html",
        "export",
        "one masked session, or a team's figures, as one file",
        arg("session SESSION", "its id, or the beginning of it", nargs="?"),
        arg("-o --out FILE", "a new file: .html; for a team also .json"),
        arg("--pictures", "of a session its pictures, too: what they show can't be masked"),
        arg("--team", "instead: counts, costs, failures, outcomes and signals; no text at all"),
        arg("--check FILE", "instead: look whether a team's file holds no text, word by word"),
    ),
    _verb(
        "tune plan.toml --out search",
        "experiments",
        "search over knobs: which treatment to run next, until the budget is spent; then a confirmation",
        arg("plan PLAN", "a TOML file: command, knobs, tasks, budget (docs/tune.md)", Path),
        arg("--out FOLDER", "the search's folder: a new one, or one to go on with", Path, required=True),
        Either(
            arg("--show", "say how the search stands, and start nothing"),
            arg("--dry-run", "say what would be run next, and start nothing"),
        ),
    ),
    _verb(
        "validate --gold gold.jsonl",
        "labelling",
        "hold signals against gold and planted cases",
        arg("--gold FILE", "also hold rules against these labels (.jsonl, .csv)", str, [], nargs="+"),
        arg("--write FILE", "write the figures there, as the package ships them"),
    ),
    _verb(
        "watch --once",
        "watch",
        "the session at work, live; or its hook's answer: is this a loop?",
        arg(
            "source SOURCE",
            "a transcript, a folder or an agent's name (default: the agents on this machine)",
            nargs="?",
        ),
        arg("--once", "say how it stands now, and end"),
        arg("--hook", "answer the hook event on stdin: is this a loop? (docs/watch.md)"),
    ),
    _verb(
        "witness .",
        "repositories",
        "what git-ai's notes and Agent Trace files say of a repository's lines, beside ours",
        _REPOSITORY,
        arg("--markdown", "as Markdown"),
        _JOBS_READING,
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
    """Mark every argument that is a file or folder as one, those of `lab`'s verbs included."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                _files(verb, shtab)
        elif str(action.metavar) in _COMPLETED:
            action.complete = getattr(shtab, _COMPLETED[str(action.metavar)])  # type: ignore[attr-defined]  # shtab's own
        elif not action.option_strings and not action.choices:
            # Anything may stand there: without a word on it zsh completes no option behind such a verb.
            action.complete = {"zsh": "( )"}  # type: ignore[attr-defined]  # shtab's own
