"""A Python module as rules see it: calls by the name of what they call, and what is known of their arguments."""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache

from agentsignals.scanning.rules.rule import Span, Text

_FROM_OUTSIDE = frozenset(
    ("args", "form", "json", "values", "files", "cookies", "headers", "query_params", "path_params", "data", "GET",
     "POST", "get_json", "body", "META", "FILES", "COOKIES")
)  # fmt: skip
"""What frameworks for the web call the parts of a request that its sender chooses."""
_REQUESTS = ("request", "req")


class Call:
    """A call with the full name of what it calls, as far as imports tell it."""

    def __init__(self, node: ast.Call, name: str, scope: int) -> None:
        self.node, self.name, self.scope = node, name, scope

    def argument(self, keyword: str, position: int | None = None) -> ast.expr | None:
        """The argument of this keyword or position."""
        for passed in self.node.keywords:
            if passed.arg == keyword:
                return passed.value
        args = self.node.args
        return args[position] if position is not None and position < len(args) else None

    def is_set(self, keyword: str, value: object, position: int | None = None) -> bool:
        """Whether an argument is this constant."""
        argument = self.argument(keyword, position)
        return isinstance(argument, ast.Constant) and argument.value is value

    @property
    def first(self) -> ast.expr | None:
        return self.node.args[0] if self.node.args else None


class Module:
    """A parsed module. Names are followed to what was assigned to them in the same function."""

    def __init__(self, tree: ast.Module) -> None:
        self.calls: list[Call] = []
        self.assigned: list[tuple[str, ast.expr, ast.stmt]] = []
        self._names: dict[str, str] = {}
        self._values: dict[tuple[int, str], list[ast.expr]] = defaultdict(list)
        # What is known already: names are asked about as often as they are used, and may have many values.
        self._built: dict[tuple[int, str], ast.expr | None] = {}
        self._outside: dict[tuple[int, str], bool] = {}
        self._looked_at: dict[int, tuple[bool, frozenset[str]]] = {}
        waiting: list[tuple[ast.AST, int]] = [(tree, 0)]
        calls: list[tuple[ast.Call, int]] = []
        scopes = 0
        while waiting:  # a stack of our own: nesting is as deep as somebody likes
            node, scope = waiting.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                scopes += 1
                scope = scopes
            elif isinstance(node, ast.Call):
                calls.append((node, scope))
            else:
                self._keep(node, scope)
            waiting.extend((child, scope) for child in ast.iter_child_nodes(node))
        for call, scope in calls:
            self.calls.append(Call(call, self.name_of(call.func), scope))
        self.imported = set(self._names.values())

    def _keep(self, node: ast.AST, scope: int) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                name = _last(target)
                self.assigned.append((name, node.value, node))
                if isinstance(target, ast.Name):
                    self._values[scope, name].append(node.value)

    def name_of(self, node: ast.expr) -> str:
        """`subprocess.run` for `sp.run` after `import subprocess as sp`; `.execute` for a method of who knows what."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            parts.append(self._names.get(node.id, node.id))
        else:
            parts.append("")
        return ".".join(reversed(parts))

    def named(self, *names: str) -> Iterator[Call]:
        """Calls of these full names; a name that begins with a dot is any method called so."""
        whole = {n for n in names if not n.startswith(".")}
        methods = {n[1:] for n in names if n.startswith(".")}
        for call in self.calls:
            before, _, last = call.name.rpartition(".")
            if call.name in whole or (last in methods and (before or call.name.startswith("."))):
                yield call

    def is_built(self, node: ast.expr | None, scope: int, followed: bool = True) -> bool:
        """Whether a text is put together from something that is not constant."""
        parts = list(_summands(node)) if node is not None else []
        if len(parts) > 1 and any(map(is_text, parts)) and not all(map(is_fixed, parts)):
            return True
        return any(self._is_built_at_once(part, scope, followed) for part in parts)

    def _is_built_at_once(self, node: ast.expr, scope: int, followed: bool) -> bool:
        if isinstance(node, ast.JoinedStr):
            return any(isinstance(v, ast.FormattedValue) and not is_fixed(v.value) for v in node.values)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            arguments = [*node.args, *(k.value for k in node.keywords)]
            return is_text(node.func.value) and not all(is_fixed(argument) for argument in arguments)
        return isinstance(node, ast.Name) and followed and self._built_value(scope, node.id) is not None

    def _built_value(self, scope: int, name: str) -> ast.expr | None:
        """The first of a name's values that is put together."""
        key = scope, name
        if key not in self._built:
            values = self._values.get(key, ())
            self._built[key] = next((v for v in values if self.is_built(v, scope, followed=False)), None)
        return self._built[key]

    def text_of(self, node: ast.expr | None, scope: int) -> str:
        """The constant beginning of a text, for telling what kind of text it is."""
        if isinstance(node, ast.Name):
            node = self._built_value(scope, node.id) or node
        while isinstance(node, ast.BinOp):
            node = node.left
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        if isinstance(node, ast.JoinedStr):
            node = node.values[0] if node.values else None
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""

    def is_from_request(self, node: ast.expr | None, scope: int) -> bool:
        """Whether a value is, or holds, what the sender of a web request chose."""
        if node is None:
            return False
        is_outside, names = self._look_at(node)
        return is_outside or any(self._is_outside(scope, name) for name in names)

    def _is_outside(self, scope: int, name: str) -> bool:
        key = scope, name
        if key not in self._outside:
            self._outside[key] = any(self._look_at(value)[0] for value in self._values.get(key, ()))
        return self._outside[key]

    def _look_at(self, node: ast.expr) -> tuple[bool, frozenset[str]]:
        """Whether a part of a request is in a value, and the names in it."""
        if id(node) not in self._looked_at:
            parts = list(ast.walk(node))
            self._looked_at[id(node)] = (
                any(
                    isinstance(part, ast.Attribute) and part.attr in _FROM_OUTSIDE and _last(part.value) in _REQUESTS
                    for part in parts
                ),
                frozenset(part.id for part in parts if isinstance(part, ast.Name)),
            )
        return self._looked_at[id(node)]


def _summands(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of a sum, or of a text and what fills it; without recursion, for a sum is as long as somebody likes."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Mod):
            waiting += (part.right, part.left)
        else:
            yield part


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""


def is_text(node: ast.expr) -> bool:
    """Whether an expression is a written text, plain or formatted."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_fixed(node: ast.expr) -> bool:
    """Whether a value is written in the program: a literal, or a name in capitals, which by custom is a constant."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name | ast.Attribute):
            if not _last(part).isupper():
                return False
        elif isinstance(part, ast.JoinedStr):
            waiting += [v.value for v in part.values if isinstance(v, ast.FormattedValue)]
        elif isinstance(part, ast.List | ast.Tuple):
            waiting += part.elts
        elif isinstance(part, ast.BinOp):
            waiting += (part.left, part.right)
        elif not isinstance(part, ast.Constant):
            return False
    return True


@lru_cache(maxsize=4)
def module_of(text: str) -> Module | None:
    """The module of a text; None when it is no Python of this version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Module(ast.parse(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def in_tree(look: Callable[[Module], Iterator[ast.AST]]) -> Callable[[Text], Iterator[Span]]:
    """A rule over the parsed module, as a rule over a text. Nothing for what can't be parsed."""

    def find(text: Text) -> Iterator[Span]:
        module = module_of(text.text)
        for node in look(module) if module is not None else ():
            line = getattr(node, "lineno", 1)
            end = getattr(node, "end_lineno", None) or line
            begin = text.offset_of(line)
            stop = text.text.find("\n", text.offset_of(end))
            yield begin, stop if stop >= 0 else len(text.text)

    return find
