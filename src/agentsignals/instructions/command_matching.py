"""Whether a command that ran is the one that a rule names."""

from __future__ import annotations

import re

from agentsignals.instructions.acts import Did
from agentsignals.shell.kinds import KINDS, leading_words
from agentsignals.shell.programs import program
from agentsignals.shell.tokens import simple_commands
from agentsignals.shell.writing import names, operands

MANAGERS = (names("npm yarn pnpm bun"), names("pip pip3 uv poetry pdm pipenv conda"))
"""Package managers of which a project uses one: `use pnpm` forbids the others."""
_PLACEHOLDER = re.compile(r"[<\[{].*|\.\.\.|…")
_VALUED = names(
    "-C --dir --cwd --prefix -w --workspace --filter -F --file -j -c -m -k -n --git-dir --work-tree --manifest-path"
    " --project --directory --config"
)
_TASKS = names("npm pnpm yarn bun")
_MANY = names("make gmake just task")
_THROUGH = names("npx bunx pnpx uvx xargs rtk nice timeout gtimeout stdbuf")
_PATHLIKE = re.compile(r"[/*]|\.\w|^\.{1,3}$|::|…")
_SEARCHES = frozenset(("search", "read"))


def matches(rule: list[str], did: Did, *, exactly: bool) -> str:  # noqa: PLR0911  (the first that tells them apart)
    """Whether a command is the rule's: `yes`, `part` (of files or tests alone, or without the rule's options), or
    empty. `exactly`: as what is forbidden has to be, all its options included."""
    if len(rule) == 1:
        word = rule[0]
        if ":" in word:
            return "yes" if word in did.words else ""
        if exactly:
            is_it = did.head == word or (did.words[0] == word and _is_through(did.head))
            return "" if not is_it or (did.is_piped and KINDS.get(word) in _SEARCHES) else "yes"
    if did.words[0] != rule[0]:
        return ""
    asked, done = _arguments(rule), _arguments(list(did.words))
    if rule[0] in _MANY:
        if any(word not in done for word in asked) or (not asked and done):
            return ""
        done = asked
    is_part = False
    for n, word in enumerate(asked):
        if n < len(done) and done[n] == word:
            continue
        if not _PATHLIKE.search(word) or exactly:
            return ""
        is_part = True
    rest = done[len(asked) :]
    options = {o for o in did.words[1:] if o[:1] == "-"}
    lacking = [o for o in rule[1:] if o[:1] == "-" and not _has(o, options)]
    if exactly:
        return "" if lacking else "yes"
    if any(not _PATHLIKE.search(word) for word in rest) and rule[0] in _TASKS and not asked:
        return ""
    only = {"-k", "-t", "-run", "--filter", "--grep", "--testNamePattern", "-m"} & options
    return "part" if is_part or lacking or rest or only else "yes"


def _is_through(head: str) -> bool:
    """Whether a program only runs another, named after it (`npx tsc`, `python -m pip`)."""
    return head in _THROUGH or head.startswith("python")


def _arguments(words: list[str]) -> list[str]:
    arguments = operands(words, _VALUED)
    if words[0] in _TASKS:
        arguments = [w for w in arguments if w not in ("run", "run-script")]
        arguments = ["test" if w == "t" else w for w in arguments]
    return arguments


def _has(option: str, options: set[str]) -> bool:
    """Short options may be joined: `-rf` is `-fr` and `-r -f`; `--force` of Git is `-f`."""
    if option in options or any(o.startswith(f"{option}=") for o in options):
        return True
    if option == "--force":
        return "-f" in options
    letters = {c for o in options if re.fullmatch(r"-[A-Za-z]+", o) for c in o[1:]}
    return bool(re.fullmatch(r"-[A-Za-z]{1,3}", option)) and set(option[1:]) <= letters


def words_of(command: str) -> list[str]:
    """A rule's command as words that a run must have: no placeholders, and what only runs another left out."""
    lines = simple_commands(command)
    words = (leading_words(lines[0][0]) or lines[0][0]) if lines else []  # `npx` alone is what it says
    return [program(words[0]), *(w for w in words[1:] if not _PLACEHOLDER.match(w))] if words else []
