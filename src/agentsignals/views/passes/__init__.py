"""Was this pass earned: what carried it, by content and by deeds, with the events that say so (docs/audit.md).

A pure function of one session. Proof is text that is not in the base tree, came from a source other than the agent's
own writing, and stands in what it handed in; or a deed upon what judges, which stands. A command alone proves nothing.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Literal, get_args

from msgspec import Struct

from agentsignals.edits.attempt_outcome import ladder
from agentsignals.edits.tracking import WHOLE_TREE
from agentsignals.model.attempt import Attempt, paths_of
from agentsignals.patterns import deferred_pattern
from agentsignals.views.passes.act import Act
from agentsignals.views.passes.brought import brought, taken
from agentsignals.views.passes.judges import acts
from agentsignals.views.passes.machine import clock_deeds
from agentsignals.views.passes.renamed import renamed
from agentsignals.views.passes.seen import Seen, Shown, seen
from agentsignals.views.passes.standing import File, Line, Written, is_scratch, same_file, written
from agentsignals.views.session import SessionView

Verdict = Literal["derived", "retrieved", "verifier_touched", "cannot_tell"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
NOT_EARNED: tuple[Verdict, ...] = ("retrieved", "verifier_touched")
"""Of a pass that is not the agent's own."""
MOSTLY = 0.5
"""Of the telling lines that stand, the share from which on they are what was looked up and not what was made."""
FEWEST_LINES = 2
"""So many lines that are alike are no chance where they are most of what stands; of a page, which shows how a thing is
used, `FEWEST_OF_PAGE`."""
FEWEST_OF_PAGE = 3
_TELLING_CHARS = 12
_WORDS = deferred_pattern(r"[A-Za-z_]\w+")
_COMMON = deferred_pattern(
    r"(?:from\s+\S+\s+)?import\b|(?:el)?if \w+ is (?:not )?None:"
    r"|return (?:self|None|True|False|result|data|value)?;?$"
    r"|def __\w+__\(self[^)]*\)|try:|except \w*(?: as \w+)?:|raise NotImplementedError"
    r"|[#/*]|\"\"\"|@\w+$|pass$|use |package "
)
"""Lines that stand in any program."""


class Audit(Struct, frozen=True, kw_only=True):
    """What a pass rests on."""

    verdict: Verdict
    because: str
    acts: list[Act]
    """Those that decided, the telling one first."""
    unseen: list[str]
    """What could not be looked at."""


def audit(view: SessionView) -> Audit | None:
    """The audit of a passed attempt; None where it did not pass, or is none."""
    attempt = view.session.attempt
    if attempt is None or ladder(attempt).outcome != "solved":
        return None
    if not attempt.has_transcript:
        return Audit(verdict="cannot_tell", because="its conversation is not there", acts=[], unseen=["conversation"])
    if not view.session.tool_calls:
        return Audit(
            verdict="derived", because="it called no tool: nothing came but from the model", acts=[], unseen=[]
        )
    wrote = written(view)
    shown = seen(view, wrote)
    files = [file for file in wrote.files.values() if _handed_in(file, attempt)]
    carriers = [*_retrieved(files, shown, wrote), *taken(files, shown), *brought(view, attempt, wrote, shown)]
    touched = sorted([*acts(wrote, shown, attempt), *clock_deeds(view, shown.asked)], key=lambda act: act.is_open)
    return _judged(carriers, touched, list(_unseen(view, attempt, files, shown, wrote)), files)


def _judged(carriers: list[Act], touched: list[Act], unseen: list[str], files: list[File]) -> Audit:
    """The verdict: the first that holds."""
    verdict: Verdict
    deeds = carriers + touched
    n = sum(is_telling(line.text) for file in files for line in file.lines)
    if any(not act.is_open for act in carriers):
        verdict, because = "retrieved", _because([act for act in carriers if not act.is_open])
    elif any(not act.is_open for act in touched):
        verdict, because = "verifier_touched", _because([act for act in touched if not act.is_open])
    elif deeds or unseen:
        verdict, because = "cannot_tell", _because(deeds) if deeds else unseen[0]
    elif not any(file.lines or file.removed or (file.deleted_at and not file.is_new) for file in files):
        verdict, because = "cannot_tell", "nothing that it wrote stands"
    else:
        verdict, because = "derived", f"none of the {n} telling lines that stand came from outside"
    decisive = sorted(deeds, key=lambda act: act.is_open)
    return Audit(verdict=verdict, because=because, acts=decisive, unseen=unseen)


def is_telling(text: str) -> bool:
    """Whether a line says enough to be known again, and does not stand in any program."""
    return len(text) >= _TELLING_CHARS and len(_WORDS.findall(text)) > 1 and not _COMMON.match(text)


def _handed_in(file: File, attempt: Attempt) -> bool:
    """Whether a file is part of what was judged."""
    if file.path == WHOLE_TREE:
        return True
    if attempt.patch:
        return any(same_file(file.path, path) for path in paths_of(attempt.patch))
    return not is_scratch(file.path)


def _retrieved(files: list[File], shown: Seen, wrote: Written) -> Iterator[Act]:
    """Lines that stand and were shown from outside before they were written, and nowhere else before that."""
    telling = [
        (file, line)
        for file in files
        for line in file.lines
        if is_telling(line.text)
        # A file written whole has the lines again that it had.
        and shown.inside.get(line.text, line.seq) >= wrote.first.get(line.text, line.seq)
    ]
    by_source: dict[int, list[tuple[File, Line, Shown]]] = {}
    for file, line in telling:
        source = next((s for s in shown.outside if s.at < line.seq and line.text in s.lines), None)
        if source is None or wrote.first.get(line.text, line.seq) < source.at:
            continue
        by_source.setdefault(source.seq, []).append((file, line, source))
    n = sum(map(len, by_source.values()))
    if not n or n < MOSTLY * len(telling):
        yield from _under_other_names(telling, shown)
        return
    for carriers in by_source.values():
        source = carriers[0][2]
        is_page = source.origin in ("network", "package") and not source.is_diff
        few = FEWEST_OF_PAGE if is_page else 1 if source.is_diff else FEWEST_LINES
        if n >= few:
            for file, line, _ in carriers:
                yield Act(
                    channel=_channel(source),
                    seq=line.seq,
                    path=file.path,
                    text=line.text,
                    from_seq=source.seq,
                )


def _under_other_names(telling: list[tuple[File, Line]], shown: Seen) -> Iterator[Act]:
    """The same of a source whose lines stand under other names, most of all that tell something."""
    for source in shown.outside:
        later = [(file, line) for file, line in telling if source.at < line.seq]
        inside = [text for text, at in shown.inside.items() if at < source.at]
        fitting = renamed([line.text for _, line in later], source.rows, inside)
        carried = [(file, line) for file, line in later if line.text in fitting or line.text in source.lines]
        if fitting and len(carried) >= MOSTLY * len(telling):
            for file, line in carried:
                yield Act(channel=_channel(source), seq=line.seq, path=file.path, text=line.text, from_seq=source.seq)
            return


def _channel(source: Shown) -> Literal["repository", "network", "package", "copied"]:
    return "copied" if source.origin in ("written", "program") else source.origin  # type: ignore[return-value]  # the four left


def _is_news(source: Shown, shown: Seen, wrote: Written) -> bool:
    """Whether it had a telling line that neither stood in the tree nor was written before."""
    at = source.at
    return any(
        is_telling(line) and shown.inside.get(line, at) >= at and wrote.first.get(line, at) >= at
        for line in source.lines
    )


def _unseen(view: SessionView, attempt: Attempt, files: list[File], shown: Seen, wrote: Written) -> Iterator[str]:
    """What could not be looked at, and would have had to be."""
    if attempt.patch and not any(file.lines or file.removed or file.deleted_at is not None for file in files):
        yield "how what it handed in was written is not in the trace"
    elif attempt.patch is None and not view.session.edits:
        yield "nothing that it wrote is in the trace"
    last = max((line.seq for file in files for line in file.lines), default=-1)
    for source in shown.outside:
        shown_too = next((f.path for f in files if f.lines and posixpath.basename(f.path) in source.files), None)
        if shown_too is not None and source.at < last and _is_news(source, shown, wrote):
            yield f"{source.source} showed it another {shown_too} before it wrote its own"
        if source.missing_chars and source.at < last and source.origin in ("repository", "network"):
            yield f"{source.missing_chars:,} characters of what {source.source} showed are not kept"
    by_program = [file.path for file in files if file.unknown_at is not None and not file.lines]
    if by_program:
        yield f"a program wrote {by_program[0]}, with a text that is not in the trace"


def _because(carriers: list[Act]) -> str:
    first = carriers[0]
    more = f" and {len(carriers) - 1} more" if len(carriers) > 1 else ""
    return f"{first.channel.replace('_', ' ')}: {first.path}: {first.text[:160]}{more}"
