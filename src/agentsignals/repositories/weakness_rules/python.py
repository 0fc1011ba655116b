"""A Python module as rules see it: calls by the name of what they call, and what is known of their arguments."""

from __future__ import annotations

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

_FROM_OUTSIDE = frozenset(
    ("args", "form", "json", "values", "files", "cookies", "headers", "query_params", "path_params", "data", "GET",
     "POST", "get_json", "body", "META", "FILES", "COOKIES")
)  # fmt: skip
"""Names that web frameworks give to the parts of a request that its sender chooses."""
_REQUESTS = ("request", "req")


class Call:
    """A call with the full name of what it calls, as far as imports tell it."""

    def __init__(self, node: ast.Call, name: str, scope: int) -> None:
        self.node, self.name, self.scope = node, name, scope

    def argument(self, keyword: str, position: int | None = None) -> ast.expr | None:
        for passed in self.node.keywords:
            if passed.arg == keyword:
                return passed.value
        args = self.node.args
        return args[position] if position is not None and position < len(args) else None

    def is_set(self, keyword: str, value: object) -> bool:
        """Return whether an argument is this constant."""
        argument = self.argument(keyword)
        return isinstance(argument, ast.Constant) and argument.value is value

    @property
    def first(self) -> ast.expr | None:
        return self.node.args[0] if self.node.args else None


class Module:
    """A parsed module. Names are followed to what was assigned to them in the same function."""

    def __init__(self, tree: ast.Module) -> None:
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
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self._names[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom) and node.module:
                self._names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    name = _last(target)
                    self.assigned.append((name, node.value, node))
                    if isinstance(target, ast.Name):
                        self._values[scope, name].append(node.value)
            waiting.extend((child, scope) for child in ast.iter_child_nodes(node))
        self.calls = [Call(call, self.name_of(call.func), scope) for call, scope in calls]
        self._libraries = {name.split(".")[0] for name in self._names.values()}

    def name_of(self, node: ast.expr) -> str:
        """`subprocess.run` for `sp.run` after `import subprocess as sp`; `.execute` for a method of who knows what."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        parts.append(self._names.get(node.id, node.id) if isinstance(node, ast.Name) else "")
        return ".".join(reversed(parts))

    def last_name(self, node: ast.expr) -> str:
        """`run` for `sp.run`."""
        return self.name_of(node).rpartition(".")[2]

    def imports(self, library: str) -> bool:
        return library in self._libraries

    def named(self, *names: str) -> Iterator[Call]:
        """Calls of these full names; a name that begins with a dot is any method called so."""
        whole = {n for n in names if not n.startswith(".")}
        methods = {n[1:] for n in names if n.startswith(".")}
        for call in self.calls:
            before, _, last = call.name.rpartition(".")
            if call.name in whole or (last in methods and (before or call.name.startswith("."))):
                yield call

    def is_built(self, node: ast.expr | None, scope: int, followed: bool = True) -> bool:
        """Return whether a text is put together from something that is not constant."""
        parts: list[ast.expr] = []
        waiting = [node] if node is not None else []
        while waiting:  # the parts of a sum, or of a text and what fills it: a sum is as long as somebody likes
            part = waiting.pop()
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Mod):
                waiting += (part.right, part.left)
            else:
                parts.append(part)
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
        """Return whether a value is, or holds, something that the sender of a web request chose."""
        if node is None:
            return False
        is_outside, names = self._look_at(node)
        for name in () if is_outside else names:
            key = scope, name
            if key not in self._outside:
                self._outside[key] = any(self._look_at(value)[0] for value in self._values.get(key, ()))
            is_outside = is_outside or self._outside[key]
        return is_outside

    def _look_at(self, node: ast.expr) -> tuple[bool, frozenset[str]]:
        """Return whether a value holds a part of a request, and the names in it."""
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


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_fixed(node: ast.expr) -> bool:
    """Return whether a value is constant: a literal, or a name in capitals."""
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


# Conditions that `rules.toml` names, of a call.

Look = Callable[[Module], Iterator[ast.AST]]
Condition = Callable[[Module, Call], bool]


_SQL = re.compile(r"\s{0,20}(?:select|insert|update|delete|replace|create|drop|alter|with|truncate|merge)\b", re.I)


def path_is_requested(module: Module, call: Call) -> bool:
    if not any(module.is_from_request(argument, call.scope) for argument in call.node.args):
        return False
    names = (getattr(part, "attr", None) or getattr(part, "id", None) for part in ast.walk(call.node))
    return not any(name in ("secure_filename", "basename", "safe_join", "int", "uuid") for name in names)


def any_scheme(module: Module, call: Call) -> bool:
    url = call.argument("url", 0)
    if url is None or is_fixed(url) or module.is_from_request(url, call.scope):
        return False
    if isinstance(url, ast.Call) or (isinstance(url, ast.Name) and url.id in ("req", "request")):
        return False
    return not module.text_of(url, call.scope).startswith(("http://", "https://"))


def is_world_writable(_: Module, call: Call) -> bool:
    arguments = [*call.node.args, *(k.value for k in call.node.keywords)]
    values = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
    return any(type(value) is int and value & 0o002 and 0o100 <= value <= 0o7777 for value in values)


def is_weak_cipher(module: Module, call: Call) -> bool:
    parts = call.name.split(".")
    if parts[0] in ("Crypto", "Cryptodome") and parts[-1] == "new":
        modes = {module.last_name(a) for a in call.node.args}
        return bool({"DES", "DES3", "ARC2", "ARC4", "Blowfish"} & set(parts)) or "MODE_ECB" in modes
    return parts[0] == "cryptography" and parts[-1] in ("TripleDES", "ARC4", "Blowfish", "ECB", "IDEA", "CAST5")


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def is_unsigned(_: Module, call: Call) -> bool:
    options = call.argument("options")
    return call.is_set("verify", False) or (
        isinstance(options, ast.Dict)
        and any(
            isinstance(key, ast.Constant) and key.value == "verify_signature" and _is_false(value)
            for key, value in zip(options.keys, options.values, strict=True)
        )
    )


def format_is_requested(module: Module, call: Call) -> bool:
    receiver = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
    return receiver is not None and not is_text(receiver) and module.is_from_request(receiver, call.scope)


def fields_are_requested(module: Module, call: Call) -> bool:
    """In calls that fill the fields of a stored object: methods for that, and what is named as a class."""
    last = call.name.rpartition(".")[2]
    stores = ("create", "update", "update_or_create", "get_or_create", "insert", "setattr")
    return (last[:1].isupper() or last in stores) and any(
        k.arg is None and module.is_from_request(k.value, call.scope) for k in call.node.keywords
    )


# Of a module: the nodes that are weak.

_GUARDED = re.compile(r"token|secret|passw|otp|nonce|session_?id|api_?key|salt|csrf", re.I)
_RANDOM = frozenset(
    f"random.{n}" for n in ("random", "randint", "choice", "choices", "randrange", "getrandbits", "sample")
)


def guessable_secrets(module: Module) -> Iterator[ast.AST]:
    reported: set[int] = set()
    for name, value, statement in module.assigned:
        if id(statement) in reported or not _GUARDED.search(name):  # a statement may give its value to many names
            continue
        reported.add(id(statement))
        if any(isinstance(part, ast.Call) and module.name_of(part.func) in _RANDOM for part in ast.walk(value)):
            yield statement


def unverified(module: Module) -> Iterator[ast.AST]:
    for call in module.calls:
        asks = call.name.startswith(("requests.", "httpx.", "aiohttp.")) or "session" in call.name.lower()
        off = call.is_set("verify_ssl", False) or (asks and call.is_set("verify", False))
        if off or call.name == "ssl._create_unverified_context":
            yield call.node
    for name, value, statement in module.assigned:
        off = name == "check_hostname" and _is_false(value)
        if off or (name == "verify_mode" and module.name_of(value) == "ssl.CERT_NONE"):
            yield statement


def _varies(node: ast.expr | None) -> bool:
    return node is not None and not is_fixed(node)


def _is_put_in(module: Module, call: Call) -> bool:
    return module.is_built(call.first, call.scope) or module.is_from_request(call.first, call.scope)


def _name(module: Module, node: ast.expr | None) -> str:
    return module.last_name(node) if node is not None else ""


def _called(call: Call) -> ast.expr | None:
    return call.first.func if isinstance(call.first, ast.Call) else call.first


_SAFE_LOADERS = ("SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader")
_CONDITIONS: dict[str, Condition] = {
    "always": lambda module, call: True,
    "first_varies": lambda module, call: _varies(call.first),
    "shell_varies": lambda module, call: call.is_set("shell", True) and _varies(call.argument("args", 0)),
    "first_is_put_in": _is_put_in,
    "sql_is_built": lambda module, call: (
        module.is_built(call.first, call.scope) and bool(_SQL.match(module.text_of(call.first, call.scope)))
    ),
    "path_is_requested": path_is_requested,
    "url_is_requested": lambda module, call: module.is_from_request(call.argument("url", 0), call.scope),
    "is_unfiltered_tar": lambda module, call: (
        module.imports("tarfile") and call.argument("filter") is None and "zip" not in call.name.lower()
    ),
    "any_scheme": any_scheme,
    "is_world_writable": is_world_writable,
    # Encoded in the same expression, nobody else chose the value.
    "decodes_foreign_data": lambda module, call: (
        _varies(call.first) and not (isinstance(call.first, ast.Call) and _name(module, call.first.func) == "dumps")
    ),
    "has_unsafe_loader": lambda module, call: (
        call.name == "yaml.unsafe_load" or _name(module, call.argument("Loader", 1)) not in _SAFE_LOADERS
    ),
    "is_weak_hash": lambda module, call: (
        (call.name != "hashlib.new" or str(getattr(call.first, "value", "")).lower() in ("md5", "md4", "sha1", "sha"))
        and not call.is_set("usedforsecurity", False)
    ),
    "is_weak_cipher": is_weak_cipher,
    "takes_any_host_key": lambda module, call: _name(module, _called(call)) in ("AutoAddPolicy", "WarningPolicy"),
    "is_unsigned": is_unsigned,
    "is_unescaped": lambda module, call: (
        call.is_set("autoescape", False) if call.name == "jinja2.Environment" else _is_put_in(module, call)
    ),
    "format_is_requested": format_is_requested,
    "fields_are_requested": fields_are_requested,
    "pattern_piles_up": lambda module, call: (
        isinstance(call.first, ast.Constant) and isinstance(call.first.value, str) and piles_up(call.first.value)
    ),
}
_LOOKS: dict[str, Look] = {look.__name__: look for look in (guessable_secrets, unverified)}
_CONSTANTS = {"True": True, "False": False}


def look_of(row: dict[str, Any]) -> Look:
    """Return the function that finds the weak nodes of a module.

    It is a function of this package (`find`), or it matches the calls of the rule's names (all calls where it names
    none) whose condition (`if`) holds, or that pass one of its arguments (`given`: `debug=True`)."""
    return _LOOKS[row["find"]] if "find" in row else partial(_weak_calls, row)


def _weak_calls(row: dict[str, Any], module: Module) -> Iterator[ast.AST]:
    if "imports" in row and not module.imports(row["imports"]):
        return
    given = [word.split("=") for word in row.get("given", "").split()]
    for call in module.named(*row["calls"].split()) if "calls" in row else module.calls:
        is_given = any(call.is_set(name, _CONSTANTS[value]) for name, value in given)
        if is_given or ("if" in row and _CONDITIONS[row["if"]](module, call)):
            yield call.node


# Regular expressions that some texts keep busy for ever, told from their own text.

_LONGEST_PATTERN = 2_000
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\]", re.DOTALL)
_TIMES = re.compile(r"([*+]|\{\d*,\d*\}|\?|\{\d+\})[?+]?")


def piles_up(pattern: str) -> bool:
    r"""Return whether an unbounded group can itself match a text in several ways, as in `(a+)+` or `(\w+\s?)*`: all
    its parts but one may be empty, and that one repeats without bound."""
    if len(pattern) > _LONGEST_PATTERN:
        return False
    groups: list[list[tuple[bool, bool]]] = [[]]  # parts of each open group: may be empty, repeated without bound
    splits: list[bool] = [False]
    at = 0
    while at < len(pattern):
        atom = _ATOM.match(pattern, at)
        if atom is None:  # ends with a backslash, or in a class
            return False
        at = atom.end()
        word = atom[0]
        if word == "(":
            groups.append([])
            splits.append(False)
            head = re.match(r"\?(?:[:=!>]|<[=!]|P?<\w+>|[a-zA-Z]*:)", pattern[at : at + 60])
            at = at + head.end() if head else at
            continue
        if word == "|":
            splits[-1] = True
            continue
        inner: list[tuple[bool, bool]] = []
        divided = False
        if word == ")":
            if len(groups) == 1:
                return False
            inner, divided = groups.pop(), splits.pop()
        times = _TIMES.match(pattern, at)
        quantifier = times[1] if times else ""
        at = times.end() if times else at
        endless = quantifier in ("*", "+") or quantifier.endswith(",}")
        if word == ")" and endless and not divided:
            needed = [endless for empty, endless in inner if not empty]
            if needed == [True] or (not needed and any(endless for _, endless in inner)):
                return True
        if word not in ("^", "$"):
            groups[-1].append((quantifier in ("*", "?") or quantifier.startswith(("{0,", "{,")), endless))
    return False
