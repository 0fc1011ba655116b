"""The rules of a repository's history, or of what traces show, each followed through every session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import structs

from agentsignals.errors import SourceError
from agentsignals.git import commits as git
from agentsignals.git.file_versions import versions
from agentsignals.git.worktrees import Naming as Names
from agentsignals.git.worktrees import Tree, plain_folder
from agentsignals.instructions.acts import Acts
from agentsignals.instructions.exposure import (
    Exposure,
    Files,
    Shown,
    Stated,
    Where,
    patterns,
    shown_in,
    stated_in,
)
from agentsignals.instructions.following import follow
from agentsignals.instructions.path_patterns import in_folder
from agentsignals.instructions.rule_report import Case, RulesReport, rules_report
from agentsignals.model import Session

_HOOKS = (".husky/", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".githooks/", "lefthook.yaml")
_CAUTIONS = (
    "A hook that rewrites commands, a person at another terminal, and CI leave no line in a trace.",
    "A personal instruction file (in the home folder) is in no repository: what it says is not seen.",
)


def of_repository(git_dir: str, name: str, sessions: Iterable[Session], wanted: str | None = None) -> RulesReport:
    """The rules of the instruction files in a repository's history. `wanted`: of one file alone; SourceError where that
    is none of them."""
    head = git.head(git_dir)
    commits = git.commits(git_dir)
    history = versions(git_dir, head, patterns(), commits) if head is not None else []
    files, (stated, others) = Files(history), stated_in(history)
    if wanted is not None and wanted not in others:
        listed = ", ".join(sorted(others)) or "none"
        raise SourceError(f"{name} has no instruction file {wanted} in its history.", f"It has: {listed}.")
    stated = [s for s in stated if wanted is None or s.path == wanted]
    paths = git.files_at(git_dir, head) if head is not None else set()
    tree = Tree(paths | {version.path for version in history})
    has_hooks = any(path.startswith(_HOOKS) for path in paths)
    cases: list[list[Case]] = [[] for _ in stated]
    n = 0
    for session in sessions:
        n += 1
        slim, shown = _slim(session), shown_in(session)
        naming, where = _where(session, tree)
        acts: dict[str, Acts] = {}
        for k, rule in enumerate(stated):
            exposure = files.exposure(rule, session, where, shown)
            if rule.folder not in acts:
                acts[rule.folder] = Acts(session, _Below(naming, rule.folder))
            cases[k].append(Case(rule.rule, slim, exposure, follow(rule.rule, acts[rule.folder], has_hooks=has_hooks)))
    counted = {
        path: {
            "versions": sum(v.path == path for v in history),
            "rules": sum(s.path == path for s in stated),
            "not_mechanical": rest,
        }
        for path, rest in others.items()
        if wanted in (None, path)
    }
    return rules_report(name, n, counted, list(zip(stated, cases, strict=True)), _CAUTIONS)


def of_traces(read: Callable[[set[str]], Iterable[Session]], places: Mapping[str, str | None]) -> RulesReport:
    """The rules of the instruction files that traces themselves show. `read` gives the sessions of these ids, one after
    the other, and is asked twice; `places`: where each lies. Rules of one place are no others'."""
    lying = {session_id: place for session_id, place in places.items() if place is not None}
    shown = {session.session_id: (session.started_at or 0, shown_in(session)) for session in read(set(lying))}
    stated: dict[tuple[str, str, str], Stated] = {}
    first: dict[tuple[str, str, str], int] = {}
    files: dict[str, dict[str, int]] = {}
    for session_id, (at, texts) in sorted(shown.items(), key=lambda item: item[1][0]):
        place = lying[session_id]
        for text in texts:
            counts = files.setdefault(f"{place}: {text.name}", {"versions": 0, "rules": 0, "not_mechanical": 0})
            counts["versions"] += text.is_whole
            counts["not_mechanical"] = max(counts["not_mechanical"], text.others)
            for key, rule in text.keys.items():
                name = (place, text.name, key)
                counts["rules"] += name not in stated
                stated.setdefault(name, Stated(path=text.name, key=key, rule=rule, place=place)).rule = rule
                first.setdefault(name, at)
    ruled = {place for place, _, _ in stated}
    cases: dict[tuple[str, str, str], list[Case]] = {name: [] for name in stated}
    for session in read({session_id for session_id in shown if lying[session_id] in ruled}):
        slim, acts, texts = _slim(session), Acts(session, _plain), shown[session.session_id][1]
        for name, of in stated.items():
            if name[0] == lying[session.session_id]:
                cases[name].append(Case(of.rule, slim, _by_trace(of, slim, texts, first[name]), follow(of.rule, acts)))
    return rules_report(None, len(shown), files, [(of, cases[name]) for name, of in stated.items()], _CAUTIONS)


def _showing(shown: Iterable[Shown], name: str, key: str) -> Shown | None:
    return next((s for s in shown if s.name == name and key in s.keys), None)


def _by_trace(stated: Stated, session: Session, shown: list[Shown], first: int) -> Exposure:
    text = _showing(shown, stated.path, stated.key)
    if text is not None:
        return Exposure("exposed", f"the trace holds the text of {stated.path}", text.seq)
    if any(s.is_whole and s.name == stated.path for s in shown):
        is_before = (session.started_at or 0) < first
        return Exposure(
            "before" if is_before else "withdrawn", f"the text of {stated.path} in the trace has no such rule"
        )
    return Exposure("unknown", f"the trace does not hold the text of {stated.path}: name the repository")


def _slim(session: Session) -> Session:
    return structs.replace(
        session, turns=[], steps=[], events=[], tool_calls=[], edits=[], labels=[], checkpoints=[], attempt=None
    )


def _plain(path: str) -> str | None:
    return None if path[:1] in ("/", "~") or path.startswith("../") else path


class _Below:
    """Paths as seen from a folder of the repository; None outside of it."""

    def __init__(self, names: Names, folder: str) -> None:
        self._names, self._folder = names, folder

    def __call__(self, path: str) -> str | None:
        name = self._names.of(path)
        return name[len(self._folder) :] if name is not None and in_folder(name, self._folder) else None


def _where(session: Session, tree: Tree) -> tuple[Names, Where]:
    edited = [edit.path for edit in session.edits]
    touched = [call.path for call in session.tool_calls if call.path and call.class_ in ("read", "edit")]
    names = Names(tree, session.cwd, [*edited, *touched])

    def named(paths: Iterable[str]) -> Iterator[str]:
        return (name for path in set(paths) if (name := names.of(path)) is not None)

    cwd = plain_folder(session.cwd)
    return names, Where(names.folder, frozenset(named([*edited, *touched])), frozenset(named(edited)), cwd)
