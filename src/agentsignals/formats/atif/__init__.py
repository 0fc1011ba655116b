"""ATIF trajectories, 1.0 to 1.7 (design/formats.md#harbor-and-atif): one JSON document an agent run, compactions in
files of their own."""

from __future__ import annotations

import posixpath

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats.atif.profile import PROFILE
from agentsignals.formats.head import Head


def claims(head: Head) -> Claim | None:
    """Only ATIF names its version so. Files of one run share its session id, or at least their folder."""
    version = head.document.get("schema_version")
    if not isinstance(version, str) or not version.startswith("ATIF-"):
        return None
    session_id = head.document.get("session_id")
    keys = [f"session:{session_id}"] if isinstance(session_id, str) and session_id else []
    return Claim(keys=keys, root=posixpath.dirname(head.path))


FORMAT = Format(name="atif", version=4, claims=claims, read=read_by("atif.files"), profile=PROFILE)
