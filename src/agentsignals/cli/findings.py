"""`findings`: the few sentences that matter, and what stands behind each."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.questions.ranking import Answer, Findings
    from agentsignals.store import Store

_ROWS = 20
"""Of the evidence; --json has all."""
_MOST_ROWS = 10_000


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("id", metavar="FINDING", nargs="?", help="one of them, with the events, files and lines that it rests on")
    add("--context", choices=("product", "eval"), help="of people's sessions, or of eval runs, alone")
    add("--effect", type=float, metavar="SHARE", help="the least share of the whole that is said (default 0.05)")
    add("--sureness", type=float, metavar="SHARE", help="how sure it has to be, 0 to 1 (default 0.33)")
    add("--rate", type=float, metavar="SHARE", help="of what is said, how much may be wrong by chance (default 0.05)")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.errors import UsageError
    from agentsignals.questions import findings
    from agentsignals.questions.ranking import Bounds
    from agentsignals.store import Store

    chosen = {"effect": options.effect, "sureness": options.sureness, "false_discoveries": options.rate}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if any(not 0 <= value <= 1 for value in chosen.values()):
        raise UsageError("A bound is a share.", "Give a number from 0 to 1.")
    store = Store(options.store)
    if options.id is not None:
        return _evidence(store, options)
    made = findings.findings(store, options.context, Bounds(**chosen))
    print(json_text(made) if options.json else text(made))
    return 0


def text(made: Findings) -> str:
    """The list as lines: what was looked at, the sentences, how sure."""
    from agentsignals.cli.first_findings import OF
    from agentsignals.cli.output import printable

    n = sum(made.looked_at.values())
    lines = [f"{made.sessions:,} {OF[made.context]}{f'; {made.bill}' if made.bill else ''}"]
    for at, answer in enumerate(made.answers):
        lines += ["", f"{at + 1}. {answer.sentence}", *(f"   {line}" for line in _below(answer))]
    questions = ", ".join(name.replace("_", " ") for name in made.looked_at)
    if not made.answers:
        lines += ["", f"Nothing stands out from your other sessions. Looked at: {questions}."]
    lines += [
        "",
        f"{n:,} candidates were looked at; of those said at most {made.bounds.false_discoveries:.0%} are expected to be"
        f" wrong by chance; nothing below {made.bounds.effect:.0%} of the whole is said.",
        *(f"left out: {name}: {why}" for name, why in made.left_out.items()),
    ]
    return "\n".join(printable(line) for line in lines)


def _below(answer: Answer) -> list[str]:
    """What to do, how sure, and how to see it."""
    from agentsignals.ui.document import sure_of

    return [*([answer.do] if answer.do else []), sure_of(answer).lower(), answer.again]


def _evidence(store: Store, options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text, printable, table
    from agentsignals.questions import findings
    from agentsignals.redaction import without_keys_in
    from agentsignals.store.query import rows

    answer = findings.answer(store, options.id, options.context)
    names, evidence = rows(store, f"SELECT * FROM ({answer.cause}) LIMIT {_MOST_ROWS}", options.context)  # noqa: S608  (ours, its values quoted)
    answer = without_keys_in(answer)
    if options.json:
        held = [dict(zip(names, row, strict=True)) for row in without_keys_in(evidence)]
        print(json_text({"finding": answer, "evidence": held}))
        return 0
    lines = [answer.question, answer.sentence, *_below(answer)[:-1], f"mind: {answer.caveat}"]
    lines += [f"agentsignals show {session_id}" for session_id in answer.sessions]
    print("\n".join(printable(line) for line in lines))
    print(table(names, without_keys_in(evidence[:_ROWS]), 60))
    if len(evidence) > _ROWS:
        print(f"the first {_ROWS} of {len(evidence):,} rows; --json has them all")
    return 0


VERB = Verb(
    "findings", "the few sentences that matter, ranked, each with what stands behind it", "findings", arguments, run
)
