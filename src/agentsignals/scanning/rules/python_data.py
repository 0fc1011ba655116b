"""Python: what is decoded, hashed, encrypted, trusted and shown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agentsignals.scanning.rules.patterns import piles_up
from agentsignals.scanning.rules.python_tree import Module, in_tree, is_fixed, is_text
from agentsignals.scanning.rules.rule import Rule

_PYTHON = ("python",)
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
_HTTP = ("requests.", "httpx.", "aiohttp.")


def _decoded(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_DECODERS):
        if call.first is not None and not is_fixed(call.first) and not _is_own_copy(module, call.first):
            yield call.node


def _is_own_copy(module: Module, node: ast.expr) -> bool:
    """What was encoded in the same breath is nobody else's."""
    return isinstance(node, ast.Call) and module.name_of(node.func).rpartition(".")[2] == "dumps"


def _yaml(module: Module) -> Iterator[ast.AST]:
    for call in module.named("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load_all"):
        loader = call.argument("Loader", 1)
        name = module.name_of(loader).rpartition(".")[2] if loader is not None else ""
        if call.name == "yaml.unsafe_load" or name not in _SAFE_LOADERS:
            yield call.node


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


def _weak_cipher(module: Module) -> Iterator[ast.AST]:
    for call in module.calls:
        parts = call.name.split(".")
        if parts[0] in ("Crypto", "Cryptodome") and parts[-1] == "new":
            modes = {module.name_of(a).rpartition(".")[2] for a in call.node.args}
            if {"DES", "DES3", "ARC2", "ARC4", "Blowfish"} & set(parts) or "MODE_ECB" in modes:
                yield call.node
        elif parts[0] == "cryptography" and parts[-1] in ("TripleDES", "ARC4", "Blowfish", "ECB", "IDEA", "CAST5"):
            yield call.node


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


def _unverified(module: Module) -> Iterator[ast.AST]:
    for call in module.calls:
        asks = call.name.startswith(_HTTP) or "session" in call.name.lower()
        off = call.is_set("verify_ssl", False) or (asks and call.is_set("verify", False))
        if off or call.name == "ssl._create_unverified_context":
            yield call.node
    for name, value, statement in module.assigned:
        off = name == "check_hostname" and _is_false(value)
        if off or (name == "verify_mode" and module.name_of(value) == "ssl.CERT_NONE"):
            yield statement


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _any_host_key(module: Module) -> Iterator[ast.AST]:
    for call in module.named(".set_missing_host_key_policy"):
        policy = call.first.func if isinstance(call.first, ast.Call) else call.first
        if policy is not None and module.name_of(policy).rpartition(".")[2] in ("AutoAddPolicy", "WarningPolicy"):
            yield call.node


def _unsigned(module: Module) -> Iterator[ast.AST]:
    for call in module.named("jwt.decode"):
        options = call.argument("options")
        off = isinstance(options, ast.Dict) and any(
            isinstance(key, ast.Constant) and key.value == "verify_signature" and _is_false(value)
            for key, value in zip(options.keys, options.values, strict=True)
        )
        if off or call.is_set("verify", False):
            yield call.node


def _entities(module: Module) -> Iterator[ast.AST]:
    for call in module.named("lxml.etree.XMLParser", "lxml.etree.iterparse"):
        if call.is_set("resolve_entities", True) or call.is_set("no_network", False):
            yield call.node


def _unescaped(module: Module) -> Iterator[ast.AST]:
    for call in module.named("markupsafe.Markup", "flask.Markup", "django.utils.safestring.mark_safe"):
        if module.is_built(call.first, call.scope) or module.is_from_request(call.first, call.scope):
            yield call.node
    for call in module.named("jinja2.Environment"):
        if call.is_set("autoescape", False):
            yield call.node


def _template(module: Module) -> Iterator[ast.AST]:
    for call in module.named("flask.render_template_string", "jinja2.Template", "mako.template.Template"):
        if module.is_built(call.first, call.scope) or module.is_from_request(call.first, call.scope):
            yield call.node


def _format(module: Module) -> Iterator[ast.AST]:
    for call in module.named(".format", ".format_map"):
        receiver = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
        if receiver is None or is_text(receiver):
            continue
        if module.is_from_request(receiver, call.scope):
            yield call.node


_FILLING = frozenset(("create", "update", "update_or_create", "get_or_create", "insert", "setattr"))
"""Methods that fill the fields of a stored object, as class names do."""


def _mass_assigned(module: Module) -> Iterator[ast.AST]:
    for call in module.calls:
        last = call.name.rpartition(".")[2]
        if not last[:1].isupper() and last not in _FILLING:
            continue
        for keyword in call.node.keywords:
            if keyword.arg is None and module.is_from_request(keyword.value, call.scope):
                yield call.node
                break


def _slow_pattern(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_RE):
        first = call.first
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and piles_up(first.value):
            yield call.node


RULES = (
    Rule(
        id="py-unsafe-decoder",
        cwe=("CWE-502",),
        severity="high",
        confidence="low",
        message="Decoding runs code that the data names.",
        languages=_PYTHON,
        find=in_tree(_decoded),
    ),
    Rule(
        id="py-unsafe-yaml",
        cwe=("CWE-502",),
        severity="high",
        confidence="high",
        message="This loader makes objects that the document names.",
        languages=_PYTHON,
        find=in_tree(_yaml),
    ),
    Rule(
        id="py-weak-hash",
        cwe=("CWE-328",),
        severity="low",
        confidence="low",
        message="MD5 and SHA-1 hold against nobody who looks for a collision.",
        languages=_PYTHON,
        find=in_tree(_weak_hash),
    ),
    Rule(
        id="py-weak-cipher",
        cwe=("CWE-327",),
        severity="high",
        confidence="high",
        message="This cipher or mode is broken.",
        languages=_PYTHON,
        find=in_tree(_weak_cipher),
    ),
    Rule(
        id="py-guessable-secret",
        cwe=("CWE-338",),
        severity="medium",
        confidence="medium",
        message="A secret is made of numbers that can be guessed.",
        languages=_PYTHON,
        find=in_tree(_weak_random),
    ),
    Rule(
        id="py-unverified-tls",
        cwe=("CWE-295",),
        severity="high",
        confidence="high",
        message="The other side's certificate is not checked.",
        languages=_PYTHON,
        find=in_tree(_unverified),
    ),
    Rule(
        id="py-any-host-key",
        cwe=("CWE-295",),
        severity="medium",
        confidence="high",
        message="Any host key is taken.",
        languages=_PYTHON,
        find=in_tree(_any_host_key),
    ),
    Rule(
        id="py-unsigned-token",
        cwe=("CWE-347",),
        severity="high",
        confidence="high",
        message="The token's signature is not checked.",
        languages=_PYTHON,
        find=in_tree(_unsigned),
    ),
    Rule(
        id="py-xml-entities",
        cwe=("CWE-611",),
        severity="medium",
        confidence="high",
        message="A document can name files that are read into it.",
        languages=_PYTHON,
        find=in_tree(_entities),
    ),
    Rule(
        id="py-unescaped-markup",
        cwe=("CWE-79",),
        severity="medium",
        confidence="medium",
        message="A text with values in it is taken for safe markup.",
        languages=_PYTHON,
        find=in_tree(_unescaped),
        version=2,
    ),
    Rule(
        id="py-template-built",
        cwe=("CWE-1336",),
        severity="high",
        confidence="medium",
        message="Values become part of a template, which is code.",
        languages=_PYTHON,
        find=in_tree(_template),
        version=2,
    ),
    Rule(
        id="py-format-from-request",
        cwe=("CWE-134",),
        severity="medium",
        confidence="medium",
        message="The sender of a request chooses a format text.",
        languages=_PYTHON,
        find=in_tree(_format),
    ),
    Rule(
        id="py-mass-assignment",
        cwe=("CWE-915",),
        severity="medium",
        confidence="medium",
        message="The sender of a request chooses which fields are set.",
        languages=_PYTHON,
        find=in_tree(_mass_assigned),
    ),
    Rule(
        id="py-slow-pattern",
        cwe=("CWE-1333",),
        severity="medium",
        confidence="medium",
        message="A repetition of a repetition: some texts take exponential time.",
        languages=_PYTHON,
        find=in_tree(_slow_pattern),
    ),
)
