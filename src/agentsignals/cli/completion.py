"""`completion`: verbs, options, files at the press of a tab. The only place that knows shtab (extra `completion`)."""

from __future__ import annotations

import argparse

from agentsignals.cli.verb import Verb

_SHELLS = ("bash", "zsh")
_FILES = {"FILE": "FILE", "SOURCE": "FILE", "GOLD": "FILE", "DIR": "DIRECTORY", "FOLDER": "DIRECTORY"}
"""What a file or folder is called in help, and how shtab completes it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SHELLS, help="whose script it is to be")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli import build_parser
    from agentsignals.cli.output import json_text
    from agentsignals.errors import UsageError

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
        elif str(action.metavar) in _FILES:
            action.complete = getattr(shtab, _FILES[str(action.metavar)])  # type: ignore[attr-defined]  # shtab's own
        elif not action.option_strings and not action.choices:
            # Anything may stand there: without a word on it zsh completes no option behind such a verb.
            action.complete = {"zsh": "( )"}  # type: ignore[attr-defined]  # shtab's own


VERB = Verb(
    "completion",
    "the script that has a shell complete verbs, options and files",
    "completion bash > ~/.local/share/bash-completion/completions/agentsignals",
    arguments,
    run,
)
