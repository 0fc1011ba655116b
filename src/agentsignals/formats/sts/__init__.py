"""STS conversations (design/formats.md#small-formats), the Hub's simple format for traces: a header, then a line a
message."""

from agentsignals.formats import Claim, Format
from agentsignals.formats.records import Head


def claims(head: Head) -> Claim | None:
    """Recognise a header of type `session` with a `harness`. Without one it is Pi's."""
    records = head.records
    header = next((r for r in records if r.get("type") == "session"), None)
    if header is None or not isinstance(header.get("harness"), str):
        return None
    if any("parentUuid" in r for r in records):
        return None
    session_id = header.get("id")
    return Claim(keys=[f"session:{session_id}"] if isinstance(session_id, str) and session_id else [])


FORMAT = Format(name="sts", marks=(b'"harness"',), version=5, claims=claims)
