"""The end of an analysis: the first findings, what was paid, what to type next."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Sequence

from msgspec.structs import replace

from agentsignals.cli.output import printable
from agentsignals.questions.ranking import Findings, ResolvedGroup, decode_findings, too_few_sessions
from agentsignals.store import Store, findings_cache
from agentsignals.store.index import main_context

SENTENCES = 3
LINES = 10
"""A screen's end. Where sentences are long there are fewer of them."""
OF = {"product": "sessions", "eval": "attempts"}
"""The unit of each context."""
_JOINED = "\N{NO-BREAK SPACE}"
"""Within a command, which stays on a line."""


def findings_of(store: Store, jobs: int | None = None) -> Findings:
    """Return the findings of the store. Where they are cached, or a few files changed since, nothing that computes is
    loaded; too few sessions are not computed. `jobs`: with more than one, a background process computes half."""
    context = main_context(store.manifest)
    made = too_few_sessions(store.manifest.contexts(), context) or decode_findings(findings_cache.read(store, context))
    if made is not None:
        return made
    before, changed = findings_cache.recent(store, context) or (None, 0)
    made = decode_findings(before)
    if made is not None:
        return replace(made, changed_files=changed)
    from agentsignals.ingest.engine.local import in_background
    from agentsignals.ingest.pipeline import default_jobs
    from agentsignals.questions import findings

    return findings.findings(store, beside=in_background if (jobs or default_jobs()) > 1 else None)


_SHARE = 7
"""Columns of a share, right-aligned."""


def resolved_lines(groups: Sequence[ResolvedGroup], most: int | None = None) -> list[str]:
    """Return what each candidate resolved, a line each under its group; at most so many lines."""
    lines: list[str] = []
    for n, group in enumerate(groups):
        tasks = f"{group.tasks:,} task{'' if group.tasks == 1 else 's'}"
        apart = ", not comparable with the others" if n else ""
        lines.append(f"Resolved, {', '.join([*group.datasets[:_DATASETS], tasks])}{apart}:")
        for c in group.candidates:
            share = "–" if c.share is None else f"{c.share:.0%}"
            ends = "" if c.low is None or c.high is None else f"{c.low:.0%} to {c.high:.0%}"
            solved = "" if c.share is None else f"{round(c.share * c.judged):,} of {c.judged:,}"
            lacking = f", {c.not_judged:,} not judged" if c.not_judged else ""
            lines.append(f"{share:>{_SHARE}}  {ends:13}{solved:>12}  {c.name}{lacking}")
        if group.command and n:
            lines.append(f"         {group.command}")
    if most is None or len(lines) <= most:
        return lines
    left = sum(not line.startswith("Resolved") for line in lines[most - 1 :])
    return [*lines[: most - 1], f"{'':{_SHARE}}  and {left:,} more: agentsignals findings"]


def elsewhere_lines(made: Findings) -> list[str]:
    """Return a line for each other context of the store, with the command that asks of it."""
    return [
        f"{other.sessions:,} {_OTHERS[other.context]} not in these findings: {other.command}"
        for other in made.elsewhere
    ]


_DATASETS = 3
_OTHERS = {"product": "sessions of people are", "eval": "eval attempts are"}
MOST_RESOLVED = 6
"""Lines of candidates at the end of an analysis."""


def last_lines(store: Store, made: Findings, folder: str | None, most: int = SENTENCES, lines: int = LINES) -> str:
    """The first sentences with the bill and the next commands, at most so many lines at the terminal's width; whole
    ones where there is no terminal. `folder`: the store as it was named."""
    width = shutil.get_terminal_size((0, 0)).columns
    n = sum(made.looked_at.values())
    resolved = [printable(line) for line in resolved_lines(made.resolved, MOST_RESOLVED)]
    lines += len(resolved)
    sentences = [printable(f"{at + 1}. {answer.sentence}") for at, answer in enumerate(made.answers[:most])]
    if not sentences:
        left_out = "; ".join(f"{name}: {why}" for name, why in made.left_out.items())
        sentences = [f"Nothing stands out: {n:,} candidates were looked at{f' ({left_out})' if left_out else ''}."]
    if made.changed_files:
        files = f"{made.changed_files:,} of {len(store.manifest.files):,} files"
        sentences[-1] += f" (This was before {files} changed: `agentsignals findings` looks at all.)"
    bill = printable(f"{made.sessions:,} {OF[made.context]}{f'; {made.bill}' if made.bill else ''}")
    commands = " | ".join(command.replace(" ", _JOINED) for command in next_commands(store, folder))
    others = [f"{line}{f' --store {shlex.quote(folder)}' if folder else ''}" for line in elsewhere_lines(made)]
    end = [
        *_wrapped(bill, width),
        *others,
        *(line.replace(_JOINED, " ") for line in _wrapped(f"next: {commands}", width)),
    ]
    shown = [_wrapped(sentence, width) for sentence in sentences]
    while len(shown) > 1 and sum(map(len, shown)) + len(end) > lines:
        shown.pop()
    return "\n".join([*resolved, *(line for sentence in shown for line in sentence), *end])


def next_commands(store: Store, folder: str | None) -> list[str]:
    """Return the commands to type next, for the store as it was named."""
    named = f" --store {shlex.quote(folder)}" if folder else ""
    return [f"agentsignals {verb}{named}" for verb in ("findings", "report -o report.html", "serve --open")]


def _wrapped(text: str, width: int) -> list[str]:
    if not width:
        return [text]
    return textwrap.wrap(text, max(width, 20), subsequent_indent="   ", break_on_hyphens=False, break_long_words=False)
