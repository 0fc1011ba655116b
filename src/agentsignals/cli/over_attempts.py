"""What verbs that ask about all attempts of eval runs share: their options, their rows, how they answer."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from agentsignals.store import Store

Made = TypeVar("Made")


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--by", metavar="COLUMN", nargs="+", default=[], action="extend",
        help="what makes a candidate: model, agent, a knob (default: treatments that differ)")  # fmt: skip
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions` and `attempts`")
    add("--markdown", action="store_true", help="print Markdown")


def answered(
    options: argparse.Namespace,
    make: Callable[[Store, Sequence[str], str], Made],
    as_text: Callable[..., str],
) -> int:
    """Prints what is made of a store, without keys in it; the verb's exit code."""
    from agentsignals.cli.output import json_text
    from agentsignals.redaction import without_keys_in
    from agentsignals.store import Store

    made = without_keys_in(make(Store(options.store), options.by, options.where))
    print(json_text(made) if options.json else as_text(made, as_markdown=options.markdown))
    return 0
