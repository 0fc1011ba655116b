"""The plain text in the folders of a trial of Harbor or Terminal-Bench: the reward, the verifier's output, what ended
the trial, the agent's log and terminal.

It means nothing outside a trial. Inside it shows whether the agent and the verifier ran, and which tests ended how.
"""

import posixpath
import re

from agentsignals.formats import Claim, Format
from agentsignals.formats.head import Head

_FOLDERS = frozenset(("agent", "verifier", "panes", "sessions"))
_ENDINGS = (".txt", ".log", ".stdout", ".stderr")
TERMINALS = frozenset(("panes", "sessions"))
EXCEPTION = "exception.txt"
_JUNIT = re.compile(r"<testsuites?\b")


def claims(head: Head) -> Claim | None:
    """Claim a log by its path: it has no form of its own. Diffs and other harnesses' logs have their own readers."""
    folder, name = posixpath.split(head.path)
    if is_recording(head):
        return Claim(keys=[], companion=True)
    if head.looks_like_json and (head.records or posixpath.basename(folder) not in TERMINALS):
        return None  # a stream or a document, which has its own reader
    if name.endswith(".xml"):
        return Claim(keys=[], companion=True) if _JUNIT.search(head.text[:2_048]) else None
    inner, above = posixpath.basename(folder), posixpath.basename(posixpath.dirname(folder))
    in_place = (inner in _FOLDERS or above == "agent") and name.endswith(_ENDINGS)
    if not in_place and name != EXCEPTION:
        return None
    from agentsignals.formats import patch, subq_eval_log, swe_bench_text  # noqa: PLC0415  (for such logs only)

    if any(other.claims(head) is not None for other in (patch, subq_eval_log, swe_bench_text)):
        return None
    return Claim(keys=[], companion=True)


def is_recording(head: Head) -> bool:
    """Return whether a file is a recording of asciinema: a header with the size of the screen, then events as lists."""
    header = next(iter(head.records), {})
    size = header.get("term") if header.get("version") == 3 else header
    is_sized = isinstance(size, dict) and (size.keys() >= {"width", "height"} or size.keys() >= {"cols", "rows"})
    return is_sized and header.get("version") in (2, 3)


FORMAT = Format(name="harbor-log", version=3, claims=claims, of_json=None, snapshots=False)
