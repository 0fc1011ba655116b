"""Sessions that a program began: the paper leaves out what bots made and prints no rule; this is ours."""

from __future__ import annotations

import re
from collections import defaultdict

from agentsignals.model import Label
from agentsignals.store import Store, label_files
from agentsignals.store.label_files import LabelRow

TASK, LABELLER = "machine_prompts", "collection"
REPEATED = 3
"""So many sessions of one repository that begin with the same long words were begun by a program
(design/attribution.md#topics-of-swe-chat has a
cluster of such prompts)."""
_LONG_CHARS = 80
"""People repeat short prompts ("continue", "commit this")."""
_COMPARED_CHARS = 400
_VARYING = re.compile(r"[\d\s]+")
"""Numbers, dates and white space, which a program fills in."""


def find(prompts: dict[str, str]) -> set[str]:
    """The sessions, of these with their first prompts, that share a long beginning with enough others."""
    alike: dict[str, set[str]] = defaultdict(set)
    for session_id, text in prompts.items():
        plain = _VARYING.sub(" ", text[:_COMPARED_CHARS]).strip()
        if len(plain) >= _LONG_CHARS:
            alike[plain].add(session_id)
    return {session_id for group in alike.values() if len(group) >= REPEATED for session_id in group}


def marked(store: Store) -> frozenset[str]:
    """The sessions that are labelled so, of all repositories."""
    return frozenset(row.session_id for row in label_files.of_task(store.folder, TASK, LABELLER))


def mark(store: Store, sessions: set[str]) -> set[str]:
    """Labels those of a repository's sessions that a program began, and names them."""
    from agentsignals.store.shards import first_prompts  # noqa: PLC0415  (pyarrow is loaded when asked)

    stored = store.manifest.sessions
    prompts: dict[str, str] = {}
    for shard in sorted({stored[s].shard for s in sessions if s in stored} & set(store.whole("turns"))):
        prompts |= {s: text for s, text in first_prompts(store.folder, shard).items() if s in sessions and text}
    marked = find(prompts)
    reason = f"begins like {REPEATED} sessions or more of its repository"
    rows = [
        LabelRow(s, Label(task=TASK, labeller=LABELLER, turn=None, value="yes", reason=reason)) for s in sorted(marked)
    ]
    if rows or label_files.of_task(store.folder, TASK, LABELLER):
        label_files.replace(store.folder, TASK, LABELLER, sessions, rows)
    return marked
