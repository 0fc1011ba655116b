"""JavaScript and TypeScript: commands, code, queries, files, hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentsignals.scanning.rules.patterns import piles_up
from agentsignals.scanning.rules.rule import Rule, Span, Text, matching

_JS = ("javascript",)
BUILT = (
    r"(?:`[^`]{0,400}?\$\{(?!\s{0,4}[A-Z][A-Z0-9_]{0,60}\s{0,4}\})"
    r"|(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}')\s{0,20}\+\s{0,20}+(?![\"'`\s]|[A-Z][A-Z0-9_]{1,60}\b)"
    r"|[\w.$]{1,80}\s{0,20}\+\s{0,20}[\"'`])"
)
"""A text put together from something: a template with a value that is no constant, or a sum with a name in it."""
REQUEST = r"\b(?:req|request|ctx|c\.req|ctx\.request)\.(?:params|query|body|headers|cookies|files?)\b"
"""What the sender of a request chose, in Express, Koa, Fastify and their kin."""
_SQL = r"\s{0,20}(?i:select\s|insert\s+into\s|update\s|delete\s+from\s|drop\s|alter\s|replace\s+into\s)"
_GUARDED = r"(?i:token|secret|passw|otp|nonce|session_?id|api_?key|csrf)"
_LITERAL = re.compile(r"(?<=[=(,:\[!&|?{};\n])\s{0,8}/((?:\\[^\n]|\[(?:\\[^\n]|[^\]\\\n]){0,200}\]|[^/\\\n\[*]){1}"
                      r"(?:\\[^\n]|\[(?:\\[^\n]|[^\]\\\n]){0,200}\]|[^/\\\n\[]){0,400})/[dgimsuvy]{0,8}(?!["
                      r"\w/])")  # fmt: skip
_MADE = re.compile(r"\bRegExp\(\s{0,20}(?:\"((?:\\.|[^\"\\\n]){1,400})\"|'((?:\\.|[^'\\\n]){1,400})')")


def _slow_pattern(text: Text) -> Iterator[Span]:
    for match in _LITERAL.finditer(text.code):
        if piles_up(match[1]):
            yield match.span(1)
    for match in _MADE.finditer(text.code):
        if piles_up((match[1] or match[2]).replace("\\\\", "\\")):
            yield match.span()


RULES = (
    Rule(
        id="js-exec-built",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command put together from values goes through a shell.",
        languages=_JS,
        find=matching(
            rf"(?<![\w$])(?<!db\.)(?:exec|execSync|execAsync|execPromise)\(\s{{0,40}}{BUILT}",
            needs=("child_process", "execa", "shelljs", "zx"),
        ),
    ),
    Rule(
        id="js-spawn-shell",
        cwe=("CWE-78",),
        severity="medium",
        confidence="medium",
        message="A command whose words are not constant goes through a shell.",
        languages=_JS,
        find=matching(
            r"\b(?:spawn|spawnSync|execFile|execFileSync)\(\s{0,20}+(?![\"'][^\"'\n]{0,200}[\"']\s{0,10},\s{0,10}\{)"
            r"[^;]{1,300}?\bshell\s{0,4}:\s{0,4}true",
            needs=("child_process", "cross-spawn"),
        ),
    ),
    Rule(
        id="js-eval",
        cwe=("CWE-95",),
        severity="high",
        confidence="medium",
        message="A text that is not constant is run as code.",
        languages=_JS,
        find=matching(
            r"(?<![\w$.])eval\(\s{0,20}+(?![\"'`)][^\"'`$\n]{0,300}[\"'`]\s{0,10}\)|\))"
            r"|\bnew\s{1,4}Function\(\s{0,20}+(?![\"'][^\"'\n]{0,200}[\"']\s{0,10}\))[^)\s]",
            needs=("eval(", "Function("),
        ),
    ),
    Rule(
        id="js-run-in-context",
        cwe=("CWE-94",),
        severity="medium",
        confidence="low",
        message="The module vm is no protection from the code it runs.",
        languages=_JS,
        find=matching(r"\bvm\.(?:runInNewContext|runInThisContext|runInContext|compileFunction)\(", needs=("vm",)),
    ),
    Rule(
        id="js-sql-built",
        cwe=("CWE-89",),
        severity="high",
        confidence="medium",
        message="SQL is put together from values; pass them as parameters.",
        languages=_JS,
        find=matching(
            r"\.(?:query|execute|exec|raw|all|get|run|prepare|unsafe|\$queryRawUnsafe|\$executeRawUnsafe)"
            rf"(?:<[\w\[\]., {{}}:|]{{0,80}}>)?\(\s{{0,40}}(?:`{_SQL}[^`]{{0,400}}?\$"
            rf"\{{(?!\s{{0,4}}[A-Z][A-Z0-9_]{{0,60}}"
            rf"\s{{0,4}}\}})|\"{_SQL}[^\"\n]{{0,300}}\"\s{{0,10}}\+|'{_SQL}[^'\n]{{0,300}}'\s{{0,10}}\+)"
        ),
    ),
    Rule(
        id="js-path-from-request",
        cwe=("CWE-22",),
        severity="high",
        confidence="high",
        message="The sender of a request chooses a path.",
        languages=_JS,
        find=matching(
            r"\b(?:path\.(?:join|resolve|normalize)|readFile(?:Sync)?|createReadStream|sendFile|unlink(?:Sync)?"
            rf"|writeFile(?:Sync)?|readdir(?:Sync)?)\([^;\n]{{0,160}}{REQUEST}",
            unless=r"basename\(|parseInt\(|Number\(",
        ),
    ),
    Rule(
        id="js-format-built",
        cwe=("CWE-134",),
        severity="low",
        confidence="low",
        message="A value becomes part of a format text: give it as an argument.",
        languages=_JS,
        find=matching(
            r"\b(?:console\.(?:log|error|warn|info|debug)|util\.format)\(\s{0,20}`[^`\n]{0,300}?\$\{(?!"
            r"\s{0,4}[A-Z][A-Z0-9_]{1,60}\s{0,4}\})[^`\n]{0,300}`"
            r"\s{0,10},\s{0,10}[\w$]",
            needs=("console.", "util.format"),
        ),
    ),
    Rule(
        id="js-slow-pattern",
        cwe=("CWE-1333",),
        severity="medium",
        confidence="medium",
        message="A repetition of a repetition: some texts take exponential time.",
        languages=_JS,
        find=_slow_pattern,
    ),
    Rule(
        id="js-pattern-built",
        cwe=("CWE-1333",),
        severity="low",
        confidence="low",
        message="Values become part of a regular expression.",
        languages=_JS,
        find=matching(
            rf"\bnew\s{{1,4}}RegExp\(\s{{0,20}}(?:{BUILT}|{REQUEST})",
            needs=("RegExp(",),
            unless=r"(?i)escape|quotemeta",
        ),
    ),
    Rule(
        id="js-weak-hash",
        cwe=("CWE-328",),
        severity="low",
        confidence="low",
        message="MD5 and SHA-1 hold against nobody who looks for a collision.",
        languages=_JS,
        find=matching(r"\bcreateHash\(\s{0,10}[\"'`](?i:md5|sha1|md4)[\"'`]", needs=("createHash",)),
    ),
    Rule(
        id="js-weak-cipher",
        cwe=("CWE-327",),
        severity="high",
        confidence="high",
        message="This cipher or mode is broken.",
        languages=_JS,
        find=matching(
            r"\bcreate(?:Dec|C)ipher\(|\bcreate(?:Dec|C)ipheriv\(\s{0,10}[\"'`](?i:des|rc4|rc2|bf|[\w-]{0,20}-ecb)",
            needs=("ipher",),
        ),
    ),
    Rule(
        id="js-guessable-secret",
        cwe=("CWE-338",),
        severity="medium",
        confidence="medium",
        message="A secret is made of numbers that can be guessed.",
        languages=_JS,
        find=matching(
            rf"\b[\w$]{{0,40}}{_GUARDED}[\w$]{{0,40}}\s{{0,4}}[:=]\s{{0,4}}[^;\n]{{0,120}}\bMath\.random\(",
            needs=("Math.random",),
        ),
    ),
    Rule(
        id="js-unverified-tls",
        cwe=("CWE-295",),
        severity="high",
        confidence="high",
        message="The other side's certificate is not checked.",
        languages=_JS,
        find=matching(
            r"\brejectUnauthorized[\"']?\s{0,4}:\s{0,4}false\b|\bNODE_TLS_REJECT_UNAUTHORIZED[\"']?\]?\s{0,4}=\s{0,4}"
            r"[\"']?0",
            needs=("rejectUnauthorized", "NODE_TLS"),
        ),
    ),
    Rule(
        id="js-unsigned-token",
        cwe=("CWE-347",),
        severity="high",
        confidence="high",
        message="A token is taken without a signature.",
        languages=_JS,
        find=matching(r"\balgorithms?\s{0,4}:\s{0,4}\[?[^\]\n]{0,80}[\"']none[\"']", needs=("none",)),
    ),
)
