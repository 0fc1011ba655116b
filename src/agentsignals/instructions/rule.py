"""A mechanical rule: one that commands, edits and commits can keep or break, whoever judges."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Kind = Literal["run", "never_run", "use", "never_edit", "never_branch", "prefix", "message"]
"""`run` a command at an occasion; never run one; use one and not its like; never edit files; never commit or push to a
branch; begin every command with a word; write commit messages so."""
When = Literal["", "commit", "push", "change", "done", "edit"]
"""The occasion of `run`: before a commit, before a push or pull request, after code was changed, before work is called
done, after files of `paths` were changed."""


class Rule(Struct, frozen=True, kw_only=True):
    """A rule as a file states it."""

    kind: Kind
    line: int
    text: str
    """The sentence that states it."""
    when: When = ""
    commands: tuple[str, ...] = ()
    """Any one of which keeps a rule to run or to use, or breaks one that forbids; of a branch what is forbidden there
    (`commit`, `push`); of messages how they must be."""
    instead_of: tuple[str, ...] = ()
    """What a rule to use forbids."""
    paths: tuple[str, ...] = ()
    """As in a `.gitignore`, seen from the file's folder."""
    branches: tuple[str, ...] = ()
    condition: str = ""
    """Words that narrow it (`unless asked`, `on shared checkouts`): nobody can tell whether they applied."""

    @property
    def key(self) -> str:
        """What stays the same when the sentence is put differently."""
        parts = (self.commands, self.instead_of, self.paths, self.branches)
        return " ".join([self.kind, self.when, *("|".join(sorted(part)) for part in parts if part)])

    @property
    def forbids(self) -> bool:
        """Whether an act breaks it, not the want of one."""
        return self.kind.startswith("never")
