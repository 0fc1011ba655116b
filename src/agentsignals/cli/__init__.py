"""Requests to end (SIGTERM; SIGHUP when the terminal goes) unwind like an interrupt."""

from __future__ import annotations

import _thread
import argparse
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from agentsignals.cli.grammar import Parser, add_common, build_parser, in_full
from agentsignals.errors import AgentSignalsError, out_of_memory
from agentsignals.private_files import owner_only
from agentsignals.words.text import visible

_HEARD_AGAIN_S = 0.05
"""Seconds after which a lost request is made again: the lines that swallowed it have ended by then."""


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
    """Handler of exceptions that go nowhere: requests to end are made again, others are printed as before."""

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
        output = sys.modules.get("agentsignals.cli.output")
        if output is not None and output.STYLE in shown:  # our own colours, which nothing in a trace can be
            shown = shown.replace(output.STYLE, "\x1b[")
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


_FORMS = ("json", "csv", "markdown")
"""Options for output whose lines are not wrapped."""
_UNFITTED = ("grammar:run_completion", "mcp:run_mcp")
_COMMON = ("--json", "--prices", "--quiet", "--store")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line; gives the exit code."""
    with owner_only(), visible_streams(), ExitStack() as while_running:
        return _main(arguments, while_running)


def _main(arguments: Sequence[str] | None, while_running: ExitStack) -> int:
    end_in_order()
    argv = list(sys.argv[1:] if arguments is None else arguments)
    as_json, options = "--json" in argv, argparse.Namespace(store=None)
    try:
        if not argv or argv[0].partition("=")[0] in _COMMON:
            parser: argparse.ArgumentParser = Parser(prog="agentsignals")
            add_common(parser)
            parser.set_defaults(do="analyze:run_start")
        else:
            argv = in_full(argv)
            parser = build_parser(*argv)
        options = parser.parse_args(argv)
        # Behind the parser: --help loads no logging and no JSON.
        from agentsignals.cli.output import compute_on_ask, fitted, warnings_shown

        while_running.enter_context(warnings_shown())
        if not any(getattr(options, form, False) for form in _FORMS) and options.do not in _UNFITTED:
            while_running.enter_context(fitted())
        compute_on_ask(options.quiet)
        if getattr(options, "prices", None) is not None:
            from agentsignals.model.prices import use_own_prices

            use_own_prices(Path(options.prices))
        module, _, function = options.do.partition(":")
        return int(getattr(import_module(f"agentsignals.cli.{module}"), function)(options))
    except KeyboardInterrupt:
        print("agentsignals: interrupted; finished work is kept. Run the command again to continue.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`| head`): what is still unsaid goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as problem:
        told = out_of_memory(problem) or problem
        if not isinstance(told, AgentSignalsError):
            raise
        from agentsignals.cli.output import json_text, named_in, tell

        hint = named_in(told.hint, f" --store {shlex.quote(str(options.store))}" if options.store else "")
        if as_json:
            print(json_text({"error": {"kind": told.kind, "message": told.message, "hint": hint}}))
            return 1 if told.exit_code == 1 else told.exit_code
        tell(told.message, *hint.splitlines())
        return told.exit_code
