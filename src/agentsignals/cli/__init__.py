"""The command line: requests to end, text that is safe for a terminal, the parser of `verbs.json`, shell completion.

SIGTERM, and SIGHUP when the terminal goes, unwind like an interrupt. `verbs.json` has for every verb the module that
runs it, its help, an example, its arguments, and what leaves by it (`leaves`, masked as `masking` says). An argument
has the names and placeholder of its option, and what `argparse` takes. A name alone: arguments that verbs share;
a list in the list, for options that exclude each other. `group` is the word in front of a verb; `first` has what the
first screen of the help lists. Where the first words name a verb, its parser alone is built and its module alone is
loaded.
"""

from __future__ import annotations

import _thread
import argparse
import json
import os
import re
import shlex
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

from agentsignals import __version__
from agentsignals.cli.lab import installed_lab
from agentsignals.errors import AgentSignalsError, UsageError, install_command, out_of_memory
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
_UNFITTED = (":run_completion", "mcp:run_mcp")
_COMMON = ("--json", "--prices", "--quiet", "--store")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line; gives the exit code."""
    with owner_only(), visible_streams(), ExitStack() as while_running:
        return _main(arguments, while_running)


def _main(arguments: Sequence[str] | None, while_running: ExitStack) -> int:
    """Parse the command line, run its verb, and turn every expected error into a message and an exit code."""
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
        return int(getattr(import_module(f"agentsignals.cli.{module}".rstrip(".")), function)(options))
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


_TYPES: dict[str, Any] = {"int": int, "float": float, "path": Path}
_COMPLETED = {"FILE": "FILE", "SOURCE": "FILE", "GOLD": "FILE", "DIR": "DIRECTORY", "FOLDER": "DIRECTORY"}
"""Metavars of files and folders, and how shtab completes them."""
_FRAME = ("groups", "first", "masking", "shared")
"""Sections of `verbs.json` that are no verbs."""
_SAYS = "Analyze coding-agent sessions: cost, failures, eval comparisons."
_ALONE = "`agentsignals` alone reads the agents on this machine and prints the main findings."
_EVERY = "`agentsignals VERB --help` has options and an example. Every verb takes --json."


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]  # ours raises, argparse's exits: neither returns
        from agentsignals.model.registry import did_you_mean

        near, asking = "", self
        came, _, choices = message.partition("(choose from ")
        if choices:
            argument, _, asked = came.rpartition(": invalid choice: ")
            asked, allowed = asked.strip(" '"), re.findall(r"[\w-]+", choices)
            if argument.endswith("VERB"):
                allowed += verbs() if self.prog == "agentsignals" else []
                is_place = "/" in asked or Path(asked).exists()
                near = f"To read it: `agentsignals analyze {asked}`." if is_place else ""
                message = f"there is no verb {asked!r}"
            else:
                message = f"{argument.removeprefix('argument ')} takes {', '.join(allowed)}, not {asked!r}"
            near = near or did_you_mean(asked, allowed)
        elif message.startswith("unrecognized arguments: -"):
            asking = self._innermost()
            flags = [f[2:] for action in asking._actions for f in action.option_strings if f.startswith("--")]
            name = message.split()[2].partition("=")[0]
            near = did_you_mean(name[2:], flags).replace("mean ", "mean --") if name.startswith("--") else ""
            near = near or f"The options are {', '.join(f'--{flag}' for flag in flags)}."
        if asking.prog.endswith(" search") and not near.startswith("Did"):
            near = "A word that begins with - and is no option goes behind --, as in `agentsignals search -- -word`."
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", f"{near} See `{asking.prog} --help`.".lstrip())

    def _innermost(self) -> Parser:
        """Return the parser of the verb that was named: the only one that is built below this one."""
        below = [
            verb for action in self._actions if isinstance(action.choices, dict) for verb in action.choices.values()
        ]
        return below[0]._innermost() if len(below) == 1 else self


class Program(Parser):
    """The parser of the whole command line."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse a command line. A verb of a group may be named without the group."""
        return super().parse_args(in_full(sys.argv[1:] if args is None else args), namespace)

    def format_help(self) -> str:
        """Return the first screen: verbs by group, the others by name alone."""
        declared, width = declarations(), max(40, shutil.get_terminal_size().columns)
        told = declared["groups"] | {name: declared[name]["help"] for name in verbs()}
        lines = [*textwrap.wrap(f"{_SAYS} {_ALONE}", width), "", "usage: agentsignals [VERB] [options]"]
        for title, names in declared["first"]:
            lines += ["", f"{title}:"]
            for name in names:
                inner = [n for n in verbs() if name == _group_of(n)]
                text = f"{told[name]}: {', '.join(inner)}" if inner else told[name]
                indent = " " * 16
                lines += textwrap.wrap(text, width, initial_indent=f"    {name:12}", subsequent_indent=indent)
        first = {name for _, names in declared["first"] for name in names}
        more = [n for n in verbs() if n not in first and not _group_of(n)]
        lines += ["", *textwrap.wrap(f"More: {', '.join(more)}", width, subsequent_indent="    ")]
        return "\n".join([*lines, "", *textwrap.wrap(_EVERY, width), ""])


@cache
def declarations() -> dict[str, Any]:
    """Return `verbs.json` by section."""
    held: dict[str, Any] = json.loads(Path(__file__).with_name("verbs.json").read_bytes())
    return held


def verbs() -> list[str]:
    """Return the verbs. Those of a group have it in their section."""
    return [name for name in declarations() if name not in _FRAME]


def in_full(argv: Sequence[str]) -> list[str]:
    """Return a command line with the group in front of a verb that was named without it."""
    group = _group_of(argv[0]) if argv and argv[0] in verbs() else ""
    return [group, *argv] if group else list(argv)


def _group_of(verb: str) -> str:
    return str(declarations()[verb].get("group", ""))


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options of every verb."""
    _add(parser, "every_verb", declarations()["shared"])


def build_parser(*words: str, with_lab: bool = False) -> argparse.ArgumentParser:
    """Build the parser of the verb that these words name, or of all verbs where they name none. `docs/cli.md` is made
    from it. The verbs of an installed lab are in that of `lab`, and with `with_lab` in that of all verbs."""
    declared = declarations()
    parser = Program(prog="agentsignals", description=_SAYS, epilog=f"{_ALONE} {_EVERY}")
    parser.add_argument("--version", action="version", version=f"agentsignals {__version__}")
    inner: dict[str, Any] = {"": parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)}
    first, second = (*words, "", "")[:2]
    is_whole = first not in declared["groups"] and first not in verbs()
    for name, says in declared["groups"].items():
        if is_whole or name == first:
            made = inner[""].add_parser(
                name, help=says, description=f"{says.capitalize()}.", epilog=f"Example: agentsignals {name}"
            )
            add_common(made)
            made.set_defaults(do="groups:run_group")
            inner[name] = made.add_subparsers(dest="of", metavar="VERB", parser_class=Parser)
    for name, about in ((name, declared[name]) for name in verbs()):
        group = _group_of(name)
        is_asked = group == first and (second not in declared or second == name)
        if not (is_whole or is_asked or name == first):
            continue
        lab = installed_lab() if name == "lab" and (with_lab or first == "lab") else None
        made = _verb(inner[group], name, {**about, "masks": masking(name)}, declared["shared"], group)
        made.set_defaults(do=f"{about['module']}:run_{name.replace('-', '_')}")
        if lab is not None:
            of_lab = made.add_subparsers(dest="of", metavar="VERB", required=True, parser_class=Parser)
            for one, says in lab.VERBS.items():
                verb = _verb(of_lab, one, says, lab.SHARED, "lab")
                for argument in says["arguments"]:
                    _add(verb, argument, lab.SHARED)
        else:
            for argument in about["arguments"]:
                _add(made, argument, declared["shared"])
    return parser


def _verb(inner: Any, name: str, about: dict[str, Any], shared: dict[str, Any], group: str) -> argparse.ArgumentParser:
    """Add a verb's parser, with the options of every verb."""
    description = f"{about['help'][:1].upper()}{about['help'][1:]}."
    if about.get("masks"):
        description += f" Privacy: {about['masks']}"
    example = f"Example: {' '.join(filter(None, ('agentsignals', group, name, about['example'])))}"
    made: argparse.ArgumentParser = inner.add_parser(name, help=about["help"], description=description, epilog=example)
    _add(made, "every_verb", shared, is_inner=bool(group))
    return made


def _add(parser: argparse._ActionsContainer, declared: Any, shared: dict[str, Any], *, is_inner: bool = False) -> None:
    """Add an argument as `verbs.json` declares it: itself, the name of shared ones, or options that exclude each other.
    An option without a placeholder and without anything else is a flag. `is_inner`: the verb above has it, too, and
    its value stays where this one is not given."""
    if isinstance(declared, str):
        for one in shared[declared]:
            _add(parser, {**one, "default": argparse.SUPPRESS} if is_inner else one, shared)
    elif isinstance(declared, list):
        group = parser.add_mutually_exclusive_group()
        for one in declared:
            _add(group, one, shared)
    else:
        how = dict(declared)
        words = how.pop("name").split()
        names = [word for word in words if word.startswith("-")] or words[:1]
        if len(words) > len(names):
            how["metavar"] = words[-1]
        elif names[0].startswith("-") and how.keys() <= {"help", "default"}:
            how["action"] = "store_true"
        if "type" in how:
            how["type"] = _TYPES[how["type"]]
        if how.get("action") == "optional":
            how["action"] = argparse.BooleanOptionalAction
        parser.add_argument(*names, **how)


# What leaves by each verb, and how it is masked: one list, which `tests/test_doors.py` walks.
#
# A verb leads out if what it writes is made to be handed on: files, uploads, prompts, and answers that quote many
# sessions. Records and lists of records are shown as they were read: your own terminal is no way out, nor is your page.


class Door(NamedTuple):
    """One way out of a verb."""

    way: str
    """An option, a format or a kind of output; empty for all that the verb prints."""
    masks: str
    """What is masked, as `masking` names it."""


def doors(verb: str) -> list[Door]:
    """Return the ways out of a verb."""
    return [Door(way, masks) for way, masks in declarations()[verb]["leaves"].items()]


def masking(verb: str) -> str:
    """Say what is masked in what a verb writes, for its help."""
    ways: dict[str, list[str]] = {}
    for door in doors(verb):
        ways.setdefault(door.masks, []).append(door.way)
    told = declarations()["masking"]
    return " ".join(
        f"{', '.join(filter(None, names)) or 'Output'}: {told[masks]}."
        for masks, names in ways.items()
        if masks != "no_text"
    )


def doors_table() -> str:
    """Return the ways out of every verb as Markdown."""
    told = declarations()["masking"]
    rows = [
        f"| `{verb}` | {f'`{door.way}`' if door.way else 'output'} | {told[door.masks]} |"
        for verb in sorted(verbs())
        for door in doors(verb)
    ]
    return "\n".join(["| verb | way out | what stands there |", "| --- | --- | --- |", *rows])


def run_completion(options: argparse.Namespace) -> int:
    """Print the script by which a shell completes verbs, options and files (extra `completion`)."""
    from agentsignals.cli.output import json_text

    try:
        import shtab
    except ImportError as problem:
        raise UsageError(
            "Shell completion needs shtab, which is not installed.", f"Install it: {install_command('completion')}"
        ) from problem
    parser = build_parser(with_lab=True)
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
