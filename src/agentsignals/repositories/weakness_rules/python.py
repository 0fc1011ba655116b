"""A Python module as rules see it: calls by the name of what they call, and what is known of their arguments."""

from __future__ import annotations

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache

from agentsignals.repositories.weakness_rules.rule import Rule, Span, Text, piles_up, rule

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


RULES: list[Rule] = []


def tree_rule(
    rule_id: str, rating: str, message: str, version: int = 1
) -> Callable[[Callable[[Module], Iterator[ast.AST]]], Callable[[Module], Iterator[ast.AST]]]:
    """Declare the decorated function a rule: it yields the nodes of a parsed module that are weak."""

    def declare(look: Callable[[Module], Iterator[ast.AST]]) -> Callable[[Module], Iterator[ast.AST]]:
        def find(text: Text) -> Iterator[Span]:
            module = module_of(text.text)
            for node in look(module) if module is not None else ():  # a file that can't be parsed has none
                line = getattr(node, "lineno", 1)
                end = getattr(node, "end_lineno", None) or line
                begin = text.offset_of(line)
                stop = text.text.find("\n", text.offset_of(end))
                yield begin, stop if stop >= 0 else len(text.text)

        RULES.append(rule(rule_id, rating, message, ("python",), find, version))
        return look

    return declare


# Python: what is run, asked and opened.

_RUNNERS = tuple(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))
_SHELLS = ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput",
           "asyncio.create_subprocess_shell")  # fmt: skip
_SQL = re.compile(r"\s{0,20}(?:select|insert|update|delete|replace|create|drop|alter|with|truncate|merge)\b", re.I)
_OPENERS = ("open", "io.open", "os.open", "os.remove", "os.unlink", "os.path.join", "pathlib.Path", "flask.send_file",
            "shutil.copy", "shutil.rmtree", "codecs.open", ".joinpath")  # fmt: skip
_HTTP = tuple(f"{lib}.{verb}" for lib in ("requests", "httpx") for verb in ("get", "post", "put", "head", "request"))


@tree_rule("py-shell-true", "CWE-78 high medium", "A command that is not constant goes through a shell.")
def _shell_true(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_RUNNERS):
        command = call.argument("args", 0)
        if call.is_set("shell", True) and command is not None and not is_fixed(command):
            yield call.node


@tree_rule("py-os-system", "CWE-78 high medium", "A command that is not constant goes through a shell.")
def _system(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_SHELLS):
        if call.first is not None and not is_fixed(call.first):
            yield call.node


@tree_rule("py-eval", "CWE-95 high medium", "A text that is not constant is run as code.")
def _evaluated(module: Module) -> Iterator[ast.AST]:
    for call in module.named("eval", "exec", "builtins.eval", "builtins.exec"):
        if call.first is not None and not is_fixed(call.first):
            yield call.node


@tree_rule("py-sql-built", "CWE-89 high medium", "SQL is put together from values; pass them as parameters.", version=2)
def _sql(module: Module) -> Iterator[ast.AST]:
    for call in module.named(".execute", ".executemany", ".executescript", ".raw", "sqlalchemy.text", ".read_sql"):
        if module.is_built(call.first, call.scope) and _SQL.match(module.text_of(call.first, call.scope)):
            yield call.node


@tree_rule("py-path-from-request", "CWE-22 high high", "The sender of a request chooses a path.")
def _path(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_OPENERS):
        if any(module.is_from_request(argument, call.scope) for argument in call.node.args) and not _is_made_safe(
            call.node
        ):
            yield call.node


def _is_made_safe(node: ast.AST) -> bool:
    safe = ("secure_filename", "basename", "safe_join", "int", "uuid")
    names = (getattr(part, "attr", None) or getattr(part, "id", None) for part in ast.walk(node))
    return any(name in safe for name in names)


@tree_rule(
    "py-tar-extract-all",
    "CWE-22 medium medium",
    "Members of an archive may lie outside the folder; give a filter.",
)
def _extract_all(module: Module) -> Iterator[ast.AST]:
    if not any(name.split(".")[0] == "tarfile" for name in module.imported):
        return
    for call in module.named(".extractall"):
        if call.argument("filter") is None and "zip" not in call.name.lower():
            yield call.node


@tree_rule("py-url-from-request", "CWE-918 high high", "The sender of a request chooses an address to fetch.")
def _url_from_request(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_HTTP, "urllib.request.urlopen"):
        if module.is_from_request(call.argument("url", 0), call.scope):
            yield call.node


@tree_rule("py-urlopen-any-scheme", "CWE-939 low low", "An address that is not constant may name a local file.")
def _any_scheme(module: Module) -> Iterator[ast.AST]:
    for call in module.named("urllib.request.urlopen", "urllib.request.urlretrieve"):
        url = call.argument("url", 0)
        if url is None or is_fixed(url) or module.is_from_request(url, call.scope):
            continue
        if not module.text_of(url, call.scope).startswith(("http://", "https://")) and not (
            isinstance(url, ast.Call) or (isinstance(url, ast.Name) and url.id in ("req", "request"))
        ):
            yield call.node


@tree_rule("py-open-redirect", "CWE-601 medium high", "The sender of a request chooses where it leads.")
def _redirected(module: Module) -> Iterator[ast.AST]:
    names = ("flask.redirect", "django.shortcuts.redirect", "django.http.HttpResponseRedirect", "redirect",
             "starlette.responses.RedirectResponse", "fastapi.responses.RedirectResponse")  # fmt: skip
    for call in module.named(*names):
        if module.is_from_request(call.argument("url", 0), call.scope):
            yield call.node


@tree_rule("py-debug-server", "CWE-489 medium high", "The debugger of the web server runs anybody's code.")
def _debug_server(module: Module) -> Iterator[ast.AST]:
    if not any(name.split(".")[0] == "flask" for name in module.imported):
        return
    for call in module.named(".run"):
        if call.is_set("debug", True):
            yield call.node


@tree_rule("py-mktemp", "CWE-377 medium high", "Another process can take the name before the file is made.")
def _temporary(module: Module) -> Iterator[ast.AST]:
    yield from (call.node for call in module.named("tempfile.mktemp"))


@tree_rule("py-world-writable", "CWE-732 medium high", "Everybody may write here.")
def _mode(module: Module) -> Iterator[ast.AST]:
    for call in module.named("os.chmod", "os.fchmod", ".chmod"):
        arguments = [*call.node.args, *(k.value for k in call.node.keywords)]
        for argument in arguments:
            value = argument.value if isinstance(argument, ast.Constant) else None
            if type(value) is int and value & 0o002 and 0o100 <= value <= 0o7777:
                yield call.node


# Python: what is decoded, hashed, encrypted, trusted and shown.

_ENCODINGS = ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal")
_DECODERS = (
    *(f"{lib}.{verb}" for lib in _ENCODINGS for verb in ("load", "loads", "Unpickler")),
    "shelve.open",
    "joblib.load",
    "pandas.read_pickle",
    "jsonpickle.decode",
)
_SAFE_LOADERS = frozenset(("SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader"))
_GUARDED = re.compile(r"token|secret|passw|otp|nonce|session_?id|api_?key|salt|csrf", re.I)
_RE = tuple(f"re.{name}" for name in ("compile", "match", "search", "fullmatch", "sub", "findall", "split", "finditer"))
_HTTP_PYTHON_DATA = ("requests.", "httpx.", "aiohttp.")


@tree_rule("py-unsafe-decoder", "CWE-502 high low", "Decoding runs code that the data names.")
def _decoded(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_DECODERS):
        if call.first is not None and not is_fixed(call.first) and not _is_own_copy(module, call.first):
            yield call.node


def _is_own_copy(module: Module, node: ast.expr) -> bool:
    """Return whether the value was encoded in the same expression, so that nobody else chose it."""
    return isinstance(node, ast.Call) and module.name_of(node.func).rpartition(".")[2] == "dumps"


@tree_rule("py-unsafe-yaml", "CWE-502 high high", "This loader makes objects that the document names.")
def _yaml(module: Module) -> Iterator[ast.AST]:
    for call in module.named("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load_all"):
        loader = call.argument("Loader", 1)
        name = module.name_of(loader).rpartition(".")[2] if loader is not None else ""
        if call.name == "yaml.unsafe_load" or name not in _SAFE_LOADERS:
            yield call.node


@tree_rule("py-weak-hash", "CWE-328 low low", "MD5 and SHA-1 hold against nobody who looks for a collision.")
def _weak_hash(module: Module) -> Iterator[ast.AST]:
    for call in module.named("hashlib.md5", "hashlib.sha1", "hashlib.new", "Crypto.Hash.MD5.new", "Crypto.Hash.SHA.new",
                             "cryptography.hazmat.primitives.hashes.MD5"):  # fmt: skip
        if call.is_set("usedforsecurity", False):
            continue
        if call.name == "hashlib.new":
            kind = call.first
            if not (isinstance(kind, ast.Constant) and str(kind.value).lower() in ("md5", "md4", "sha1", "sha")):
                continue
        yield call.node


@tree_rule("py-weak-cipher", "CWE-327 high high", "This cipher or mode is broken.")
def _weak_cipher(module: Module) -> Iterator[ast.AST]:
    for call in module.calls:
        parts = call.name.split(".")
        if parts[0] in ("Crypto", "Cryptodome") and parts[-1] == "new":
            modes = {module.name_of(a).rpartition(".")[2] for a in call.node.args}
            if {"DES", "DES3", "ARC2", "ARC4", "Blowfish"} & set(parts) or "MODE_ECB" in modes:
                yield call.node
        elif parts[0] == "cryptography" and parts[-1] in ("TripleDES", "ARC4", "Blowfish", "ECB", "IDEA", "CAST5"):
            yield call.node


@tree_rule("py-guessable-secret", "CWE-338 medium medium", "A secret is made of numbers that can be guessed.")
def _weak_random(module: Module) -> Iterator[ast.AST]:
    reported: set[int] = set()
    for name, value, statement in module.assigned:
        if id(statement) in reported or not _GUARDED.search(name):  # a statement may give its value to many names
            continue
        reported.add(id(statement))
        if any(isinstance(part, ast.Call) and module.name_of(part.func) in _RANDOM for part in ast.walk(value)):
            yield statement


_RANDOM = frozenset(
    f"random.{n}" for n in ("random", "randint", "choice", "choices", "randrange", "getrandbits", "sample")
)


@tree_rule("py-unverified-tls", "CWE-295 high high", "The other side's certificate is not checked.")
def _unverified(module: Module) -> Iterator[ast.AST]:
    for call in module.calls:
        asks = call.name.startswith(_HTTP_PYTHON_DATA) or "session" in call.name.lower()
        off = call.is_set("verify_ssl", False) or (asks and call.is_set("verify", False))
        if off or call.name == "ssl._create_unverified_context":
            yield call.node
    for name, value, statement in module.assigned:
        off = name == "check_hostname" and _is_false(value)
        if off or (name == "verify_mode" and module.name_of(value) == "ssl.CERT_NONE"):
            yield statement


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


@tree_rule("py-any-host-key", "CWE-295 medium high", "Any host key is taken.")
def _any_host_key(module: Module) -> Iterator[ast.AST]:
    for call in module.named(".set_missing_host_key_policy"):
        policy = call.first.func if isinstance(call.first, ast.Call) else call.first
        if policy is not None and module.name_of(policy).rpartition(".")[2] in ("AutoAddPolicy", "WarningPolicy"):
            yield call.node


@tree_rule("py-unsigned-token", "CWE-347 high high", "The token's signature is not checked.")
def _unsigned(module: Module) -> Iterator[ast.AST]:
    for call in module.named("jwt.decode"):
        options = call.argument("options")
        off = isinstance(options, ast.Dict) and any(
            isinstance(key, ast.Constant) and key.value == "verify_signature" and _is_false(value)
            for key, value in zip(options.keys, options.values, strict=True)
        )
        if off or call.is_set("verify", False):
            yield call.node


@tree_rule("py-xml-entities", "CWE-611 medium high", "A document can name files that are read into it.")
def _entities(module: Module) -> Iterator[ast.AST]:
    for call in module.named("lxml.etree.XMLParser", "lxml.etree.iterparse"):
        if call.is_set("resolve_entities", True) or call.is_set("no_network", False):
            yield call.node


@tree_rule(
    "py-unescaped-markup", "CWE-79 medium medium", "A text with values in it is taken for safe markup.", version=2
)
def _unescaped(module: Module) -> Iterator[ast.AST]:
    for call in module.named("markupsafe.Markup", "flask.Markup", "django.utils.safestring.mark_safe"):
        if module.is_built(call.first, call.scope) or module.is_from_request(call.first, call.scope):
            yield call.node
    for call in module.named("jinja2.Environment"):
        if call.is_set("autoescape", False):
            yield call.node


@tree_rule("py-template-built", "CWE-1336 high medium", "Values become part of a template, which is code.", version=2)
def _template(module: Module) -> Iterator[ast.AST]:
    for call in module.named("flask.render_template_string", "jinja2.Template", "mako.template.Template"):
        if module.is_built(call.first, call.scope) or module.is_from_request(call.first, call.scope):
            yield call.node


@tree_rule("py-format-from-request", "CWE-134 medium medium", "The sender of a request chooses a format text.")
def _format(module: Module) -> Iterator[ast.AST]:
    for call in module.named(".format", ".format_map"):
        receiver = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
        if receiver is None or is_text(receiver):
            continue
        if module.is_from_request(receiver, call.scope):
            yield call.node


_FILLING = frozenset(("create", "update", "update_or_create", "get_or_create", "insert", "setattr"))
"""Methods that fill the fields of a stored object, as class names do."""


@tree_rule("py-mass-assignment", "CWE-915 medium medium", "The sender of a request chooses which fields are set.")
def _mass_assigned(module: Module) -> Iterator[ast.AST]:
    for call in module.calls:
        last = call.name.rpartition(".")[2]
        if not last[:1].isupper() and last not in _FILLING:
            continue
        for keyword in call.node.keywords:
            if keyword.arg is None and module.is_from_request(keyword.value, call.scope):
                yield call.node
                break


@tree_rule(
    "py-slow-pattern", "CWE-1333 medium medium", "A repetition of a repetition: some texts take exponential time."
)
def _slow_pattern(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_RE):
        first = call.first
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and piles_up(first.value):
            yield call.node
