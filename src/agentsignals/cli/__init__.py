"""The command line: arguments, and one call into the library for each verb."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from agentsignals import __version__
from agentsignals.cli.ending import end_in_order
from agentsignals.cli.streams import visible_streams
from agentsignals.cli.verb import verbs as apart
from agentsignals.errors import AgentSignalsError, UsageError

_EPILOG = (
    "Every verb has --help with an example, and --json for machines. Without a verb: reads what the agents on this"
    " machine keep, and says what stands out."
)
_COMMON = ("--json", "--quiet", "--store")


class _Parser(argparse.ArgumentParser):
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
        from difflib import get_close_matches

        came, _, choices = message.partition("(choose from ")
        words = re.findall(r"[\w-]+", choices)
        return next(iter(get_close_matches(came.rpartition("invalid choice: ")[2].strip(" '"), words, 1)), "")


def build_parser(verb: str = "") -> argparse.ArgumentParser:
    """The whole grammar; `docs/cli.md` is made from it. With a `verb` of the main job, without those of others."""
    parser = _Parser(
        prog="agentsignals", description="Turns coding-agent traces into facts people act on.", epilog=_EPILOG
    )
    parser.add_argument("--version", action="version", version=f"agentsignals {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)
    _sources_verbs(verbs)
    _store_verbs(verbs)
    _other_verbs(verbs)
    if verb not in verbs.choices:
        for other in apart().values():
            made = _verb(verbs, other.name, other.says, other.example)
            made.set_defaults(do=other.run)
            other.arguments(made)
    return parser


def _verb(verbs: argparse._SubParsersAction[_Parser], name: str, says: str, example: str) -> _Parser:
    made: _Parser = verbs.add_parser(
        name, help=says, description=f"{says[:1].upper()}{says[1:]}.", epilog=f"Example: agentsignals {example}"
    )
    _common(made)
    return made


def _common(made: argparse.ArgumentParser) -> None:
    made.add_argument("--json", action="store_true", help="one JSON document on stdout, nothing else there")
    made.add_argument("--quiet", action="store_true", help="no progress on stderr")
    made.add_argument(
        "--store",
        metavar="DIR",
        help="the store's folder, or s3://BUCKET/PREFIX (else $AGENTSIGNALS_STORE, else your data folder)",
    )


def _sources_verbs(verbs: argparse._SubParsersAction[_Parser]) -> None:
    for name, says, example in (
        ("analyze", "read traces, measure them, report", "analyze ~/.claude/projects --report report.html"),
        ("ingest", "read traces into the store; unchanged files cost a stat", "ingest codex git:~/src/project"),
    ):
        made = _verb(verbs, name, says, example)
        made.add_argument(
            "sources",
            metavar="SOURCE",
            nargs="*" if name == "analyze" else "+",
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
        if name == "analyze":
            made.add_argument("--report", metavar="FILE", help="also write a report (.html, .md or .json)")


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


def _store_verbs(verbs: argparse._SubParsersAction[_Parser]) -> None:
    made = _verb(verbs, "measure", "compute the signals whose version, or whose session, changed", "measure")
    _embedder(made)
    _wait(made)
    made = _verb(verbs, "inventory", "the catalogue of signals, with filter", "inventory edit --context product")
    made.add_argument("text", metavar="TEXT", nargs="?", default="", help="words to find in name, path or meaning")
    made.add_argument("--context", choices=("eval", "product"), help="only signals of this context")
    made.add_argument("--high-value", action="store_true", help="only those marked high value")
    made.add_argument("--status", metavar="STATUS", help="only this status, as the table shows it")
    made = _verb(verbs, "show", "one session as a readable timeline", "show 3f2a81")
    made.add_argument("session", metavar="SESSION", help="its id, a unique beginning of it, or its log's file name")
    made.add_argument("--all", action="store_true", help="also thinking, results, subagents and side notes")
    made = _verb(
        verbs, "explain", "one value with the evidence that made it", "explain 3f2a81 dynamics.repetition_rate"
    )
    made.add_argument("session", metavar="SESSION", help="its id, a unique beginning of it, or its log's file name")
    made.add_argument(
        "signal",
        metavar="SIGNAL",
        help="a dotted path of the inventory, or sessions.COLUMN of a total of tokens or money",
    )
    made = _verb(
        verbs,
        "query",
        "DuckDB over the store's tables, read only",
        'query "SELECT name, count(*) FROM tool_calls GROUP BY 1"',
    )
    made.add_argument(
        "sql", metavar="SQL", help="one SELECT, FROM, DESCRIBE …; it may take half of the memory, and nothing on disk"
    )
    made.add_argument(
        "--csv",
        action="store_true",
        help="comma-separated values on stdout, any number of rows; a cell that a spreadsheet would run begins with '",
    )
    _context(made)
    made = _verb(verbs, "report", "studies with charts in one file that opens offline", "report -o report.html")
    made.add_argument("-o", "--output", metavar="FILE", required=True, help="where to: .html, .md or .json")
    made.add_argument("--study", metavar="NAME", nargs="+", help="only these studies")
    made.add_argument("--labeller", metavar="NAME", help="whose labels count (default: who gave most)")
    made.add_argument("--baseline", metavar="FILE", help="hold yours against it (`export --to baseline` makes one)")
    made.add_argument(
        "--static", action="store_true", help="a page whose charts are pictures: no 0.9 MB that draw them"
    )
    _context(made)


def _other_verbs(verbs: argparse._SubParsersAction[_Parser]) -> None:
    made = _verb(verbs, "demo", "make a small sample corpus in several formats and analyse it, no network", "demo")
    made.add_argument(
        "--folder", metavar="DIR", default="demo", help="where to put corpus, store and report (default ./demo)"
    )
    made = _verb(verbs, "doctor", "what is installed, found, readable; what to do about the rest", "doctor")
    made.add_argument(
        "--repair",
        action="store_true",
        help="mend the store: read again what was damaged, put the rest aside and say what is lost",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line; gives the exit code."""
    from agentsignals.cli.output import warnings_shown

    with visible_streams(), warnings_shown():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    end_in_order()
    argv = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in argv
    try:
        if not argv or argv[0].partition("=")[0] in _COMMON:
            return _without_verb(argv)
        options = build_parser(argv[0]).parse_args(argv)
        return int(getattr(options, "do", _main_job)(options))
    except AgentSignalsError as problem:
        from agentsignals.cli.output import json_text, printable

        if as_json:
            print(json_text({"error": {"kind": problem.kind, "message": problem.message, "hint": problem.hint}}))
            return 1 if problem.exit_code == 1 else problem.exit_code
        print(f"agentsignals: {printable(problem.message)}", file=sys.stderr)
        if problem.hint:
            print(f"  {printable(problem.hint)}", file=sys.stderr)
        return 0 if "--hook" in argv else problem.exit_code  # 2 would keep an agent from its call
    except KeyboardInterrupt:
        print("agentsignals: interrupted; what was finished is kept, run again to go on.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`| head`): what is still unsaid goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _main_job(options: argparse.Namespace) -> int:
    from agentsignals.cli import verbs  # with all that reads and measures, which other verbs do without

    return verbs.run(options)


def _without_verb(argv: Sequence[str]) -> int:
    from agentsignals.cli import start

    parser = _Parser(prog="agentsignals")
    _common(parser)
    return start.run(parser.parse_args(argv))
