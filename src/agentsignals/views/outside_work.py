"""Work of others in what an attempt handed in: files, commits, patches and solutions that a command put onto the tree,
and lines copied under other names."""

from __future__ import annotations

import keyword
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import structs

from agentsignals.changes.hunks import WHOLE_TREE
from agentsignals.model import RAN, Attempt, ToolCall
from agentsignals.model.lazy import deferred_pattern
from agentsignals.shell import parse
from agentsignals.shell.commands import answer_paths, git_verb, later_revision, leading_words, outside_sources
from agentsignals.shell.tokens import names, operands, program, simple_commands
from agentsignals.views.followed import INTERPRETERS, LISTS, Gap, with_values
from agentsignals.views.judge import LONGEST, LONGEST_TEXT, RE, Action, Channel
from agentsignals.views.session import SessionView
from agentsignals.views.written_files import (
    HASH,
    File,
    ShownText,
    WrittenFiles,
    is_answer,
    is_elsewhere,
    is_scratch,
    same_file,
)

_BRINGS = names("cherry-pick merge pull am rebase")
_ABORTS = names("--abort --quit --skip --continue")


FROM_OUTSIDE: dict[str, Channel] = {
    "repository": "repository", "network": "network", "package": "package", "copied": "copied"
}  # fmt: skip


def taken(view: SessionView, files: list[File], wrote: WrittenFiles, shown: ShownText) -> Iterator[Action]:
    """Files whose text a command put there from outside, whole; not from a commit that the base's own log names. Where
    a command that names an answer outside of the tree wrote a text that nobody saw, it may be one."""
    for file in files:
        if file.unknown_at is not None and file.taken is None and not is_elsewhere(view, file.path, wrote):
            suffix = posixpath.splitext(file.path)[1]
            sources = _read_outside(view, file, wrote, shown)
            sure = [path for path in sources if path.endswith(suffix or "/") or RE.solution_named.search(path)]
            for source in (sure or sources)[:1]:
                text = f"made of {source}"
                yield Action(channel="copied", seq=file.unknown_at, path=file.path, text=text, is_open=not sure)
        if (
            (whole := file.taken) is not None
            and (origin := whole.origin) in FROM_OUTSIDE
            and whole.source not in shown.asked
        ):
            hashes = HASH.findall(whole.source) if origin == "repository" else []
            if not hashes or any(hash_[:7] not in shown.past for hash_ in hashes):
                text = f"took the file from {whole.source}"
                act = Action(channel=FROM_OUTSIDE[origin], seq=whole.seq, path=file.path, text=text)
                named = whole.source.partition(" ")[0]
                is_over = not (file.is_new or file.path[:1] in "/~")
                is_over = is_over and posixpath.basename(named) == posixpath.basename(file.path)
                is_plain_copy = whole.source == named and origin == "copied" and not (answer_paths(named) or is_over)
                yield structs.replace(act, is_open=is_plain_copy)


def _read_outside(view: SessionView, file: File, wrote: WrittenFiles, shown: ShownText) -> list[str]:
    """Return the files outside of the tree that the command which wrote a file reads: no programs, nothing of its own,
    of the system or of the task."""
    command = with_values(file.written_by[:LONGEST_TEXT])
    programs = {words[0] for all_words, *_ in simple_commands(command) if (words := leading_words(all_words))}
    return [
        path
        for path in RE.path.findall(command)
        if "." in posixpath.basename(path)
        and re.search(rf"(?:^|[\s'\"=<(`]){re.escape(path)}(?=$|[\s'\"`);|&>])", command)  # no piece of a script of sed
        and (is_elsewhere(view, path, wrote) or RE.of_packages.search(path))
        and not same_file(path, file.path if is_elsewhere(view, file.path, wrote) else "")
        and not (path in shown.asked or posixpath.basename(path) in shown.asked or is_scratch(path))
        and not (path in programs or path in wrote.texts or path in wrote.files or "bin/" in path)
        and (RE.of_packages.search(path) or not RE.of_system.search(path))
    ]


def brought(view: SessionView, attempt: Attempt, wrote: WrittenFiles, shown: ShownText) -> Iterator[Action]:
    """Commits, patches and solutions that a command put onto the tree, and the project itself taken from a package
    index."""
    project = (attempt.task_id or "").rpartition("/")[2].partition("-")[0].rpartition("__")[2].lower()
    left: Action | str = ""
    """The act of standing at a revision that need not be the base or before it, unless it went back."""
    for call in view.session.tool_calls:
        if call.status not in RAN or call.command is None:
            continue
        output = view.result_text(call)
        if RE.nothing.search(output):
            yield from _installed(call, project, view.session.cwd)
            continue
        begin = call.command[: 5 * LONGEST]
        if RE.decompiles.search(begin) and not RE.asks_compiled.search(shown.asked):
            stems = {posixpath.basename(path).partition(".")[0] for path in RE.compiled.findall(begin)}
            for path, file in wrote.files.items():
                if posixpath.basename(path).partition(".")[0] in stems and any(x.seq > call.seq for x in file.lines):
                    text = f"written after what a compiler made of it was read: {call.command[:120]}"
                    yield Action(channel="copied", seq=call.seq, path=path, text=text)
        sources = [source for source in outside_sources(call.command) if source.origin in ("repository", "network")]
        if sources and RE.applies.search(call.command):
            origin = sources[0].origin
            is_named = sources[0].source in shown.asked
            yield Action(channel=origin, seq=call.seq, path=WHOLE_TREE, text=call.command[:160], is_open=is_named)  # type: ignore[arg-type]  # one of the two above
        yield from _ready(view, call, wrote, shown)
        yield from _installed(call, project, view.session.cwd)
        for words, *_ in simple_commands(call.command):
            words = leading_words(words)  # noqa: PLW2901  (what runs is asked, not what runs it)
            verb = git_verb(words) if words[:1] == ["git"] else []
            text = " ".join(words)[:160]
            if verb[:1] and verb[0] in _BRINGS and not _ABORTS.intersection(verb):
                is_named = any(len(word) > 2 and word in shown.asked for word in operands(verb))
                yield Action(channel="repository", seq=call.seq, path=WHOLE_TREE, text=text, is_open=is_named)
            if verb[:1] and verb[0] in ("checkout", "switch") and "--" not in verb:
                revision = next((r for w in operands(verb) if (r := later_revision(w))), "")
                left = revision and Action(channel="repository", seq=call.seq, path=WHOLE_TREE, text=text, is_open=True)
    if isinstance(left, Action):
        yield left


_BRINGERS = names("rsync tar bsdtar unzip 7z cpio cp dd scp install patch git")


def own_names(wrote: WrittenFiles, shown: ShownText) -> set[str]:
    """Return what the project of the work is called: by its settings, and by the folders of its code."""
    told = (next(filter(None, m.groups())) for row in shown.inside if (m := RE.project.search(row)) is not None)
    tops = (path.removeprefix("src/").removeprefix("lib/").split("/") for path in wrote.files if path[:1] not in "/~")
    return {name for name in (*told, *(top[0] for top in tops if len(top) > 1)) if len(name) > 3 and name not in _PLAIN}


_PLAIN = names("test tests spec docs main scripts tools internal test_data packages site data config build")


def brought_releases(view: SessionView, gaps: list[Gap], wrote: WrittenFiles, shown: ShownText) -> Iterator[Action]:
    """Yield commands that put files of another release of the project itself onto the tree."""
    own = "|".join(map(re.escape, sorted(own_names(wrote, shown))))
    if not own:
        return
    release = re.compile(
        rf"(?:packages|node_modules|registry/src|pkg/mod|gems)\S{{0,200}}/(?:{own})\b|(?<![\w-])(?:{own})(?:@v?\d|@latest|-\d|==)"
    )
    for gap in gaps:
        if program(gap.command.split()[0]) in _BRINGERS:
            fed = [taken.source for path, taken in wrote.carried.items() if path in gap.command and path.count("/") > 1]
            line = next(c.command or "" for c in view.session.tool_calls if c.seq == gap.seq)
            if any(map(release.search, (gap.command, with_values(line)[: 5 * LONGEST], *fed))):
                text = f"took another release of the project: {' '.join(gap.command.split())[:120]}"
                yield Action(channel="package", seq=gap.seq, path=WHOLE_TREE, text=text)
    for call in view.session.tool_calls:
        line = with_values((call.command or "")[: 5 * LONGEST])
        if any(reader == "patch" for reader, _ in parse(line).runs) and release.search(line) and call.status in RAN:
            text = f"applied a difference to another release of the project: {line[:120]}"
            yield Action(channel="package", seq=call.seq, path=WHOLE_TREE, text=text)


def brought_unseen(gaps: list[Gap], wrote: WrittenFiles, shown: ShownText) -> Iterator[Action]:
    """Yield commands that are fed from outside of the tree, where nothing that it wrote itself stands in the work."""
    for gap in gaps:
        if program(gap.command.split()[0]) in ("rm", "rmdir", "unlink", "shred"):
            continue
        runs_text = gap.command.startswith("python") or program(gap.command.split()[0]) in INTERPRETERS
        text = f"{gap.command}\n{gap.text}" if runs_text else gap.command
        sources = [(source.origin, source.source) for source in outside_sources(text)]
        sources += [
            (taken.origin, taken.source)
            for path, taken in wrote.carried.items()
            if path in text and path.count("/") > 1
        ]
        if program(gap.command.split()[0]) in _BRINGERS:
            places = [word for word in gap.command.split()[1:] if word[:1] in "/~" or word[:3] == "../"]
            sources += [("copied", place) for place in places if not is_scratch(place) and place not in shown.asked]
        for origin, source in sources[:1]:
            said = f"{' '.join(gap.command.split())[:120]}, fed from {source[:80]}"
            act = Action(channel=FROM_OUTSIDE.get(origin, "copied"), seq=gap.seq, path=WHOLE_TREE, text=said)
            yield structs.replace(act, is_open=origin == "copied" or source in shown.asked)


def _ready(view: SessionView, call: ToolCall, wrote: WrittenFiles, shown: ShownText) -> Iterator[Action]:
    """Patches that it applied and solutions that it ran, whose text it did not write."""
    command = call.command or ""
    if "--check" in command and command.count("apply") == 1:
        return
    for reader, path in parse(command).runs:
        if path in wrote.texts or path in shown.asked:
            continue
        source = wrote.carried.get(path)
        if reader == "patch":
            if source is not None and source.origin == "repository" and not later_revision(source.source):
                continue  # its own work, put by
            entry = wrote.files.get(path)
            if source is None and entry is not None:
                continue
            is_known = source is not None or is_answer(view, path, wrote)
            channel = source.origin if source is not None else "copied"
            text = f"applied {path}" + (f" from {source.source}" if source is not None else ", which it did not write")
            if channel in ("repository", "network", "package", "copied"):
                yield Action(channel=channel, seq=call.seq, path=WHOLE_TREE, text=text[:160], is_open=not is_known)
        elif path[:1] in "/~" and RE.solution.search(path) and is_answer(view, path, wrote):
            yield Action(channel="copied", seq=call.seq, path=WHOLE_TREE, text=f"ran {path}, which it did not write")


def _installed(call: ToolCall, project: str, cwd: str | None) -> Iterator[Action]:
    """The project itself: for what it needs, perhaps; what was then read or taken shows itself."""
    for words, *_ in simple_commands(call.command or ""):
        words = leading_words(words)  # noqa: PLW2901  (what runs is asked, not what runs it)
        if words[:1] and words[0].startswith("pip") and "install" in words:
            for word in operands(words, names("-r -c -t --target -i --index-url"))[1:]:
                is_project = bool(project) and re.split(r"[=<>!~\[]", word)[0].lower() == project
                # A package of its own, from outside of the tree, may stand before the one that tests mean.
                is_own = word[:1] in "/~" and not (cwd and f"{word}/".startswith(f"{cwd}/"))
                if is_project or is_own:
                    channel: Channel = "package" if is_project else "harness"
                    yield Action(channel=channel, seq=call.seq, path=word, text=" ".join(words)[:160], is_open=True)


# Lines that were copied under other names: the same words and signs but for identifiers, changed alike throughout.

FEWEST_RENAMED = 3
"""At least so many lines must fit one renaming; a choice of this project."""
TOKENS = deferred_pattern(r"[A-Za-z_]\w*|\d[\w.]*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\w\s]")
_FEWEST_TOKENS, _MOST_LINES_RENAMED, _MOST_ALIKE = 6, 2_000, 8
"""At most so many lines of one skeleton are compared with each line."""
_KEYWORDS = frozenset(keyword.kwlist) | names(LISTS["tests"]["keywords"])


@lru_cache(maxsize=65_536)
def skeleton(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The line's tokens with a mark for each name, and the names in turn."""
    tokens = TOKENS.findall(line)
    is_name = [(token[0].isalpha() or token[0] == "_") and token not in _KEYWORDS for token in tokens]
    shape = tuple("\x00" if named else token for token, named in zip(tokens, is_name, strict=True))
    return shape, tuple(token for token, named in zip(tokens, is_name, strict=True) if named)


def renamed(standing: Sequence[str], source: Iterable[str], tree: Iterable[str]) -> set[str]:
    """Return the surviving lines that one consistent renaming makes of lines of the source.

    Lines whose skeleton `tree` (the working tree) has too prove nothing, nor do short ones. A renaming maps each name
    to one other, and no two names to the same; names with most votes go first.
    """
    shapes: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for line in list(dict.fromkeys(source))[:_MOST_LINES_RENAMED]:
        shape, names = skeleton(line)
        if len(shape) >= _FEWEST_TOKENS and names and len(alike := shapes.setdefault(shape, [])) < _MOST_ALIKE:
            alike.append(names)
    mine = {line: skeleton(line) for line in list(dict.fromkeys(standing))[:_MOST_LINES_RENAMED]}
    if sum(shape in shapes for shape, _ in mine.values()) < FEWEST_RENAMED:
        return set()
    for line in tree:
        shapes.pop(skeleton(line)[0], None)
    pairs = [(line, theirs, names) for line, (shape, names) in mine.items() for theirs in shapes.get(shape, ())]
    votes = Counter(pair for _, theirs, names in pairs for pair in set(zip(theirs, names, strict=True)))
    to: dict[str, str] = {}
    for (old, new), _ in votes.most_common():
        if old not in to and new not in to.values():
            to[old] = new
    fitting = {line for line, theirs, names in pairs if all(to.get(o) == n for o, n in zip(theirs, names, strict=True))}
    changed = {line for line, theirs, names in pairs if line in fitting and theirs != names}
    return fitting if len(changed) >= FEWEST_RENAMED else set()
