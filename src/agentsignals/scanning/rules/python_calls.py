"""Python: what is run, asked and opened."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agentsignals.scanning.rules.python_tree import Module, in_tree, is_fixed
from agentsignals.scanning.rules.rule import Rule

_PYTHON = ("python",)
_RUNNERS = tuple(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))
_SHELLS = ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput",
           "asyncio.create_subprocess_shell")  # fmt: skip
_SQL = re.compile(r"\s{0,20}(?:select|insert|update|delete|replace|create|drop|alter|with|truncate|merge)\b", re.I)
_OPENERS = ("open", "io.open", "os.open", "os.remove", "os.unlink", "os.path.join", "pathlib.Path", "flask.send_file",
            "shutil.copy", "shutil.rmtree", "codecs.open", ".joinpath")  # fmt: skip
_HTTP = tuple(f"{lib}.{verb}" for lib in ("requests", "httpx") for verb in ("get", "post", "put", "head", "request"))


def _shell_true(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_RUNNERS):
        command = call.argument("args", 0)
        if call.is_set("shell", True) and command is not None and not is_fixed(command):
            yield call.node


def _system(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_SHELLS):
        if call.first is not None and not is_fixed(call.first):
            yield call.node


def _evaluated(module: Module) -> Iterator[ast.AST]:
    for call in module.named("eval", "exec", "builtins.eval", "builtins.exec"):
        if call.first is not None and not is_fixed(call.first):
            yield call.node


def _sql(module: Module) -> Iterator[ast.AST]:
    for call in module.named(".execute", ".executemany", ".executescript", ".raw", "sqlalchemy.text", ".read_sql"):
        if module.is_built(call.first, call.scope) and _SQL.match(module.text_of(call.first, call.scope)):
            yield call.node


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


def _extract_all(module: Module) -> Iterator[ast.AST]:
    if not any(name.split(".")[0] == "tarfile" for name in module.imported):
        return
    for call in module.named(".extractall"):
        if call.argument("filter") is None and "zip" not in call.name.lower():
            yield call.node


def _url_from_request(module: Module) -> Iterator[ast.AST]:
    for call in module.named(*_HTTP, "urllib.request.urlopen"):
        if module.is_from_request(call.argument("url", 0), call.scope):
            yield call.node


def _any_scheme(module: Module) -> Iterator[ast.AST]:
    for call in module.named("urllib.request.urlopen", "urllib.request.urlretrieve"):
        url = call.argument("url", 0)
        if url is None or is_fixed(url) or module.is_from_request(url, call.scope):
            continue
        if not module.text_of(url, call.scope).startswith(("http://", "https://")) and not _is_request_object(url):
            yield call.node


def _is_request_object(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) or (isinstance(node, ast.Name) and node.id in ("req", "request"))


def _redirected(module: Module) -> Iterator[ast.AST]:
    names = ("flask.redirect", "django.shortcuts.redirect", "django.http.HttpResponseRedirect", "redirect",
             "starlette.responses.RedirectResponse", "fastapi.responses.RedirectResponse")  # fmt: skip
    for call in module.named(*names):
        if module.is_from_request(call.argument("url", 0), call.scope):
            yield call.node


def _debug_server(module: Module) -> Iterator[ast.AST]:
    if not any(name.split(".")[0] == "flask" for name in module.imported):
        return
    for call in module.named(".run"):
        if call.is_set("debug", True):
            yield call.node


def _temporary(module: Module) -> Iterator[ast.AST]:
    yield from (call.node for call in module.named("tempfile.mktemp"))


def _mode(module: Module) -> Iterator[ast.AST]:
    for call in module.named("os.chmod", "os.fchmod", ".chmod"):
        arguments = [*call.node.args, *(k.value for k in call.node.keywords)]
        for argument in arguments:
            value = argument.value if isinstance(argument, ast.Constant) else None
            if type(value) is int and value & 0o002 and 0o100 <= value <= 0o7777:
                yield call.node


RULES = (
    Rule(
        id="py-shell-true",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command that is not constant goes through a shell.",
        languages=_PYTHON,
        find=in_tree(_shell_true),
    ),
    Rule(
        id="py-os-system",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command that is not constant goes through a shell.",
        languages=_PYTHON,
        find=in_tree(_system),
    ),
    Rule(
        id="py-eval",
        cwe=("CWE-95",),
        severity="high",
        confidence="medium",
        message="A text that is not constant is run as code.",
        languages=_PYTHON,
        find=in_tree(_evaluated),
    ),
    Rule(
        id="py-sql-built",
        cwe=("CWE-89",),
        severity="high",
        confidence="medium",
        message="SQL is put together from values; pass them as parameters.",
        languages=_PYTHON,
        find=in_tree(_sql),
        version=2,
    ),
    Rule(
        id="py-path-from-request",
        cwe=("CWE-22",),
        severity="high",
        confidence="high",
        message="The sender of a request chooses a path.",
        languages=_PYTHON,
        find=in_tree(_path),
    ),
    Rule(
        id="py-tar-extract-all",
        cwe=("CWE-22",),
        severity="medium",
        confidence="medium",
        message="Members of an archive may lie outside the folder; give a filter.",
        languages=_PYTHON,
        find=in_tree(_extract_all),
    ),
    Rule(
        id="py-url-from-request",
        cwe=("CWE-918",),
        severity="high",
        confidence="high",
        message="The sender of a request chooses an address to fetch.",
        languages=_PYTHON,
        find=in_tree(_url_from_request),
    ),
    Rule(
        id="py-urlopen-any-scheme",
        cwe=("CWE-939",),
        severity="low",
        confidence="low",
        message="An address that is not constant may name a local file.",
        languages=_PYTHON,
        find=in_tree(_any_scheme),
    ),
    Rule(
        id="py-open-redirect",
        cwe=("CWE-601",),
        severity="medium",
        confidence="high",
        message="The sender of a request chooses where it leads.",
        languages=_PYTHON,
        find=in_tree(_redirected),
    ),
    Rule(
        id="py-debug-server",
        cwe=("CWE-489",),
        severity="medium",
        confidence="high",
        message="The debugger of the web server runs anybody's code.",
        languages=_PYTHON,
        find=in_tree(_debug_server),
    ),
    Rule(
        id="py-mktemp",
        cwe=("CWE-377",),
        severity="medium",
        confidence="high",
        message="Another process can take the name before the file is made.",
        languages=_PYTHON,
        find=in_tree(_temporary),
    ),
    Rule(
        id="py-world-writable",
        cwe=("CWE-732",),
        severity="medium",
        confidence="high",
        message="Everybody may write here.",
        languages=_PYTHON,
        find=in_tree(_mode),
    ),
)
