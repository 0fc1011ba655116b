"""The command line: the parser of `verbs.json`, what leaves by each verb, and the script that completes it in a shell.

`verbs.json` has for every verb the module that runs it, its help, an example, its arguments, and what leaves by it
(`leaves`, masked as `masking` says). An argument has the names and placeholder of its option, and what `argparse`
takes. A name alone stands for arguments that verbs share; a list in the list, for options that exclude each other.
Where the first word names a verb, its parser alone is built and its module alone is loaded.
"""

from __future__ import annotations

import argparse
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from agentsignals import __version__
from agentsignals.errors import UsageError

_EPILOG = (
    "Every verb has --help with an example, and --json for machines. Without a verb: reads what the agents on this"
    " machine keep, and says what stands out."
)
_TYPES: dict[str, Any] = {"int": int, "float": float, "path": Path}
_COMPLETED = {"FILE": "FILE", "SOURCE": "FILE", "GOLD": "FILE", "DIR": "DIRECTORY", "FOLDER": "DIRECTORY"}
"""Metavars of files and folders, and how shtab completes them."""


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


@cache
def declarations(verb: str = "") -> dict[str, Any]:
    """Return `verbs.json` by section. `verb`: its section alone, with those that all share, where there is one."""
    held: dict[str, Any] = json.loads(Path(__file__).with_name("verbs.json").read_bytes())
    if verb not in held:
        return held
    return {name: held[name] for name in held if name in ("masking", "shared", verb) or name.startswith(f"{verb} ")}


def verbs() -> list[str]:
    """Return the verbs, in the order of the help. Those of the lab are named `lab VERB`."""
    return [name for name in declarations() if name not in ("masking", "shared")]


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options of every verb."""
    _add(parser, "every_verb", declarations("analyze")["shared"])


def build_parser(verb: str = "") -> argparse.ArgumentParser:
    """Build the parser of one verb, or of all where none has that name. `docs/cli.md` is made from it."""
    says = "Turns coding-agent traces into facts people act on."
    parser = Parser(prog="agentsignals", description=says, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"agentsignals {__version__}")
    inner: dict[str, Any] = {}
    inner["agentsignals"] = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    declared = declarations(verb)
    for words, about in declared.items():
        if words in ("masking", "shared"):
            continue
        program, _, name = f"agentsignals {words}".rpartition(" ")
        help_ = about["help"]
        description = f"{help_[:1].upper()}{help_[1:]}."
        if masks := masking(words):
            description += f" What leaves: {masks}"
        example = f"Example: {program} {name} {about['example']}".strip()
        made = inner[program].add_parser(name, help=help_, description=description, epilog=example)
        for argument in ("every_verb" if program == "agentsignals" else "every_lab_verb", *about["arguments"]):
            _add(made, argument, declared["shared"])
        if program == "agentsignals":
            made.set_defaults(do=f"{about['module']}:run_{name}")
        if name == "lab":
            inner["agentsignals lab"] = made.add_subparsers(
                dest="of", metavar="WHAT", required=True, parser_class=Parser
            )
    return parser


def _add(parser: argparse._ActionsContainer, declared: Any, shared: dict[str, Any]) -> None:
    """Add an argument as `verbs.json` declares it: itself, the name of shared ones, or options that exclude each other.
    An option without a placeholder and without anything else is a flag."""
    if isinstance(declared, str):
        for one in shared[declared]:
            _add(parser, one, shared)
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
        if how.get("default") == argparse.SUPPRESS:
            how["default"] = argparse.SUPPRESS  # argparse knows it by identity
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
    """Return the ways out of a verb; none of a verb of the lab."""
    return [Door(way, masks) for way, masks in declarations(verb)[verb].get("leaves", {}).items()]


def masking(verb: str) -> str:
    """Say what is masked in what a verb writes, for its help."""
    ways: dict[str, list[str]] = {}
    for door in doors(verb):
        ways.setdefault(door.masks, []).append(door.way)
    told = declarations(verb)["masking"]
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
