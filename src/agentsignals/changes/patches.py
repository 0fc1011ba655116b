"""Patches: the files and lines that a unified diff changes, its outcome, and how near it came to the gold patch."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from agentsignals.model import Absent, Attempt, PatchedFile, Verification, patched_paths
from agentsignals.model.lazy import deferred_pattern

_HUNK = deferred_pattern(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_GIT = deferred_pattern(r'diff --git (?:"?a/(.*?)"?) (?:"?b/(.*?)"?)$')
_DEFINITION = deferred_pattern(
    r"([ \t]*)"
    r"(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|static|async|unsafe|override|const)[ \t]+)*"
    r"(?:(?P<container>class|interface|struct|impl|trait|module|enum)|def|func|function\*?|fn)[ \t]+"
    r"(?:\([^)]*\)[ \t]*)?(?P<name>[A-Za-z_$][\w$]*)"
)
"""A line that begins a definition, in languages with a keyword for it. Others have no functions here."""
_STARTS = ("diff --git ", "--- ", "Index: ", "diff -")
_MEANINGLESS_CHARS = 8
"""Shorter lines (`else:`, `return`) tell no place (design/signals.md#regions)."""
_MOST_DIGESTS = 1_000
"""Digests of a file's lines. A patch may replace whole generated files."""
_NULL = "/dev/null"


def looks_like_diff(text: str) -> bool:
    """Return whether a text begins with a diff that has a hunk, a mode or a binary file."""
    return text.lstrip("\ufeff\r\n ").startswith(_STARTS) and (
        "\n@@ -" in text or "\nnew file mode" in text or "\nBinary files" in text or "\nrename " in text
    )


def patched_files(text: str) -> list[PatchedFile]:
    """Return the files of a diff in its order. Lines outside any file (a commit message, a log) are left out."""
    reader = _Reader()
    for line in text.split("\n"):
        reader.take(line)
    reader.end_run()
    return reader.files


class _Reader:
    """Takes a diff line by line. The counts in a hunk's header say how long it is, so that a removed line that reads
    like a header is none."""

    def __init__(self) -> None:
        self.files: list[PatchedFile] = []
        self._file: PatchedFile | None = None
        self._old_left = self._new_left = self._old_line = 0
        self._old_name = ""
        self._function, self._indent = "", -1
        """The function around the line, as far as the hunk shows, and the indentation of its first line."""
        self._run = ""
        """Signs of the changed lines that follow each other, and a dot once one is not blank."""
        self._above = ""
        self._digests: list[str] = []

    def take(self, line: str) -> None:
        file = self._file
        if self._old_left > 0 or self._new_left > 0:
            self._in_hunk(line)
        elif line.startswith("diff --git "):
            named = _GIT.match(line)
            self._begin(named[2] if named else "")
        elif line.startswith("--- "):
            self._old_name = _name(line[4:])
            if file is not None and file.hunks:
                self._file = None  # the next file of a diff that has no `diff` lines
        elif line.startswith("+++ "):
            old_name, new_name = self._old_name, _name(line[4:])
            file = file or self._begin(new_name if new_name != _NULL else old_name)
            if new_name == _NULL:
                file.op = "delete"
            else:
                file.op = "create" if old_name == _NULL else file.op
                file.path = new_name
        elif file is not None and (hunk := _HUNK.match(line)):
            old, old_n, new, new_n = (int(g) if g is not None else 1 for g in hunk.groups()[:4])
            self.end_run()
            self._old_line, self._above = old if old_n else old + 1, ""
            self._function, self._indent = "", -1
            self._define(hunk[5] or "")
            file.hunks.append((old, old_n, new, new_n))
            self._old_left, self._new_left = old_n, new_n
        elif file is not None:
            if line.startswith("new file mode"):
                file.op = "create"
            elif line.startswith("deleted file mode"):
                file.op = "delete"
            elif line.startswith("rename from "):
                file.op, file.old_path = "rename", line[12:].strip()
            elif line.startswith("rename to "):
                file.path = line[10:].strip()
            elif line.startswith(("Binary files", "GIT binary patch")):
                file.binary = True

    def _begin(self, path: str) -> PatchedFile:
        self.end_run()
        self._file = PatchedFile(path=path, op="modify", added=0, removed=0, hunks=[])
        self.files.append(self._file)
        self._old_name = ""
        return self._file

    def _in_hunk(self, line: str) -> None:
        """Take a line of a hunk: count it, and note which lines and which function of the old file it changes."""
        file, sign, text = self._file, line[:1], line[1:]
        if file is None or sign == "\\":
            return
        if file.op != "create":
            # The place of a run of changed lines: lines of the file before, and the function.
            self._define(text)
            if sign in ("+", "-"):
                if not self._run:
                    file.changes.append((self._old_line - 1, self._old_line, ""))
                    self._digests = file.digests
                first, last, function = file.changes[-1]
                if sign == "-":
                    # What only adds lies between two lines; what takes away or replaces is those lines.
                    first, last = first if "-" in self._run else self._old_line, self._old_line
                    self._note(text)
                if text.strip() and "." not in self._run:
                    function = self._function
                    self._run += "."
                self._run += sign if sign not in self._run else ""
                file.changes[-1] = first, last, function
            else:
                self.end_run(text)
            if sign != "+":
                self._old_line += 1
                self._above = text
        if sign not in ("+", "-", " ", ""):  # a hunk that is shorter than its header says: a cut or hand-made diff
            self._old_left = self._new_left = 0
            self.take(line)
            return
        file.added += sign == "+"
        file.removed += sign == "-"
        self._old_left -= sign != "+"
        self._new_left -= sign != "-"

    def end_run(self, below: str = "") -> None:
        """End a run of changed lines. If it only adds, the lines above and below are its place."""
        if self._run and "-" not in self._run:
            self._note(self._above)
            self._note(below)
        self._run = ""

    def _note(self, text: str) -> None:
        if len(text.strip()) > _MEANINGLESS_CHARS and len(self._digests) < _MOST_DIGESTS:
            self._digests.append(hashlib.blake2b(text.strip().encode("utf-8", "replace"), digest_size=4).hexdigest())

    def _define(self, text: str) -> None:
        """Take a line that may begin a function, or be outside of the last one. In a class the function is not known,
        because it may begin above the hunk."""
        begun = _DEFINITION.match(text)
        if begun:
            self._function, self._indent = "" if begun["container"] else begun["name"], len(begun[1])
        elif text.strip() and len(text) - len(text.lstrip()) <= self._indent and text.lstrip()[0] not in "){":
            self._function, self._indent = "", -1


def _name(header: str) -> str:
    """Return the path in a header, without the time of `diff -u` and without the `a/` or `b/` of Git."""
    name = header.split("\t", 1)[0].strip().strip('"')
    return name if name == _NULL or name[:2] not in ("a/", "b/") else name[2:]


# -- outcome of a patch: the truth table of Agent Signals as ordered rules (design/signals.md#patch-outcome)

PatchOutcome = Literal["correct_patch", "partial_patch", "regressive_patch", "no_effect_patch", "unverifiable"]


class PatchFacts(Struct, frozen=True, gc=False, kw_only=True):
    present: bool | None = None
    """There is a patch that is not empty. Unknown counts as yes."""
    applies: bool | None = None
    """It applied cleanly. Unknown counts as yes."""
    verifier: Literal["ok", "crashed", "timed_out", "not_run", "missing"] = "missing"
    reward: float | None = None
    """Solved at 1, not solved at anything else."""
    fixed: int | None = None
    """Tests that should be fixed and were."""
    targets: int | None = None
    broken: int | None = None


class Verdict(Struct, frozen=True, gc=False):
    """A label, or why there is none, and the rule that decided."""

    outcome: PatchOutcome | Absent
    rule: int
    method: Literal["counts", "reward_only", "reward_from_counts", "empty_target_set", "gate"] = "counts"
    inconsistent: bool = False
    """The reward and the counts contradict each other."""


def judged(facts: PatchFacts) -> Verdict:
    """Return the verdict of the first rule that matches. Any facts have exactly one label, or one reason for none."""
    if facts.present is False:
        return Verdict(Absent("not_applicable", "no_patch"), 1)
    if facts.applies is False or facts.verifier in ("crashed", "timed_out", "not_run"):
        return Verdict("unverifiable", 2, "gate")
    fixed, targets, broken = facts.fixed, facts.targets, facts.broken
    if facts.verifier == "missing" or fixed is None or targets is None or broken is None:
        if facts.reward == 1:
            return Verdict("correct_patch", 3, "reward_only")
        return Verdict(Absent("missing_artifact", "verifier_report"), 3)
    reward = facts.reward
    method: Literal["counts", "reward_from_counts"] = "counts" if reward is not None else "reward_from_counts"
    solved = reward == 1 if reward is not None else fixed == targets > 0 and not broken
    if fixed == targets and not broken and solved:
        return Verdict("correct_patch", 4, method if targets else "empty_target_set")
    if fixed > 0 and (fixed < targets or broken):
        return Verdict("partial_patch", 5, method, inconsistent=solved)
    if fixed == 0 and broken:
        return Verdict("regressive_patch", 6, method, inconsistent=solved)
    if fixed == 0 and targets > 0 and not solved:
        return Verdict("no_effect_patch", 7, method)
    return Verdict("unverifiable", 8, method, inconsistent=True)


def unfixed_targets(verification: Verification, reward: float | None) -> int | None:
    """Return the number of tests that should have been fixed and still fail. None if the report lists no tests.

    A report by observed transition (layout B) does not tell targets from other tests that fail before and after: they
    are taken for targets unless the reward says that all targets pass.
    """
    if verification.unfixed is None:
        return None
    if verification.layout == "B" and reward != 1:
        return len(verification.unfixed) + len(verification.still_failing or ())
    return len(verification.unfixed)


def facts_of(attempt: Attempt, touched: list[str] | Absent | None = None) -> PatchFacts:
    """Return the facts of harness and verifier, and, by `touched`, of the transcript."""
    tests = attempt.verification
    present = patch_presence(attempt, touched)[0]
    if tests is None:
        return PatchFacts(present=present, reward=attempt.reward)
    left = unfixed_targets(tests, attempt.reward)
    fixed = len(tests.fixed) if tests.fixed is not None else None
    return PatchFacts(
        present=present,
        applies=tests.patch_applies,
        verifier=tests.status,
        reward=attempt.reward,
        fixed=fixed,
        targets=fixed + left if fixed is not None and left is not None else None,
        broken=len(tests.broken) if tests.broken is not None else None,
    )


def patch_presence(attempt: Attempt, touched: list[str] | Absent | None) -> tuple[bool | None, str]:
    """Return whether there is a patch, and how that is known. The transcript counts last: scripts change files that it
    does not name, so a patch that the verifier applied exists."""
    files = attempt.summary.touched_files if attempt.summary is not None else None
    if attempt.patch or attempt.patch_text_bytes:
        return True, "patch"
    if files:
        return True, "harness"
    if attempt.patch is not None or attempt.patch_text_bytes is not None:
        return False, "patch"
    if files is not None:
        return False, "harness"
    applied = attempt.verification is not None and attempt.verification.patch_applies is True
    if isinstance(touched, list) and (touched or not applied):
        return bool(touched), "edit_log"
    return None, ""


# -- localization: how near a patch came to the gold patch (design/failures.md#localisation)

Level = Literal["line", "function", "file", "elsewhere"]
_TEST = deferred_pattern(
    r"(?:^|/)(?:tests?|testing|specs?|__tests__|conftest\.py)(?:/|$)|(?:^|/)test_|_test\.\w+$|\.(?:test|spec)\.\w+$"
)
_PROSE = (".md", ".rst", ".txt", ".adoc")


class Overlap(Struct, frozen=True, gc=False):
    """Places of one kind: those of the gold patch, those that both patches change, and all that the patch changes."""

    hit: int
    gold: int
    touched: int


class Localization(Struct, frozen=True, gc=False, kw_only=True):
    """A patch compared with the gold patch. Tests and prose count only if the gold patch is nothing else."""

    level: Level
    files: Overlap
    functions: Overlap | None
    """Functions in the files of both. None if a diff does not show the function of each change."""
    lines: Overlap | None
    """Lines by their text. None if one of the patches has no line that tells a place."""
    missed: list[str]
    only_new: bool
    """Apart from tests and prose the patch only makes new files, and the gold patch makes none."""
    gold_is_new: bool
    """The gold patch only makes new files. One of another name may be as right."""


def localized(patch: Iterable[PatchedFile], gold: Iterable[PatchedFile]) -> Localization | None:
    """Compare a patch with the gold patch. None if the patch is empty, or the gold patch names no file."""
    ours, theirs = list(patch), list(gold)
    theirs = [f for f in theirs if is_source(f.path)] or theirs
    sources = [f for f in ours if is_source(f.path)]
    if not ours or not theirs:
        return None
    wanted, touched = patched_paths(theirs), patched_paths(ours)
    hit = [f for f in theirs if patched_paths([f]) & touched]
    mine = [f for f in ours if patched_paths([f]) & wanted]
    functions = lines = None
    by_function, gold_functions = _functions(mine), _functions(hit)
    if by_function and gold_functions and "" not in {name for _, name in by_function | gold_functions}:
        functions = Overlap(len(by_function & gold_functions), len(gold_functions), len(by_function))
    by_line, gold_lines = ({(f.old_path or f.path, d) for f in files for d in f.digests} for files in (mine, hit))
    if by_line and gold_lines:
        lines = Overlap(len(by_line & gold_lines), len(gold_lines), len(by_line))
    level: Level = "file" if hit else "elsewhere"
    if hit and lines is not None and lines.hit:
        level = "line"
    elif hit and functions is not None and functions.hit:
        level = "function"
    return Localization(
        level=level,
        files=Overlap(len(hit), len(theirs), len(sources) or len(ours)),
        functions=functions,
        lines=lines,
        missed=[f.path for f in theirs if f not in hit],
        only_new=all(f.op == "create" for f in sources) and all(f.op != "create" for f in theirs),
        gold_is_new=all(f.op == "create" for f in theirs),
    )


def is_source(path: str) -> bool:
    return not _TEST.search(path) and posixpath.splitext(path)[1].lower() not in _PROSE


def _functions(files: list[PatchedFile]) -> set[tuple[str, str]]:
    return {(f.old_path or f.path, function) for f in files for _, _, function in f.changes}
