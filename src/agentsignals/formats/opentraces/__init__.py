"""OpenTraces records (schema 0.1 to 0.9; design/formats.md#small-formats): one enriched session a line.

No real rows were found: what is read follows the published schema.
"""

from agentsignals.formats import Claim, Format, pieces_by
from agentsignals.formats.records import CUT, Head

_KEYS = ("trace_id", "agent", "steps")


def claims(head: Head) -> Claim | None:
    """`schema_version`, `trace_id`, an `agent` with a name, and `steps` that have an index and a role."""
    document = head.document
    if not all(k in document for k in _KEYS) or not isinstance(document.get("schema_version"), str):
        return None
    steps = document["steps"]
    are_steps = isinstance(steps, list) and all(isinstance(s, dict) and "role" in s for s in steps[:1])
    if not isinstance(document["trace_id"], str) or not (steps is CUT or are_steps):
        return None
    # Copies of a session in another file are read together with it.
    records = head.records or [head.document]
    return Claim(keys=[f"session:{r.get('session_id') or r.get('trace_id')}" for r in records])


FORMAT = Format(
    name="opentraces", marks=(b'"trace_id"',), version=5, claims=claims, pieces=pieces_by("opentraces.reader")
)
