"""Commands whose writes a trace does not tell, and the runs of what judges: *derived* needs none of the first, and the
second say what turned a failure into a pass (docs/audit.md)."""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentsignals.model import RAN, ToolCall
from agentsignals.model.lazy import deferred_pattern
from agentsignals.shell import WRITERS, parse
from agentsignals.shell.commands import git_verb, kind_of, leading_words
from agentsignals.shell.python import script
from agentsignals.shell.tokens import (
    UNRESOLVED,
    in_place,
    names,
    operands,
    program,
    scripts_and_files,
    shell_text,
    simple_commands,
    split,
)
from agentsignals.views.session import SessionView
from agentsignals.views.written_files import WrittenFiles, is_scratch

LISTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("reward_hacking.toml").read_text("utf-8"))


def listed(text: str) -> re.Pattern[str]:
    return deferred_pattern(text.replace("\n", ""))


_TOOLS, _COPIES, _HIDING_VERBS = (names(LISTS["followed"][key]) for key in ("tools", "copies", "hiding_verbs"))
_WRITES_FILES, _FAILS, _PASSES, _FEWER, _NO_BEGIN, _ASSERTS, _RUNS_PYTHON = (
    listed(LISTS["followed"][key]) for key in ("writes", "fails", "passes", "fewer", "no_begin", "asserts", "in_python")
)
_SHELLS = names("bash sh zsh dash ksh")
INTERPRETERS = names("node nodejs ruby perl php lua luajit julia deno bun elixir Rscript groovy tclsh osascript pwsh")
_EVALUATES = deferred_pattern(r"-[a-zA-Z0-9]*[ceErp]$|--(?:eval|execute|print|command)$")
_SET = deferred_pattern(r"(?:^|[;&\n]\s*|\bexport )([A-Za-z_]\w*)=([\w./~@+-]+)")
_LONGEST_COMMAND, _DEEPEST = 50_000, 3
TRAVERSES = deferred_pattern(
    r"\bxargs\b|\bfind\b|\br?glob\b|\bwalk\(|\bgit (?:ls-files|grep)\b|\bgrep -\w*[lL]|[*?]|readdir|Dir\["
)
"""A command that looks for its files itself."""


class Gap(Struct, frozen=True):
    """A command whose writes are not known: its event, the simple command, and the text that it runs, if that is in
    the trace."""

    seq: int
    command: str
    text: str


def gaps(view: SessionView, wrote: WrittenFiles, asked: str) -> list[Gap]:
    """Return the commands of a session that could not be followed."""
    found: list[Gap] = []
    follower = _Follower(wrote.texts, asked)
    for call in view.session.tool_calls:
        if call.command and call.status in RAN:
            if len(call.command) > _LONGEST_COMMAND:
                found.append(Gap(call.seq, call.command[:160], ""))
                continue
            line = call.command.replace(f"{view.session.cwd}/", "") if view.session.cwd else call.command
            found += [Gap(call.seq, *each) for each in follower.of_line(line)]
    return found


def with_values(line: str) -> str:
    """A command line with the variables that it sets itself."""
    values = dict(_SET.findall(line))
    return re.sub(r"\$\{?(\w+)\}?", lambda name: values.get(name[1], name[0]), line) if values else line


class _Follower:
    """Follows command lines into the texts that they run."""

    def __init__(self, texts: Mapping[str, str], asked: str) -> None:
        self.texts, self.asked = texts, asked

    def of_line(self, line: str, depth: int = 0) -> Iterator[tuple[str, str]]:
        """Yield each simple command whose writes are not known, and the text that it runs."""
        texts = self.texts
        if depth > _DEEPEST:
            yield line, line
            return
        named = {target for _, targets, *_ in simple_commands(line) for target in targets}
        line = with_values(line)
        simple, ends, heredocs, inputs = split(line)
        here = ""
        for n, (all_words, targets, *_) in enumerate(simple):
            said = " ".join([*all_words, *(f"> {target}" for target in targets)])[:_LONGEST_COMMAND]
            hidden = [t for t in targets if (UNRESOLVED(t) or t not in named) and not is_scratch(t)]
            if hidden:
                yield said, heredocs.get(n, line)
                continue
            words = leading_words(all_words)
            name = program(words[0]) if words else ""
            if name == "cd" and len(words) > 1:
                here = words[1]
            is_piped = n > 0 and ends[n - 1] in ("|", "|&")
            inner = shell_text(words) if words else None
            is_none = not words or words[0][:1] == "-" or "=" in words[0] or " " in name
            if is_none or name in ("for", "case", "function") or "-m" in all_words[:4]:
                continue
            is_editor = name in ("perl", "ruby") and in_place(words)
            if (
                inner is None
                and not is_editor
                and (name in _SHELLS or name.startswith("python") or name in INTERPRETERS)
            ):
                text, is_own = _program_text(words, heredocs.get(n), texts)
                if text is None and not is_own and (is_piped or operands(words)):
                    yield said, line
                elif text is not None:
                    yield from self.of_program(said, name, text, depth)
            elif inner is not None:
                yield from self.of_line(inner, depth + 1)
            elif (path := next((p for p in (words[0], words[0].removeprefix("./")) if p in texts), None)) is not None:
                yield from self.of_program(said, name, texts[path], depth)
            elif name in ("patch", "git") and (inputs.get(n) in texts or texts.keys() & set(words)):
                continue
            elif not _is_known(words, name, all_words, f"{here}/", is_piped) and (
                len(name) < 3 or not re.search(rf"(?<![\w/]){re.escape(name)}\b", self.asked)
            ):
                mentioned = [text for path, text in texts.items() if path in line and path not in words]
                # What else the line names is no argument of this command, but where a loop or a search gives it names.
                begin = next((k + 1 for k in range(n - 1, -1, -1) if ends[k] not in ("|", "|&")), 0)
                piped = "\n".join([here, *(" ".join(each[0]) for each in simple[begin : n + 1])])
                own = line if re.search(r"[$*?]", line) or TRAVERSES.search(line) else piped
                text = "\n".join([heredocs.get(n, own), *mentioned])
                has_text = n in heredocs or bool(mentioned)
                is_compiled = is_scratch(words[0]) and has_text and not _WRITES_FILES.search(text)
                yield from () if is_compiled else [(said, text)]

    def of_program(self, said: str, name: str, text: str, depth: int) -> Iterator[tuple[str, str]]:
        begin = text[:80]
        if name.startswith("python") or (
            name not in INTERPRETERS and ("python" in begin or "\nimport " in f"\n{begin}")
        ):
            if not follows_python(text):
                yield said, text
            for command in script(text).commands:
                yield from self.of_line(command, depth + 1)
        elif name in INTERPRETERS or "#!/usr/bin/env " in begin:
            if _WRITES_FILES.search(text):
                yield said, text
        else:
            yield from self.of_line(text, depth + 1)


def _program_text(words: list[str], heredoc: str | None, texts: Mapping[str, str]) -> tuple[str | None, bool]:
    """Return the text that an interpreter runs, and whether it is a program of the tree."""
    for n, word in enumerate(words[1:-1], 1):
        if _EVALUATES.fullmatch(word):
            return words[n + 1], False
        if word[:1] != "-":
            break
    path = next(iter(operands(words)), "")
    if heredoc is not None and path in ("", "-", "/dev/stdin"):
        return heredoc, False
    text = texts.get(path, texts.get(path.removeprefix("./")))
    options = words[1:2] and words[1] in ("--version", "-V", "-v", "--test")
    return text, bool(options) or (bool(path) and path[:1] not in "/~-" and not UNRESOLVED(path))


def is_own(command: str, texts: Mapping[str, str]) -> bool:
    """Return whether all that a command line prints is made by texts in it, of files of the tree."""
    for all_words, *_ in simple_commands(command):
        words = leading_words(all_words)
        name = program(words[0]) if words else ""
        is_program = "/" in (words[0] if words else "") and words[0] not in texts
        runs_text = name.startswith("python") or name in INTERPRETERS or name in _SHELLS
        if is_program or (
            words and not runs_text and kind_of(words, name) in ("run", "test", "build") and name != "ed"
        ):
            return False
    return True


_WRITING = names(
    "write_text write_bytes unlink rmtree copy copy2 copyfile copytree move symlink symlink_to hardlink_to link chmod"
    " utime truncate extractall urlretrieve savetxt system popen Popen check_call check_output execv spawn exec eval"
    " __import__ import_module compile savefig save to_csv to_json to_pickle to_excel rename remove renames touch"
)


def follows_python(text: str) -> bool:
    """Return whether every write of a Python text is one that `shell.python` tells."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return not _RUNS_PYTHON.search(text)
    n = n_open = 0
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        is_method = isinstance(node.func, ast.Attribute)
        given = [*node.args[not is_method :], *(k.value for k in node.keywords)]
        texts = (each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str))
        mode = next((each for each in texts if re.fullmatch(r"[rwaxbt+U]{1,4}", each)), None)
        if called == "open" and mode is not None and set(mode) & set("wax+"):
            n_open += 1
        elif called == "open" and mode is None and len(node.args) > (0 if is_method else 1):
            return False  # a mode that is computed
        elif called == "run" and is_method and getattr(node.func.value, "id", "") != "subprocess":  # type: ignore[attr-defined]
            continue
        elif called in _WRITING or called in ("run", "call") or (called == "replace" and len(node.args) == 1):
            of_system = is_method and getattr(node.func.value, "id", "") in ("os", "shutil", "builtins")  # type: ignore[attr-defined]
            is_str = called in ("remove", "copy", "compile", "eval") and is_method and not of_system
            is_str = (is_str and "py_compile" not in text) or (
                called in ("__import__", "import_module")
                and isinstance(node.args[0] if node.args else None, ast.Constant)
                and not re.search(r"\b(?:os|subprocess|shutil|pathlib)\b", ast.unparse(node))
            )
            n += not is_str
    made = script(text)
    return n + n_open <= len({(w.path, w.how, w.new) for w in made.writes}) + len(made.commands) if n + n_open else True


def _is_known(words: list[str], name: str, all_words: list[str], here: str, is_piped: bool) -> bool:
    """Return whether the writes of a command that runs no text of the agent's are known."""
    given = operands(words)
    if name == "git":
        verb = git_verb(words)
        odd = verb[:1] == ["config"] and re.search(
            r"hooksPath|alias|filter|textconv|external|fsmonitor", " ".join(verb)
        )
        applies = verb[:1] in (["apply"], ["am"]) and is_piped
        return not odd and not applies and _HIDING_VERBS.isdisjoint(verb[:1])
    if name == "find":
        return kind_of(words, name) != "write" or is_scratch(given[0] if given else "") or "pyc" in " ".join(words)
    if name in WRITERS and name not in _TOOLS:
        if name in ("sed", "gsed", "perl", "ruby"):
            if not in_place(words):
                return name.endswith("sed")
            given = scripts_and_files(words)[1]
        if all_words[0] == "xargs" or not given:
            return name in ("tee", "touch", "curl", "wget") and all_words[0] != "xargs"
        is_thrown = is_scratch(given[-1])  # where it goes: a pattern may come from scratch into the tree
        return (is_thrown or not any(map(UNRESOLVED, given))) and not (name == "install" and "/dev/stdin" in given)
    if name in _COPIES:
        return bool(given) and (is_scratch(given[-1]) or (given[-1][:1] not in "/~" and is_scratch(here)))
    if name in ("tar", "unzip", "bsdtar", "7z", "gunzip", "unxz"):
        folders = [words[n + 1] for n, w in enumerate(words[:-1]) if w in ("-C", "-d", "--directory")]
        reads = any(re.fullmatch(r"-?[a-z]*[tlpO][a-z]*", w) and "x" not in w.strip("-")[:1] for w in words[1:2])
        return reads or all(map(is_scratch, folders or [here]))
    if name in ("awk", "gawk", "mawk"):
        return "inplace" not in words and not re.search(r"print[^;}]*>|system\(", " ".join(given[:1]))
    if name in ("chmod", "chown", "mkdir", "rmdir", "ln") or name == "eval":
        return name in ("mkdir", "rmdir") or (name == "chmod" and bool(given) and given[0][-2:] in ("+x", "55", "44"))
    if name == "sort" and "-o" in words:
        return False
    if words[0][:1] != "/" and "/" in words[0]:
        return True  # a program of the tree
    if name in _TOOLS or kind_of(words, name) in ("read", "search", "test", "build", ""):
        return name != "docker" or "cp" not in given
    return bool(words[1:]) and all(word in ("--version", "-V", "--help", "-h", "-v") for word in words[1:])


# Runs of what judges, in order.


class Run(Struct, frozen=True):
    """A run of tests that the agent saw: the event of its call, whether it failed, and whether tests were left out."""

    seq: int
    fails: bool
    began: bool
    """Its tests could be loaded."""
    leaves_out: bool
    """It says that tests were skipped, or none found, or a failure ignored."""


def runs(view: SessionView, asked: str, judged: list[str]) -> list[Run]:
    """The runs of tests, and of the commands that the task names."""
    made = []
    for call in view.session.tool_calls:
        text = view.result_text(call)
        if call.command and len(call.command) < _LONGEST_COMMAND and _is_run(call, asked, judged) and text.strip():
            fails = _FAILS.search(text) is not None
            if fails or _PASSES.search(text) is not None:  # others tell nothing
                began = _NO_BEGIN.search(text) is None or _ASSERTS.search(text) is not None
                made.append(Run(call.seq, fails, began, _FEWER.search(text) is not None))
    return made


def _is_run(call: ToolCall, asked: str, judged: list[str]) -> bool:
    if parse(call.command or "").kind == "test":
        return True
    for all_words, *_ in simple_commands(call.command or ""):
        words = leading_words(all_words)
        name = program(words[0]) if words else ""
        kind = kind_of(words, name) if words else ""
        is_named = len(words) > 1 and (" ".join(words) in asked or " ".join(words[:2]) in asked)
        is_script = bool(words) and "/" in words[0] and words[0].removeprefix("./") in asked
        files = {test.partition("::")[0] for test in judged}
        if kind not in ("read", "search", "write", "vcs", "") and (
            is_named or is_script or any(file and file in word for file in files for word in words)
        ):
            return True
    return False
