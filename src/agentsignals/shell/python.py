"""Reads which files a Python script writes, and with what text. The script is parsed, never run.

Literal texts, paths, open files and file contents are followed through assignments, loops over literal lists and calls
of the script's own functions. Other values are unknown.
"""

from __future__ import annotations

import ast
import contextlib
import posixpath
import textwrap
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from msgspec import Struct, structs

from agentsignals.model import EditOrigin
from agentsignals.shell.tokens import UNRESOLVED, Write, Writes

# -- values of names in a script: literal texts, paths, open files, texts of files. None: anything else ----------------

LONGEST_TEXT = 1_000_000
_MOST_PARTS = 20_000


class NamedPath(Struct, frozen=True):
    path: str


class Text(Struct, frozen=True, kw_only=True):
    """The text of a file or another source: with literal replacements, or `computed` from it."""

    path: str | None = None
    changes: tuple[tuple[str, str, bool], ...] = ()
    before: str = ""
    after: str = ""
    computed: bool = False
    origin: EditOrigin = "copied"
    source: str | None = None


class OpenFile(Struct):
    path: str
    mode: str
    is_written: bool = False


def added(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        return left + right if len(left) + len(right) < LONGEST_TEXT else None
    if isinstance(left, Text) and isinstance(right, str) and not left.computed:
        return structs.replace(left, after=left.after + right)
    if isinstance(left, str) and isinstance(right, Text) and not right.computed:
        return structs.replace(right, before=left + right.before)
    if isinstance(left, list) and isinstance(right, list):
        return left + right if len(left) + len(right) < _MOST_PARTS else None
    return computed(left) or computed(right)


def computed(value: Any) -> Any:
    return structs.replace(value, computed=True) if isinstance(value, Text) else None


def are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def joined(values: Sequence[Any]) -> NamedPath | None:
    parts = [path_of(value) for value in values]
    plain = [part for part in parts if part is not None]
    return NamedPath(posixpath.join(*plain)) if plain and len(plain) == len(parts) else None


def path_of(value: Any) -> str | None:
    return value.path if isinstance(value, NamedPath) else value if isinstance(value, str) else None


def short(value: Any) -> str | None:
    return value[:500] if isinstance(value, str) else None


_LONGEST = 200_000
_MOST_STEPS = 20_000
_DEEPEST = 40


class Script(NamedTuple):
    writes: Writes
    commands: list[str]


class _TooLong(Exception):
    pass


@lru_cache(maxsize=16)  # what was written to a file is run again and again
def script(text: str) -> Script:
    """Return what a script writes; nothing if it is no Python."""
    if len(text) > _LONGEST:
        return Script([], [])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Script([], [])
    reader = _Reader()
    with contextlib.suppress(_TooLong, RecursionError):
        reader.run(tree.body)
    for file in reader.opened:
        if not file.is_written:
            reader.write(file.path, None, file)
    return Script(reader.writes, reader.commands)


class _Reader:
    def __init__(self) -> None:
        self.writes: Writes = []
        self.commands: list[str] = []
        self.opened: list[OpenFile] = []
        self._names: dict[str, Any] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        self._steps = self._depth = self._times_unknown = 0

    # -- statements ----------------------------------------------------------------------------------------------

    def run(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._step()
            match statement:
                case ast.FunctionDef():
                    self._functions[statement.name] = statement
                case ast.Assign(targets=targets, value=value):
                    made = self._value(value)
                    for target in targets:
                        self._assign(target, made)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assign(target, self._value(value))
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                    self._names[name] = added(self._names.get(name), self._value(value))
                case ast.With(items=items, body=inner):
                    for item in items:
                        made = self._value(item.context_expr)
                        if item.optional_vars is not None:
                            self._assign(item.optional_vars, made)
                    self.run(inner)
                case ast.For(target=target, iter=iterated, body=inner):
                    self._loop(target, self._value(iterated), inner)
                case ast.While(body=inner):
                    self._loop(None, None, inner)
                case ast.If(test=test, body=inner, orelse=other):
                    self._value(test)
                    self.run(inner)
                    self.run(other)
                case ast.Try():
                    self.run(statement.body)
                    for handler in statement.handlers:
                        self.run(handler.body)
                    self.run([*statement.orelse, *statement.finalbody])
                case ast.Expr(value=value):
                    self._value(value)
                case _:
                    pass

    def _loop(self, target: ast.expr | None, values: Any, body: Sequence[ast.stmt]) -> None:
        """Run a loop's body for each known value; else once, after which texts that it changed are unknown."""
        if isinstance(values, list) and target is not None:
            for value in values:
                self._assign(target, value)
                self.run(body)
            return
        if target is not None:
            self._assign(target, None)
        self._times_unknown += 1
        before = dict(self._names)
        self.run(body)
        for name, value in self._names.items():
            if isinstance(value, str) and before.get(name) != value:  # put together who knows how often
                self._names[name] = None
        self._times_unknown -= 1

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            values = value if isinstance(value, list) and len(value) == len(target.elts) else [None] * len(target.elts)
            for part, part_value in zip(target.elts, values, strict=True):
                self._assign(part, part_value)
        elif isinstance(target, ast.Subscript) and isinstance(holder := self._value(target.value), list):
            holder.append(None)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooLong

    # -- values --------------------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> Any:
        self._step()
        self._depth += 1
        try:
            return self._evaluate(node) if self._depth <= _DEEPEST else None
        finally:
            self._depth -= 1

    def _evaluate(self, node: ast.expr) -> Any:
        """Return the value of an expression as far as literals, paths and file contents determine it, else None."""
        match node:
            case ast.Constant(value=bytes() as value):
                return value.decode("utf-8", "replace")
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._names.get(name)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self._value(element) for element in elements]
            case ast.JoinedStr(values=values):
                parts = [self._value(v.value if isinstance(v, ast.FormattedValue) else v) for v in values]
                plain = [p.path if isinstance(p, NamedPath) else str(p) if type(p) is int else p for p in parts]
                is_plain = all(isinstance(p, str) for p in plain) and sum(map(len, plain)) < LONGEST_TEXT
                return "".join(plain) if is_plain else None
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return added(self._value(left), self._value(right))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return joined([self._value(left), self._value(right)])
            case ast.Dict(keys=keys, values=values):
                return {k: self._value(v) for key, v in zip(keys, values, strict=True)
                        if key is not None and isinstance(k := self._value(key), str)}  # fmt: skip
            case ast.Subscript(value=value, slice=index):
                holder, key = self._value(value), self._value(index)
                if isinstance(holder, list) and isinstance(key, int) and -len(holder) <= key < len(holder):
                    return holder[key]
                return holder.get(key) if isinstance(holder, dict) and isinstance(key, str) else computed(holder)
            case ast.Attribute(value=value, attr=attr):
                holder = self._value(value)
                return holder if isinstance(holder, Text) and attr in ("text", "content", "stdout") else None
            case ast.NamedExpr(target=target, value=value):
                made = self._value(value)
                self._assign(target, made)
                return made
            case ast.IfExp(body=body):
                return computed(self._value(body))
            case ast.Call():
                return self._call(node)
            case _:
                return None

    def _call(self, node: ast.Call) -> Any:
        """Evaluate a call of a method, of a function of the script, or of a module."""
        holder = self._value(node.func.value) if isinstance(node.func, ast.Attribute) else None
        values = [self._value(argument) for argument in node.args]
        named = {k.arg: self._value(k.value) for k in node.keywords if k.arg}
        if isinstance(node.func, ast.Attribute):
            if holder is None:
                return self._call_module(ast.unparse(node.func)[:80], values, named)
            return self._call_method(holder, node.func.attr, values, named)
        if isinstance(node.func, ast.Name):
            function = self._functions.get(node.func.id)
            if function is not None:
                return self._call_function(function, values, named)
            return self._call_module(node.func.id, values, named)
        return None

    def _call_function(self, function: ast.FunctionDef, values: list[Any], named: dict[str, Any]) -> Any:
        """Run a function of the script with these arguments, in names of its own, to a limited depth."""
        parameters = [a.arg for a in function.args.args]
        if self._depth > _DEEPEST // 2:
            return None
        outer, self._names = self._names, dict(self._names)
        for name, default in zip(reversed(parameters), reversed(function.args.defaults), strict=False):
            self._names[name] = self._value(default)
        self._names.update(zip(parameters, values, strict=False))
        self._names.update(named)
        self._depth += 5
        try:
            self.run(function.body)
            last = function.body[-1]
            return self._value(last.value) if isinstance(last, ast.Return) and last.value is not None else None
        finally:
            self._depth -= 5
            self._names = outer

    def _call_module(self, name: str, values: list[Any], named: dict[str, Any]) -> Any:
        """Evaluate a call of a module's function: files it opens, writes, copies or deletes are noted."""
        first, second = (*values[:2], None, None)[:2]
        match name.rpartition(".")[2], name:
            case "open", _:
                return self._open(path_of(first if values else named.get("file")), second or named.get("mode") or "r")
            case "Path" | "PurePath" | "PosixPath", _:
                return joined(values) if values else NamedPath("")
            case "cwd" | "getcwd", _:
                return NamedPath("")
            case "join", "os.path.join" | "path.join":
                return joined(values)
            case "print", _:
                if isinstance(file := named.get("file"), OpenFile):
                    text = " ".join(values) + "\n" if all(isinstance(v, str) for v in values) else None
                    self.write(file.path, text, file)
            case "dump" | "safe_dump" | "copyfileobj", _:
                for value in (*values, *named.values()):
                    if isinstance(value, OpenFile):
                        self.write(value.path, None, value)
            case "remove" | "unlink" | "rmtree", _:
                self._delete(first)
            case "rename" | "replace" | "move" | "renames", "os.rename" | "os.replace" | "shutil.move" | "os.renames":
                self._move(first, second)
            case "copy" | "copy2" | "copyfile" | "copytree", _ if name.startswith("shutil."):
                if (new := path_of(second)) is not None:
                    self._add(Write(path=new, op="modify", origin="copied", source=path_of(first)))
            case "urlretrieve", _:
                if (path := path_of(second)) is not None:
                    self.write(path, Text(origin="network", source=short(first)), None)
            case "urlopen", _:
                return Text(origin="network", source=short(first))
            case (("get" | "post"), _) if name.startswith(("requests.", "httpx.")):
                return Text(origin="network", source=short(first))
            case (("run" | "call" | "check_call" | "check_output" | "Popen"), _) if (
                "subprocess" in name or "." not in name
            ):
                return self._run_command(first)
            case (("system" | "popen"), _) if name.startswith("os."):
                return self._run_command(first)
            case "dedent", _:
                return textwrap.dedent(first) if isinstance(first, str) else computed(first)
            case "sub", _ if name.startswith("re.") and len(values) > 2:
                return computed(values[2])
            case "Request" | "str" | "bytes", _:
                return first
        return next((computed(v) for v in values if isinstance(v, Text)), None)

    def _call_method(self, holder: Any, name: str, values: list[Any], named: dict[str, Any]) -> Any:
        """Evaluate a call of a method: reading and writing of files and paths, and of texts and lists."""
        first, second = (*values[:2], None, None)[:2]
        if isinstance(holder, str) and name in ("read_text", "write_text", "unlink", "open"):
            holder = NamedPath(holder)
        match holder, name:
            case NamedPath() | OpenFile(), "read" | "read_text" | "read_bytes":
                return Text(path=holder.path)
            case NamedPath() | OpenFile(), "readlines" | "readline":
                return Text(path=holder.path, computed=True)
            case OpenFile(), "write" | "writelines":
                joined_lines = "".join(first) if are_texts(first) else computed(first)
                text = joined_lines if name == "writelines" else first
                self.write(holder.path, text, holder)
            case NamedPath(), "write_text" | "write_bytes":
                self.write(holder.path, first if values else named.get("data"), None)
            case NamedPath(), "open":
                return self._open(holder.path, first or named.get("mode") or "r")
            case NamedPath(), "unlink":
                self._delete(holder)
            case NamedPath(), "rename" | "replace":
                self._move(holder, first)
            case NamedPath(), "joinpath":
                return joined([holder, *values])
            case NamedPath(), "resolve" | "absolute" | "expanduser":
                return holder
            case Text(), "replace" if isinstance(first, str) and isinstance(second, str) and not holder.computed:
                return structs.replace(holder, changes=(*holder.changes, (first, second, len(values) < 3)))
            case Text(), "read" | "decode" | "encode" | "raise_for_status":
                return holder
            case Text(), _:
                return computed(holder)
            case str(), "replace" if isinstance(first, str) and isinstance(second, str):
                is_short = len(holder) + (holder.count(first) + 1) * len(second) < LONGEST_TEXT
                return holder.replace(first, second) if is_short else None
            case str(), "encode":
                return holder
            case str(), "strip" | "lstrip" | "rstrip":
                return getattr(holder, name)(first) if first is None or isinstance(first, str) else None
            case str(), "join":
                is_short = are_texts(first) and sum(map(len, first)) + len(holder) * len(first) < LONGEST_TEXT
                return holder.join(first) if is_short else next(map(computed, values), None)
            case list(), "append" | "extend" | "insert":
                # Of what is added who knows how often nothing is known.
                holder.append(first if name == "append" and not self._times_unknown else None)
            case dict(), "items":
                return [[key, value] for key, value in holder.items()]
        return None

    # -- effects ---------------------------------------------------------------------------------------------------

    def _open(self, path: str | None, mode: Any) -> OpenFile | None:
        if path is None or not isinstance(mode, str):
            return None
        file = OpenFile(path, mode)
        if any(sign in mode for sign in "wax"):
            self.opened.append(file)
        return file

    def write(self, path: str, value: Any, file: OpenFile | None) -> None:
        """Record a write. The text of an unknown value is unknown."""
        appends = file is not None and ("a" in file.mode or file.is_written)
        if file is not None:
            file.is_written = True
        if self._times_unknown:
            value = None
        if isinstance(value, str):
            how: Literal["append", "whole"] = "append" if appends else "whole"
            self._add(Write(path=path, op="modify", how=how, new=value, origin="written"))
        elif isinstance(value, Text) and value.path == path and not value.computed:
            for old, new, everywhere in value.changes:
                self._add(
                    Write(
                        path=path, op="modify", how="replace", old=old, new=new, everywhere=everywhere, origin="written"
                    )
                )
            if value.before:
                self._add(Write(path=path, op="modify", how="insert", new=value.before, line=0, origin="written"))
            if value.after:
                self._add(Write(path=path, op="modify", how="append", new=value.after, origin="written"))
        elif isinstance(value, Text) and value.path != path:
            source = value.source or value.path
            self._add(Write(path=path, op="modify", origin=value.origin, source=source))
        else:
            self._add(Write(path=path, op="modify", origin="program", source="python"))

    def _add(self, write: Write) -> None:
        if not UNRESOLVED(write.path) and not write.path.startswith("/dev/"):
            self.writes.append(write)

    def _delete(self, value: Any) -> None:
        if (path := path_of(value)) is not None:
            self._add(Write(path=path, op="delete"))

    def _move(self, source: Any, target: Any) -> None:
        if (old := path_of(source)) is not None and (new := path_of(target)) is not None:
            self._add(Write(path=old, op="delete"))
            self._add(Write(path=new, op="rename", origin="copied", source=old))

    def _run_command(self, value: Any) -> Any:
        words = value if are_texts(value) else None
        if words is not None or isinstance(value, str):
            plain = (w if w.isalnum() else "'" + w.replace("'", "'\"'\"'") + "'" for w in words or ())
            command = " ".join(plain) if words is not None else value
            self.commands.append(command)
            if command.startswith("git show "):
                return Text(origin="repository", source=command.removeprefix("git show ")[:200])
        return None
