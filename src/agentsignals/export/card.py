"""The card of a data set: what it holds, who may use it, how it was made. The Hub and `datasets` read its head."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

if TYPE_CHECKING:
    from agentsignals.store import Store

UNKNOWN_LICENCE = "unknown"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


class Contents(Struct, kw_only=True):
    """What a data set holds, for its card."""

    title: str
    licence: str | None
    tables: dict[str, int]
    """Rows of each table that has any."""
    transcripts: int
    """Files of conversations."""
    transcript_kind: str
    agents: list[tuple[str, int]]
    """Agents and their sessions."""
    models: list[tuple[str, int]]
    formats: list[tuple[str, int]]
    sources: list[str]
    """Data sets the sessions came from."""
    masked: dict[str, int] | None
    loses: list[str] = field(default_factory=list)


def card(contents: Contents) -> str:
    """The README of the data set's folder."""
    return f"---\n{_head(contents)}---\n\n{_body(contents)}"


def configs(contents: Contents) -> list[dict[str, Any]]:
    """What `load_dataset` offers: a configuration a table, the sessions first; transcripts are files, not rows."""
    names = sorted(contents.tables, key=lambda n: (n != "sessions", n))
    return [
        {"config_name": n, "data_files": [{"split": "train", "path": f"data/{n}.parquet"}]}
        | ({"default": True} if n == "sessions" else {})
        for n in names
    ]


def _head(contents: Contents) -> str:
    rows = contents.tables.get("sessions", 0)
    tags = ["agent-traces", "coding-agents", "agentsignals", *(["format:agent-traces"] if contents.transcripts else [])]
    facts = {
        "pretty_name": contents.title,
        "license": contents.licence or UNKNOWN_LICENCE,
        "tags": tags,
        "size_categories": [size(rows)],
        "configs": configs(contents),
    }
    return head(facts)


def size(rows: int) -> str:
    """How many rows there are, in the Hub's words."""
    return next((name for limit, name in _SIZES if rows < limit), "1M<n<10M")


def head(facts: dict[str, Any]) -> str:
    """Facts as YAML, for the card's head."""
    return "".join(_yaml(name, value) for name, value in facts.items())


def _yaml(name: str, value: Any) -> str:
    """A key and its value; values as JSON, which YAML reads as its own, so that no word of theirs is read as more."""
    if isinstance(value, list):
        return f"{name}:\n" + "".join(f"- {json.dumps(v)}\n" for v in value)
    return f"{name}: {json.dumps(value)}\n"


def _body(contents: Contents) -> str:
    return "\n".join(
        [
            f"# {plain(contents.title)}",
            "",
            "Sessions of coding agents with what was measured in them, made by agentsignals "
            f"{version('agentsignals')}.",
            "",
            "## What is in it",
            "",
            *in_rows(("table", "rows"), sorted(contents.tables.items())),
            "",
            *_transcripts(contents),
            "",
            *in_rows(("agent", "sessions"), contents.agents),
            "",
            *in_rows(("model", "sessions"), contents.models),
            "",
            *in_rows(("format as found", "sessions"), contents.formats),
            "",
            "## Loading it",
            "",
            "```python",
            "from datasets import load_dataset",
            "",
            'sessions = load_dataset("OWNER/NAME", "sessions", split="train")',
            "```",
            "",
            "Times are UTC. Main figures of a session are of its main thread; subagents stand beside, in columns of",
            "their own. A value that is missing has a row in `signals` whose `absent` says why; it is never 0.",
            "",
            *closing(contents.licence, contents.sources, contents.masked),
        ]
    )


def closing(licence: str | None, sources: list[str], masked: dict[str, int] | None) -> list[str]:
    """How every card ends."""
    return ["## Licence", "", *_licence(licence, sources), "", "## What was masked", "", *_masked(masked), ""]


def sources_of(store: Store, ids: Collection[str]) -> list[str]:
    """The published data sets that sessions came from."""
    families = {store.manifest.sessions[i].family for i in ids}
    files = store.manifest.files.values()
    return sorted({e.spec for e in files if e.family in families and e.spec.startswith("hub:")})


def _transcripts(contents: Contents) -> list[str]:
    if not contents.transcripts:
        return ["It holds no conversations as files; the words are in `events` and `turns`."]
    kind = "in the session trace simple format" if contents.transcript_kind == "sts" else "as they were found"
    lines = [f"`transcripts/` holds {contents.transcripts:,} files, {kind}."]
    return [*lines, "", "They can't say:", "", *(f"- {loss}" for loss in contents.loses)] if contents.loses else lines


def _licence(licence: str | None, sources: list[str]) -> list[str]:
    """Who may use it. `sources`: data sets that the sessions came from."""
    lines = (
        [f"`{plain(licence)}`, as whoever made this data set says."]
        if licence
        else ["Not stated. Without a licence nobody but their authors may pass these texts on."]
    )
    if sources:
        lines += ["", "Sessions were taken from data sets that have licences of their own:", ""]
        lines += [f"- `{plain(s)}`" for s in sources]
    return lines


def _masked(masked: dict[str, int] | None) -> list[str]:
    """What was masked, by kind; None where nothing was looked for."""
    if masked is None:
        return ["Nothing: texts stand as they were found."]
    method = "Keys, passwords, mail addresses and names in home folders were looked for by their shapes, in every text."
    if not masked:
        return [method, "None was found."]
    return [
        method,
        "A secret that looks like prose passes. Users, mail addresses, telephones and addresses of machines have",
        "pseudonyms: the same for the same in all that the exporting machine gives away. Others have a word a kind.",
        "",
        *in_rows(("kind", "times"), sorted(masked.items())),
    ]


def in_rows(names: tuple[str, str], rows: Iterable[tuple[str, int]]) -> list[str]:
    """Counts as a table of two columns."""
    lines = [f"| {plain(str(name))} | {n:,} |" for name, n in rows]
    return [f"| {names[0]} | {names[1]} |", "| --- | ---: |", *lines]


def plain(text: str) -> str:
    """A word of a trace as words: no markup, no line of its own."""
    flat = " ".join(text.split())[:200]
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in flat if c.isprintable())
