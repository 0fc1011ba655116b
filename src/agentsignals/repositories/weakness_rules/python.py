"""A Python module as rules see it: calls by the name of what they call, and what is known of their arguments."""

from __future__ import annotations

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache

from agentsignals.repositories.weakness_rules.rule import Span, Text, piles_up, rule

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
        """The argument of this keyword or position."""
        for passed in self.node.keywords:
            if passed.arg == keyword:
                return passed.value
        args = self.node.args
        return args[position] if position is not None and position < len(args) else None

    def is_set(self, keyword: str, value: object, position: int | None = None) -> bool:
        """Return whether an argument is this constant."""
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
        self._libraries = {name.split(".")[0] for name in self._names.values()}

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

    def last_name(self, node: ast.expr) -> str:
        """`run` for `sp.run`."""
        return self.name_of(node).rpartition(".")[2]

    def imports(self, library: str) -> bool:
        """Return whether the module imports a library, or something of it."""
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
        """Return whether a value is, or holds, something that the sender of a web request chose."""
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
    """Return whether an expression is a literal text, plain or formatted."""
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


Look = Callable[[Module], Iterator[ast.AST]]
"""Yields the nodes of a parsed module that are weak."""


def _calls(names: str, is_weak: Callable[[Module, Call], bool]) -> Look:
    """The calls of these names (all calls for none) for which the condition holds."""

    def look(module: Module) -> Iterator[ast.AST]:
        calls = module.named(*names.split()) if names else module.calls
        return (call.node for call in calls if is_weak(module, call))

    return look


def _first_varies(_: Module, call: Call) -> bool:
    return call.first is not None and not is_fixed(call.first)


def _shell_varies(_: Module, call: Call) -> bool:
    command = call.argument("args", 0)
    return call.is_set("shell", True) and command is not None and not is_fixed(command)


_SQL = re.compile(r"\s{0,20}(?:select|insert|update|delete|replace|create|drop|alter|with|truncate|merge)\b", re.I)


def _sql_is_built(module: Module, call: Call) -> bool:
    return module.is_built(call.first, call.scope) and bool(_SQL.match(module.text_of(call.first, call.scope)))


def _path_is_requested(module: Module, call: Call) -> bool:
    if not any(module.is_from_request(argument, call.scope) for argument in call.node.args):
        return False
    names = (getattr(part, "attr", None) or getattr(part, "id", None) for part in ast.walk(call.node))
    return not any(name in ("secure_filename", "basename", "safe_join", "int", "uuid") for name in names)


def _url_is_requested(module: Module, call: Call) -> bool:
    return module.is_from_request(call.argument("url", 0), call.scope)


def _is_unfiltered_tar(module: Module, call: Call) -> bool:
    return module.imports("tarfile") and call.argument("filter") is None and "zip" not in call.name.lower()


def _any_scheme(module: Module, call: Call) -> bool:
    url = call.argument("url", 0)
    if url is None or is_fixed(url) or module.is_from_request(url, call.scope):
        return False
    if isinstance(url, ast.Call) or (isinstance(url, ast.Name) and url.id in ("req", "request")):
        return False
    return not module.text_of(url, call.scope).startswith(("http://", "https://"))


def _is_world_writable(_: Module, call: Call) -> bool:
    arguments = [*call.node.args, *(k.value for k in call.node.keywords)]
    values = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
    return any(type(value) is int and value & 0o002 and 0o100 <= value <= 0o7777 for value in values)


def _decodes_foreign_data(module: Module, call: Call) -> bool:
    first = call.first
    # Encoded in the same expression, nobody else chose the value.
    is_own_copy = isinstance(first, ast.Call) and module.last_name(first.func) == "dumps"
    return first is not None and not is_fixed(first) and not is_own_copy


def _has_unsafe_loader(module: Module, call: Call) -> bool:
    loader = call.argument("Loader", 1)
    name = module.last_name(loader) if loader is not None else ""
    return call.name == "yaml.unsafe_load" or name not in ("SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader")


def _is_weak_hash(_: Module, call: Call) -> bool:
    kind = call.first
    if call.name == "hashlib.new" and not (
        isinstance(kind, ast.Constant) and str(kind.value).lower() in ("md5", "md4", "sha1", "sha")
    ):
        return False
    return not call.is_set("usedforsecurity", False)


def _is_weak_cipher(module: Module, call: Call) -> bool:
    parts = call.name.split(".")
    if parts[0] in ("Crypto", "Cryptodome") and parts[-1] == "new":
        modes = {module.last_name(a) for a in call.node.args}
        return bool({"DES", "DES3", "ARC2", "ARC4", "Blowfish"} & set(parts)) or "MODE_ECB" in modes
    return parts[0] == "cryptography" and parts[-1] in ("TripleDES", "ARC4", "Blowfish", "ECB", "IDEA", "CAST5")


_GUARDED = re.compile(r"token|secret|passw|otp|nonce|session_?id|api_?key|salt|csrf", re.I)
_RANDOM = frozenset(
    f"random.{n}" for n in ("random", "randint", "choice", "choices", "randrange", "getrandbits", "sample")
)


def _guessable_secrets(module: Module) -> Iterator[ast.AST]:
    reported: set[int] = set()
    for name, value, statement in module.assigned:
        if id(statement) in reported or not _GUARDED.search(name):  # a statement may give its value to many names
            continue
        reported.add(id(statement))
        if any(isinstance(part, ast.Call) and module.name_of(part.func) in _RANDOM for part in ast.walk(value)):
            yield statement


def _unverified(module: Module) -> Iterator[ast.AST]:
    for call in module.calls:
        asks = call.name.startswith(("requests.", "httpx.", "aiohttp.")) or "session" in call.name.lower()
        off = call.is_set("verify_ssl", False) or (asks and call.is_set("verify", False))
        if off or call.name == "ssl._create_unverified_context":
            yield call.node
    for name, value, statement in module.assigned:
        off = name == "check_hostname" and _is_false(value)
        if off or (name == "verify_mode" and module.name_of(value) == "ssl.CERT_NONE"):
            yield statement


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _takes_any_host_key(module: Module, call: Call) -> bool:
    policy = call.first.func if isinstance(call.first, ast.Call) else call.first
    return policy is not None and module.last_name(policy) in ("AutoAddPolicy", "WarningPolicy")


def _is_unsigned(_: Module, call: Call) -> bool:
    options = call.argument("options")
    return call.is_set("verify", False) or (
        isinstance(options, ast.Dict)
        and any(
            isinstance(key, ast.Constant) and key.value == "verify_signature" and _is_false(value)
            for key, value in zip(options.keys, options.values, strict=True)
        )
    )


def _first_is_put_in(module: Module, call: Call) -> bool:
    return module.is_built(call.first, call.scope) or module.is_from_request(call.first, call.scope)


def _unescaped(module: Module) -> Iterator[ast.AST]:
    yield from _calls("markupsafe.Markup flask.Markup django.utils.safestring.mark_safe", _first_is_put_in)(module)
    yield from _calls("jinja2.Environment", lambda _, call: call.is_set("autoescape", False))(module)


def _format_is_requested(module: Module, call: Call) -> bool:
    receiver = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
    return receiver is not None and not is_text(receiver) and module.is_from_request(receiver, call.scope)


def _fields_are_requested(module: Module, call: Call) -> bool:
    """In calls that fill the fields of a stored object: methods for that, and what is named as a class."""
    last = call.name.rpartition(".")[2]
    return (
        last[:1].isupper() or last in ("create", "update", "update_or_create", "get_or_create", "insert", "setattr")
    ) and any(k.arg is None and module.is_from_request(k.value, call.scope) for k in call.node.keywords)


def _pattern_piles_up(_: Module, call: Call) -> bool:
    first = call.first
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and piles_up(first.value)


def _in(module: str, names: str) -> str:
    return " ".join(f"{module}.{name}" for name in names.split())


_HTTP = " ".join(_in(library, "get post put head request") for library in ("requests", "httpx"))
_DECODERS = " ".join(
    _in(library, "load loads Unpickler")
    for library in ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal")
)
# fmt: off
_TABLE: tuple[tuple[str, str, str, Look], ...] = (
    # What is run, asked and opened.
    ("py-shell-true", "CWE-78 high medium", "A command that is not constant goes through a shell.",
     _calls(_in("subprocess", "run call check_call check_output Popen"), _shell_varies)),
    ("py-os-system", "CWE-78 high medium", "A command that is not constant goes through a shell.",
     _calls("os.system os.popen subprocess.getoutput subprocess.getstatusoutput commands.getoutput"
            " asyncio.create_subprocess_shell", _first_varies)),
    ("py-eval", "CWE-95 high medium", "A text that is not constant is run as code.",
     _calls("eval exec builtins.eval builtins.exec", _first_varies)),
    ("py-sql-built", "CWE-89 high medium", "SQL is put together from values; pass them as parameters.",
     _calls(".execute .executemany .executescript .raw sqlalchemy.text .read_sql", _sql_is_built)),
    ("py-path-from-request", "CWE-22 high high", "The sender of a request chooses a path.",
     _calls("open io.open os.open os.remove os.unlink os.path.join pathlib.Path flask.send_file shutil.copy"
            " shutil.rmtree codecs.open .joinpath", _path_is_requested)),
    ("py-tar-extract-all", "CWE-22 medium medium", "Members of an archive may lie outside the folder; give a filter.",
     _calls(".extractall", _is_unfiltered_tar)),
    ("py-url-from-request", "CWE-918 high high", "The sender of a request chooses an address to fetch.",
     _calls(f"{_HTTP} urllib.request.urlopen", _url_is_requested)),
    ("py-urlopen-any-scheme", "CWE-939 low low", "An address that is not constant may name a local file.",
     _calls("urllib.request.urlopen urllib.request.urlretrieve", _any_scheme)),
    ("py-open-redirect", "CWE-601 medium high", "The sender of a request chooses where it leads.",
     _calls("flask.redirect django.shortcuts.redirect django.http.HttpResponseRedirect redirect"
            " starlette.responses.RedirectResponse fastapi.responses.RedirectResponse", _url_is_requested)),
    ("py-debug-server", "CWE-489 medium high", "The debugger of the web server runs anybody's code.",
     _calls(".run", lambda module, call: module.imports("flask") and call.is_set("debug", True))),
    ("py-mktemp", "CWE-377 medium high", "Another process can take the name before the file is made.",
     _calls("tempfile.mktemp", lambda _module, _call: True)),
    ("py-world-writable", "CWE-732 medium high", "Everybody may write here.",
     _calls("os.chmod os.fchmod .chmod", _is_world_writable)),
    # What is decoded, hashed, encrypted, trusted and shown.
    ("py-unsafe-decoder", "CWE-502 high low", "Decoding runs code that the data names.",
     _calls(f"{_DECODERS} shelve.open joblib.load pandas.read_pickle jsonpickle.decode", _decodes_foreign_data)),
    ("py-unsafe-yaml", "CWE-502 high high", "This loader makes objects that the document names.",
     _calls("yaml.load yaml.load_all yaml.unsafe_load yaml.full_load_all", _has_unsafe_loader)),
    ("py-weak-hash", "CWE-328 low low", "MD5 and SHA-1 hold against nobody who looks for a collision.",
     _calls("hashlib.md5 hashlib.sha1 hashlib.new Crypto.Hash.MD5.new Crypto.Hash.SHA.new"
            " cryptography.hazmat.primitives.hashes.MD5", _is_weak_hash)),
    ("py-weak-cipher", "CWE-327 high high", "This cipher or mode is broken.", _calls("", _is_weak_cipher)),
    ("py-guessable-secret", "CWE-338 medium medium", "A secret is made of numbers that can be guessed.",
     _guessable_secrets),
    ("py-unverified-tls", "CWE-295 high high", "The other side's certificate is not checked.", _unverified),
    ("py-any-host-key", "CWE-295 medium high", "Any host key is taken.",
     _calls(".set_missing_host_key_policy", _takes_any_host_key)),
    ("py-unsigned-token", "CWE-347 high high", "The token's signature is not checked.",
     _calls("jwt.decode", _is_unsigned)),
    ("py-xml-entities", "CWE-611 medium high", "A document can name files that are read into it.",
     _calls("lxml.etree.XMLParser lxml.etree.iterparse",
            lambda _, call: call.is_set("resolve_entities", True) or call.is_set("no_network", False))),
    ("py-unescaped-markup", "CWE-79 medium medium", "A text with values in it is taken for safe markup.", _unescaped),
    ("py-template-built", "CWE-1336 high medium", "Values become part of a template, which is code.",
     _calls("flask.render_template_string jinja2.Template mako.template.Template", _first_is_put_in)),
    ("py-format-from-request", "CWE-134 medium medium", "The sender of a request chooses a format text.",
     _calls(".format .format_map", _format_is_requested)),
    ("py-mass-assignment", "CWE-915 medium medium", "The sender of a request chooses which fields are set.",
     _calls("", _fields_are_requested)),
    ("py-slow-pattern", "CWE-1333 medium medium", "A repetition of a repetition: some texts take exponential time.",
     _calls(_in("re", "compile match search fullmatch sub findall split finditer"), _pattern_piles_up)),
)
# fmt: on
_VERSIONS = {"py-sql-built": 2, "py-unescaped-markup": 2, "py-template-built": 2}


def _lines_of(look: Look) -> Callable[[Text], Iterator[Span]]:
    """The whole lines of the nodes that are weak; none of a file that can't be parsed."""

    def find(text: Text) -> Iterator[Span]:
        module = module_of(text.text)
        for node in look(module) if module is not None else ():
            line = getattr(node, "lineno", 1)
            stop = text.text.find("\n", text.offset_of(getattr(node, "end_lineno", None) or line))
            yield text.offset_of(line), stop if stop >= 0 else len(text.text)

    return find


RULES = tuple(
    rule(rule_id, rating, message, ("python",), _lines_of(look), _VERSIONS.get(rule_id, 1))
    for rule_id, rating, message, look in _TABLE
)
