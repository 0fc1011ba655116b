"""Requests to end (SIGTERM; SIGHUP when the terminal goes) unwind like an interrupt."""

from __future__ import annotations

import _thread
import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import IO, Any

from agentsignals import __version__
from agentsignals.cli.verb import verbs as apart
from agentsignals.errors import AgentSignalsError, UsageError
from agentsignals.words.text import visible

_HEARD_AGAIN_S = 0.05
"""How long after its loss a request is made again: what swallowed it (a few lines) has ended by then."""


class _Ending(SystemExit):
    """Unwinds the program: workers are ended, drafts removed; exit code 128 and the signal's number."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def end_in_order() -> None:
    """Ends the program by an exception where a signal asks for it. A second signal ends it at once.

    Python runs a handler between any two of its instructions, also in those whose exceptions go nowhere (what is called
    around a fork, when an object goes, by the collector). A request that is lost there is made again.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    if not isinstance(sys.unraisablehook, _Unraisable):
        sys.unraisablehook = _Unraisable(sys.unraisablehook)


def _end(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise _Ending(number)


class _Unraisable:
    """What becomes of exceptions that go nowhere: requests to end are made again, others are printed as before."""

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(self, lost: Any) -> None:
        problem = lost.exc_value
        if not isinstance(problem, _Ending | KeyboardInterrupt):
            self._before(lost)
            return
        number = problem.number if isinstance(problem, _Ending) else signal.SIGINT
        if isinstance(problem, _Ending):
            signal.signal(number, _end)
        again = threading.Timer(_HEARD_AGAIN_S, _ask, [signal.Signals(number)])
        again.daemon = True
        again.start()


def _ask(number: signal.Signals) -> None:
    if hasattr(signal, "pthread_kill"):  # which ends a call that waits, too
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main(number)


# Where text leaves for a terminal: no character that would drive it, whoever wrote it and whoever prints it.


class Visible:
    """A stream of text in front of another: what is unseen goes on as its number, what the other's encoding has no byte
    for as an escape. JSON passes as it is: its strings have such characters escaped already.
    """

    def __init__(self, beneath: IO[str], *, lines: bool = False) -> None:
        """`lines`: a carriage return, with which libraries draw their progress anew, begins a line."""
        self.beneath = beneath
        self._lines = lines

    def write(self, text: str) -> int:
        shown = visible(text.replace("\r", "\n") if self._lines else text)
        try:
            self.beneath.write(shown)
        except UnicodeEncodeError as problem:
            self.beneath.write(shown.encode(problem.encoding, "backslashreplace").decode(problem.encoding))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def visible_streams() -> Iterator[None]:
    """Inside, all that is printed to stdout and stderr is `Visible`."""
    out: Any = Visible(sys.stdout)
    err: Any = Visible(sys.stderr, lines=True)
    with redirect_stdout(out), redirect_stderr(err):
        yield


# The command line: arguments, and one call into the library for each verb.

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
    made = _verb(
        verbs, "analyze", "read traces, measure them, report", "analyze ~/.claude/projects --report report.html"
    )
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
    from agentsignals.cli import main_verbs as verbs  # with all that reads and measures, which other verbs do without

    return verbs.run(options)


def _without_verb(argv: Sequence[str]) -> int:
    from agentsignals.cli import main_verbs as start

    parser = _Parser(prog="agentsignals")
    _common(parser)
    return start.run_start(parser.parse_args(argv))
