"""Inspect logs written as one JSON document (design/formats.md#inspect)."""

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats.head import CUT, Head
from agentsignals.formats.inspect import keys_of

_STATUS = frozenset(("started", "success", "cancelled", "error"))


def claims(head: Head) -> Claim | None:
    """Claim `version`, `status` and an `eval` that names its task and model."""
    document = head.document
    spec, status = document.get("eval"), document.get("status")
    if not isinstance(status, str) or status not in _STATUS or "version" not in document:
        return None
    if spec is CUT:
        return Claim(keys=[])
    if not isinstance(spec, dict) or not isinstance(spec.get("task"), str) or "model" not in spec:
        return None
    return Claim(keys=keys_of(spec.get("task_id")))


FORMAT = Format(name="inspect-json", marks=(b'"eval"',), version=4, claims=claims, read=read_by("inspect.reader"))
