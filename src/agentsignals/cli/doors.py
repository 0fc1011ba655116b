"""What leaves by each verb, and how it is masked: one list, which `tests/test_doors.py` walks.

A verb leads out if what it writes is made to be handed on: files, uploads, prompts, and answers that quote many
sessions. Records and lists of records are shown as they were read: your own terminal is no way out, nor is your page.
"""

from __future__ import annotations

from typing import NamedTuple

RECORD = "the record as it was read, on your screen"
NO_TEXT = "no text of a trace, or names alone, for the person at the terminal"
REDACTED = "secrets, mail addresses and user names are masked in every text, name and id"
STORE = f"{REDACTED}; what any session of the store gives away, wherever it stands bare"
RANDOM = f"{STORE}; what looks random and is no known id"


class Door(NamedTuple):
    """One way out of a verb."""

    way: str
    """An option, a format or a kind of output; empty for all that the verb prints."""
    masks: str


DOORS: dict[str, tuple[Door, ...]] = {
    "agree": (Door("", REDACTED), Door("--settle", STORE)),
    "align": (Door("", REDACTED),),
    "analyze": (Door("--json", REDACTED), Door("--report", STORE), Door("--embedder openai:", REDACTED)),
    "annotate": (Door("", RECORD), Door("--gold", STORE)),
    "attribute": (Door("", NO_TEXT),),
    "audit": (Door("", REDACTED),),
    "collect": (Door("", NO_TEXT),),
    "compare": (Door("", REDACTED), Door("--junit", REDACTED)),
    "completion": (Door("", NO_TEXT),),
    "demo": (Door("", NO_TEXT),),
    "discover": (Door("", NO_TEXT),),
    "doctor": (Door("", NO_TEXT),),
    "drivers": (Door("", REDACTED),),
    "explain": (Door("", RECORD),),
    "export": (
        Door("--to agent_trace", STORE),
        Door("--to atif", STORE),
        Door("--to baseline", NO_TEXT),
        Door("--to hub", RANDOM),
        Door("--to opentraces", STORE),
        Door("--to parquet", STORE),
        Door("--to sts", STORE),
        Door("--to training", STORE),
    ),
    "failures": (Door("", REDACTED),),
    "findings": (Door("", REDACTED), Door("--json", REDACTED), Door("FINDING", REDACTED)),
    "forget": (Door("", NO_TEXT),),
    "formats": (Door("", NO_TEXT),),
    "inventory": (Door("", NO_TEXT),),
    "lab": (Door("", NO_TEXT),),
    "label": (
        Door("--by openai: elsewhere, or with --redact", STORE),
        Door("--export-gold", STORE),
        Door("--export-batch", STORE),
        Door("topic --names openai:", REDACTED),
    ),
    "mcp": (Door("", STORE),),
    "measure": (Door("--embedder openai:", REDACTED),),
    "query": (Door("", RECORD),),
    "receipt": (Door("", REDACTED),),
    "replicate": (Door("", NO_TEXT),),
    "report": (Door(".html", STORE), Door(".md", STORE), Door(".json", STORE)),
    "rules": (Door("", REDACTED),),
    "scan": (Door("", NO_TEXT),),
    "search": (Door("", REDACTED), Door("--json", REDACTED)),
    "serve": (Door("overview, lists, transcripts", RECORD), Door("findings, studies", REDACTED),
              Door("search", REDACTED), Door("--annotate", STORE)),
    "sessions": (Door("", RECORD),),
    "share": (Door("SESSION", RANDOM), Door("--team", NO_TEXT)),
    "show": (Door("", RECORD),),
    "tune": (Door("", NO_TEXT),),
    "validate": (Door("", NO_TEXT),),
    "watch": (Door("", NO_TEXT),),
    "witness": (Door("", REDACTED),),
}  # fmt: skip


def masking(verb: str) -> str:
    """Say what is masked in what a verb writes, for its help."""
    ways: dict[str, list[str]] = {}
    for door in DOORS[verb]:
        ways.setdefault(door.masks, []).append(door.way)
    return " ".join(
        f"{', '.join(filter(None, names)) or 'Output'}: {masks}." for masks, names in ways.items() if masks != NO_TEXT
    )


def table() -> str:
    """Return the list as Markdown."""
    lines = ["| verb | way out | what stands there |", "| --- | --- | --- |"]
    for verb, doors in DOORS.items():
        lines += [f"| `{verb}` | {f'`{door.way}`' if door.way else 'output'} | {door.masks} |" for door in doors]
    return "\n".join(lines)
