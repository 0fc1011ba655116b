"""Exposure of sessions to rules, from the repository's history, the agent's habits and the trace. A text held in
the trace itself outranks the history: the agent was given it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from agentsignals.changes.git import Version
from agentsignals.formats import profiles
from agentsignals.model import Session
from agentsignals.repositories.rules import Document, Extracted, Rule, extract, matching, read

if TYPE_CHECKING:
    from agentsignals.formats.profile import Profile

Level = Literal["yes", "perhaps", "no", "unknown"]
State = Literal["exposed", "before", "withdrawn", "elsewhere", "unknown"]
"""In force; not yet; no longer; not for this agent or this folder; nobody can tell."""


class Exposure(Struct, frozen=True):
    """A rule's exposure in a session, with the reason."""

    state: State
    why: str
    seq: int | None = None


class Presence(Struct, frozen=True):
    """One version of a file, as far as one rule goes."""

    authored_at: int
    arrived_at: int
    sha: str
    rule: Rule | None


class Stated(Struct, kw_only=True):
    """A rule of a file over all the file's versions."""

    path: str
    key: str
    rule: Rule
    """As the last version that has it states it."""
    history: list[Presence] = field(default_factory=list)
    """Oldest first; empty of one that only traces show."""
    globs: tuple[str, ...] = ()
    is_optional: bool = False
    place: str | None = None
    """Where its sessions lie, of one that only traces show."""

    @property
    def folder(self) -> str:
        """The folder it holds for, with a slash behind; empty for the repository's root. Of a file that an agent keeps
        in a folder of its own (`.cursor/rules`), the folder around that."""
        parts = posixpath.dirname(self.path).split("/")
        end = next((n for n, part in enumerate(parts) if part in _own_folders()), len(parts))
        folder = "/".join(parts[:end])
        return f"{folder}/" if folder else ""

    @property
    def introduced(self) -> Presence | None:
        return next((version for version in self.history if version.rule is not None), None)

    @property
    def withdrawn(self) -> Presence | None:
        """The version that took it out for good."""
        last = next((n for n, v in reversed(list(enumerate(self.history))) if v.rule is not None), -1)
        return self.history[last + 1] if 0 <= last < len(self.history) - 1 else None


class Shown(Struct, frozen=True):
    """The text of an instruction file in a trace."""

    name: str
    seq: int
    keys: dict[str, Rule]
    others: int
    is_whole: bool
    """All of what the agent was given stands there."""


@cache
def _own_folders() -> frozenset[str]:
    return frozenset(pattern.split("/")[0] for pattern in patterns() if "/" in pattern)


@cache
def _asked(text: str) -> tuple[Document, Extracted]:
    document = read(text)
    return document, extract(document)


def shown_in(session: Session) -> list[Shown]:
    """The instruction files whose text a session's trace holds: logged as given, or read by the agent."""
    made = []

    def show(name: str, seq: int, text: str, is_whole: bool) -> None:
        extracted = _asked(text)[1]
        made.append(Shown(name, seq, {rule.key: rule for rule in extracted.rules}, extracted.others, is_whole))

    for name, pattern in {pair for profile in _profiles(session.agent) for pair in profile.instructions_logged}:
        for event in session.events:
            match = re.match(pattern, (event.text or "").lstrip(), re.DOTALL) if event.kind == "meta" else None
            if match:
                show(name, event.seq, match["text"], True)
    names = set(map(posixpath.basename, patterns()))
    for call in session.tool_calls:
        path = call.path or ""
        if call.class_ == "read" and call.result_seq is not None and posixpath.basename(path) in names:
            text = session.events[call.result_seq].text or ""
            show(path, call.seq, re.sub(r"(?m)^\s*\d+[→\t|:] ?", "", text), False)
    return sorted(made, key=lambda shown: shown.seq)


@cache
def _profiles(agent: str) -> tuple[Profile, ...]:
    return tuple(p for p in profiles() if agent in (p.agent, *p.aliases))


@cache
def patterns() -> tuple[str, ...]:
    """Every pattern of an instruction file that any agent reads."""
    return tuple(sorted({p for of in profiles() for p in (*of.instructions, *of.instructions_perhaps)}))


def reads(agent: str, path: str, taken_in_by: Iterable[tuple[str, bool]] = ()) -> Level:
    """Return how surely an agent reads an instruction file, itself or through a file that includes it
    (`taken_in_by`: that file, and whether it is a link)."""
    of_agent = _profiles(agent)
    if not any(p.instructions or p.instructions_perhaps for p in of_agent):
        return "unknown"

    def level(path: str) -> Level:
        answers: tuple[tuple[str, Level], ...] = (("instructions", "yes"), ("instructions_perhaps", "perhaps"))
        for name, answer in answers:
            named = (pattern for profile in of_agent for pattern in getattr(profile, name))
            if any(matching((f"**/{pattern}",), path) == "yes" for pattern in named):
                return answer
        return "no"

    levels = {level(path)}
    for other, is_link in taken_in_by:
        is_followed = is_link or any(p.expands_imports for p in of_agent)
        # A model may open what it is pointed to.
        levels.add("perhaps" if level(other) == "yes" and not is_followed else level(other))
    return "yes" if "yes" in levels else "perhaps" if "perhaps" in levels else "no"


class Files:
    """The instruction files of a repository over time."""

    def __init__(self, versions: list[Version]) -> None:
        self._by_path: dict[str, list[Version]] = {}
        for version in versions:
            self._by_path.setdefault(version.path, []).append(version)

    def stated(self) -> tuple[list[Stated], dict[str, int]]:
        """The rules, and of each file how many sentences of its last version are no mechanical rule."""
        made: list[Stated] = []
        others: dict[str, int] = {}
        for path, history in sorted(self._by_path.items()):
            rules: dict[str, Stated] = {}
            parts = [_asked(v.text) if v.text is not None and not v.is_link else None for v in history]
            for document, extracted in filter(None, parts):
                for rule in extracted.rules:
                    stated = rules.setdefault(rule.key, Stated(path=path, key=rule.key, rule=rule))
                    stated.rule, stated.globs, stated.is_optional = rule, document.globs, document.is_optional
            for stated in rules.values():
                for version, part in zip(history, parts, strict=True):
                    has = next((r for r in part[1].rules if r.key == stated.key), None) if part else None
                    stated.history.append(Presence(version.authored_at, version.arrived_at, version.sha, has))
            made += rules.values()
            others[path] = parts[-1][1].others if parts[-1] else 0
        return made, others

    def taken_in_by(self, path: str, at: int) -> Iterator[tuple[str, bool]]:
        """The files that at a moment take this one in: by an import on a line, or as links to it (True)."""
        for other, history in self._by_path.items():
            version = next((v for v in reversed(history) if v.arrived_at <= at), None)
            if version is None or version.text is None or other == path:
                continue
            names = (version.text.strip(),) if version.is_link else _asked(version.text)[0].imports
            if any(posixpath.normpath(posixpath.join(posixpath.dirname(other), name)) == path for name in names):
                yield other, version.is_link

    def exposure(self, stated: Stated, session: Session, where: Where, shown: list[Shown]) -> Exposure:
        """Return whether a rule of the history was in force in a session."""
        name = posixpath.basename(stated.path)
        logged = [s for s in shown if s.is_whole and s.name == name]
        if logged:
            if stated.key in logged[0].keys:
                return Exposure("exposed", f"the trace holds the text of {name}", logged[0].seq)
            if not stated.folder:
                first = stated.introduced
                is_before = first is not None and (session.started_at or 0) < first.arrived_at
                return Exposure(
                    "before" if is_before else "withdrawn",
                    f"the text of {name} in the trace has no such rule",
                    logged[0].seq,
                )
        at = session.started_at
        if at is None:
            return Exposure("unknown", "the session has no time")
        level = reads(session.agent, stated.path, self.taken_in_by(stated.path, at))
        if level == "unknown":
            return Exposure("unknown", f"it is not known which files {session.agent} reads")
        if level == "no":
            return Exposure("elsewhere", f"{session.agent} does not read {name}")
        scope = where.reached(stated)
        if scope == "no":
            return Exposure("elsewhere", "another folder's rule")
        present = _present(stated, at, session.ended_at or at, stated.path in where.edited)
        if present.state != "exposed":
            return present
        why = ""
        if level == "perhaps":
            why = f"{session.agent} reads {name} in some versions or settings, or if it follows a mention"
        elif scope == "perhaps":
            why = "it worked in the folder: whether the folder's rules were loaded is not in the trace"
        elif stated.is_optional:
            why = "the file's head leaves it to the agent whether it is read"
        return Exposure("unknown", why) if why else present


class Where(Struct, frozen=True):
    """Folders a session worked in, relative to the repository."""

    folder: str
    """Its working folder, with a slash behind; empty for the root."""
    touched: frozenset[str]
    edited: frozenset[str]
    cwd: str
    """The working folder as the trace names it."""

    def reached(self, stated: Stated) -> Literal["yes", "perhaps", "no"]:
        """Return whether the session worked in the rule's folder and on its files."""
        inside = [path for path in self.touched if path.startswith(stated.folder)]
        if stated.globs:
            return "yes" if any(matching(stated.globs, path[len(stated.folder) :]) for path in inside) else "no"
        if not stated.folder or self.folder.startswith(stated.folder):
            return "yes"
        return "perhaps" if inside or f"{self.cwd}/".endswith(f"/{stated.folder}") else "no"


def _present(stated: Stated, at: int, until: int, is_changed: bool) -> Exposure:
    """Return whether the file held the rule when the session began and until it ended."""
    history = stated.history
    now = next((v for v in reversed(history) if v.arrived_at <= at), None)
    has = now is not None and now.rule is not None
    if any((v.rule is not None) != has for v in history if v.authored_at <= at < v.arrived_at):
        return Exposure("unknown", "the file's change was written, and not yet on the main line")
    if any((v.rule is not None) != has for v in history if at < v.arrived_at <= until):
        return Exposure("unknown", "the file's change came while the session ran")
    following = next((v for v in history if v.arrived_at > at), None)
    if is_changed and following is not None and (following.rule is not None) != has:
        return Exposure("unknown", "the session changed the file itself")
    if has and now is not None:
        since = now  # the commit from which on the rule stood without a break
        for version in reversed(history[: history.index(now) + 1]):
            if version.rule is None:
                break
            since = version
        return Exposure("exposed", f"{stated.path} has it since {since.sha[:10]}")
    first = stated.introduced
    if first is not None and at < first.arrived_at:
        return Exposure("before", f"{stated.path} has it since {first.sha[:10]}, later than the session")
    return Exposure("withdrawn", f"{stated.path} has it no longer")
