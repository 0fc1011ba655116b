"""What a repository shows a judge of itself: its name, what it says it is, and what people asked for in it.

The metadata and README that SWE-chat's authors had (design/attribution.md#repository-types) are not in a trace; what
an agent read of them is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from posixpath import splitext

from agentsignals.analysis.rows import WHERE_EACH_LIES
from agentsignals.labels.task import Case, sections
from agentsignals.labels.transcript import Mask, shortened
from agentsignals.labels.units import Unit
from agentsignals.model import RAN, Event, Session
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.views.session import SessionView

NO_REPOSITORY = "no_repository"
"""Why a session is not asked about: it says neither its repository nor its folder."""
PROMPTS, PROMPT_CHARS, ENDINGS = 8, 300, 6
"""The first requests that are shown, by time; the commonest kinds of files, of those that were read or changed. Of a
document the store keeps beginning and end."""
_MANIFESTS = frozenset(("package.json", "pyproject.toml", "cargo.toml", "go.mod", "composer.json", "pom.xml"))
_DEEP = 10**6
_NEVER = 2**63
"""After every time there is."""


def places(store: Store, wanted: set[str]) -> dict[str | None, list[str]]:
    """The sessions of each repository, in order; a folder without a known repository is one. None: of no place."""
    by_place: dict[str | None, list[str]] = {}
    for session_id, place in rows(store, WHERE_EACH_LIES)[1]:
        if session_id in wanted:
            by_place.setdefault(place, []).append(session_id)
    return by_place


def repositories(store: Store, by_place: dict[str, list[str]], limit: int | None, mask: Mask) -> Iterator[Unit]:
    """One unit a repository, in order of their names, whose label holds for all its sessions."""
    chosen = sorted(by_place)[:limit]
    of = {session_id: place for place in chosen for session_id in by_place[place]}
    looks = {place: _Look() for place in chosen}
    for session in store.read(set(of)):
        looks[of[session.session_id]].at(session)
    for place in chosen:
        first, *others = by_place[place]
        yield Unit(
            session_id=first,
            turn=None,
            message=None,
            parts=(looks[place].shown(place, mask),),
            case=Case(),
            also=tuple(others),
        )


class _Look:
    """What was seen of one repository so far: little, however many sessions it has."""

    def __init__(self) -> None:
        self._endings: Counter[str] = Counter()
        self._readme: tuple[int, int, str] = (_DEEP, 0, "")
        self._manifest: tuple[int, int, str] = (_DEEP, 0, "")
        self._prompts: list[tuple[int, str, str]] = []

    def at(self, session: Session) -> None:
        """Looks at one of its sessions."""
        view = SessionView(session)
        results = {event.seq: event for event in session.events if event.kind == "tool_result" and event.text}
        for call in session.tool_calls:
            if call.path and call.class_ in ("read", "edit"):
                self._endings[splitext(call.path)[1].lower()] += 1
            if call.path and call.class_ == "read" and call.status in RAN and call.result_seq in results:
                self._read(call.path.replace("\\", "/"), results[call.result_seq])
        if view.turns:
            first = view.turns[0]
            at = _NEVER if session.started_at is None else session.started_at
            self._prompts = nsmallest(PROMPTS, [*self._prompts, (at, session.session_id, first.text)])

    def _read(self, path: str, result: Event) -> None:
        """Keeps the document nearest to the root, of those the one that was read furthest."""
        name = path.rpartition("/")[2].lower()
        candidate = (path.count("/"), -result.n_chars, result.text or "")
        if name.startswith("readme"):
            self._readme = min(self._readme, candidate)
        elif name in _MANIFESTS:
            self._manifest = min(self._manifest, candidate)

    def shown(self, place: str, mask: Mask) -> str:
        """All of it as one text."""
        parts = [("name", mask(place))]
        common = [ending.removeprefix(".") for ending, _ in _commonest(self._endings) if ending]
        if common:
            parts.append(("kinds-of-files", ", ".join(common)))
        for title, (_, _, text) in {"README": self._readme, "manifest": self._manifest}.items():
            if text:
                parts.append((title, mask(text)))
        asked = [" ".join(shortened(mask(text), PROMPT_CHARS).split()) for _, _, text in self._prompts]
        if any(asked):
            parts.append(("first-requests", "\n".join(f"- {text}" for text in asked if text)))
        return sections(parts)


def _commonest(counted: Counter[str]) -> Iterable[tuple[str, int]]:
    return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:ENDINGS]
