"""JavaScript and TypeScript: commands, code, queries, files, hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentsignals.repositories.weakness_rules.rule import Span, Text, matching, piles_up, rule

_JS = ("javascript",)
BUILT = (
    r"(?:`[^`]{0,400}?\$\{(?!\s{0,4}[A-Z][A-Z0-9_]{0,60}\s{0,4}\})"
    r"|(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}')\s{0,20}\+\s{0,20}+(?![\"'`\s]|[A-Z][A-Z0-9_]{1,60}\b)"
    r"|[\w.$]{1,80}\s{0,20}\+\s{0,20}[\"'`])"
)
"""A text put together from something: a template with a value that is no constant, or a sum with a name in it."""
REQUEST = r"\b(?:req|request|ctx|c\.req|ctx\.request)\.(?:params|query|body|headers|cookies|files?)\b"
"""Parts of a request that its sender chooses, in Express, Koa, Fastify and the like."""
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


RULES_JAVASCRIPT = (
    rule(
        "js-exec-built",
        "CWE-78 high medium",
        "A command put together from values goes through a shell.",
        _JS,
        matching(
            rf"(?<![\w$])(?<!db\.)(?:exec|execSync|execAsync|execPromise)\(\s{{0,40}}{BUILT}",
            needs=("child_process", "execa", "shelljs", "zx"),
        ),
    ),
    rule(
        "js-spawn-shell",
        "CWE-78 medium medium",
        "A command whose words are not constant goes through a shell.",
        _JS,
        matching(
            r"\b(?:spawn|spawnSync|execFile|execFileSync)\(\s{0,20}+(?![\"'][^\"'\n]{0,200}[\"']\s{0,10},\s{0,10}\{)"
            r"[^;]{1,300}?\bshell\s{0,4}:\s{0,4}true",
            needs=("child_process", "cross-spawn"),
        ),
    ),
    rule(
        "js-eval",
        "CWE-95 high medium",
        "A text that is not constant is run as code.",
        _JS,
        matching(
            r"(?<![\w$.])eval\(\s{0,20}+(?![\"'`)][^\"'`$\n]{0,300}[\"'`]\s{0,10}\)|\))"
            r"|\bnew\s{1,4}Function\(\s{0,20}+(?![\"'][^\"'\n]{0,200}[\"']\s{0,10}\))[^)\s]",
            needs=("eval(", "Function("),
        ),
    ),
    rule(
        "js-run-in-context",
        "CWE-94 medium low",
        "The module vm is no protection from the code it runs.",
        _JS,
        matching(r"\bvm\.(?:runInNewContext|runInThisContext|runInContext|compileFunction)\(", needs=("vm",)),
    ),
    rule(
        "js-sql-built",
        "CWE-89 high medium",
        "SQL is put together from values; pass them as parameters.",
        _JS,
        matching(
            r"\.(?:query|execute|exec|raw|all|get|run|prepare|unsafe|\$queryRawUnsafe|\$executeRawUnsafe)"
            rf"(?:<[\w\[\]., {{}}:|]{{0,80}}>)?\(\s{{0,40}}(?:`{_SQL}[^`]{{0,400}}?\$"
            rf"\{{(?!\s{{0,4}}[A-Z][A-Z0-9_]{{0,60}}"
            rf"\s{{0,4}}\}})|\"{_SQL}[^\"\n]{{0,300}}\"\s{{0,10}}\+|'{_SQL}[^'\n]{{0,300}}'\s{{0,10}}\+)"
        ),
    ),
    rule(
        "js-path-from-request",
        "CWE-22 high high",
        "The sender of a request chooses a path.",
        _JS,
        matching(
            r"\b(?:path\.(?:join|resolve|normalize)|readFile(?:Sync)?|createReadStream|sendFile|unlink(?:Sync)?"
            rf"|writeFile(?:Sync)?|readdir(?:Sync)?)\([^;\n]{{0,160}}{REQUEST}",
            unless=r"basename\(|parseInt\(|Number\(",
        ),
    ),
    rule(
        "js-format-built",
        "CWE-134 low low",
        "A value becomes part of a format text: give it as an argument.",
        _JS,
        matching(
            r"\b(?:console\.(?:log|error|warn|info|debug)|util\.format)\(\s{0,20}`[^`\n]{0,300}?\$\{(?!"
            r"\s{0,4}[A-Z][A-Z0-9_]{1,60}\s{0,4}\})[^`\n]{0,300}`"
            r"\s{0,10},\s{0,10}[\w$]",
            needs=("console.", "util.format"),
        ),
    ),
    rule(
        "js-slow-pattern",
        "CWE-1333 medium medium",
        "A repetition of a repetition: some texts take exponential time.",
        _JS,
        _slow_pattern,
    ),
    rule(
        "js-pattern-built",
        "CWE-1333 low low",
        "Values become part of a regular expression.",
        _JS,
        matching(
            rf"\bnew\s{{1,4}}RegExp\(\s{{0,20}}(?:{BUILT}|{REQUEST})",
            needs=("RegExp(",),
            unless=r"(?i)escape|quotemeta",
        ),
    ),
    rule(
        "js-weak-hash",
        "CWE-328 low low",
        "MD5 and SHA-1 hold against nobody who looks for a collision.",
        _JS,
        matching(r"\bcreateHash\(\s{0,10}[\"'`](?i:md5|sha1|md4)[\"'`]", needs=("createHash",)),
    ),
    rule(
        "js-weak-cipher",
        "CWE-327 high high",
        "This cipher or mode is broken.",
        _JS,
        matching(
            r"\bcreate(?:Dec|C)ipher\(|\bcreate(?:Dec|C)ipheriv\(\s{0,10}[\"'`](?i:des|rc4|rc2|bf|[\w-]{0,20}-ecb)",
            needs=("ipher",),
        ),
    ),
    rule(
        "js-guessable-secret",
        "CWE-338 medium medium",
        "A secret is made of numbers that can be guessed.",
        _JS,
        matching(
            rf"\b[\w$]{{0,40}}{_GUARDED}[\w$]{{0,40}}\s{{0,4}}[:=]\s{{0,4}}[^;\n]{{0,120}}\bMath\.random\(",
            needs=("Math.random",),
        ),
    ),
    rule(
        "js-unverified-tls",
        "CWE-295 high high",
        "The other side's certificate is not checked.",
        _JS,
        matching(
            r"\brejectUnauthorized[\"']?\s{0,4}:\s{0,4}false\b|\bNODE_TLS_REJECT_UNAUTHORIZED[\"']?\]?\s{0,4}=\s{0,4}"
            r"[\"']?0",
            needs=("rejectUnauthorized", "NODE_TLS"),
        ),
    ),
    rule(
        "js-unsigned-token",
        "CWE-347 high high",
        "A token is taken without a signature.",
        _JS,
        matching(r"\balgorithms?\s{0,4}:\s{0,4}\[?[^\]\n]{0,80}[\"']none[\"']", needs=("none",)),
    ),
)


# JavaScript and TypeScript: pages, requests, objects that others fill.

_PAGES = ("javascript", "html")
_CLEANED = r"(?i)sanitiz|purify|escapeHtml|escape\(|encodeURI|highlight"

RULES_JAVASCRIPT_WEB = (
    rule(
        "js-html-built",
        "CWE-79 medium medium",
        "Values become markup without being escaped.",
        _PAGES,
        matching(
            rf"\.(?:innerHTML|outerHTML)\s{{0,4}}\+?=\s{{0,20}}(?:{BUILT}|[a-z][\w$]{{0,40}}(?:\.[\w$]{{1,40}}){{0,4}}"
            rf"\s{{0,4}};)|\.insertAdjacentHTML\(\s{{0,10}}[\"'][a-z]{{5,12}}[\"']\s{{0,4}},\s{{0,20}}{BUILT}",
            needs=("HTML",),
            unless=_CLEANED,
        ),
    ),
    rule(
        "js-document-write",
        "CWE-79 medium medium",
        "Values are written into the page as markup.",
        _PAGES,
        matching(
            rf"\bdocument\.write(?:ln)?\(\s{{0,20}}(?:{BUILT}|location\b)", needs=("document.write",), unless=_CLEANED
        ),
    ),
    rule(
        "js-react-html",
        "CWE-79 medium medium",
        "Markup that is not constant goes around React's escaping.",
        _JS,
        matching(
            r"\bdangerouslySetInnerHTML=\{\{\s{0,10}__html:\s{0,10}+(?![\"'][^\"'\n]{0,200}[\"']\s{0,4}\}"
            r"|[A-Z][A-Z0-9_]{1,40}\b|JSON\.stringify)",
            needs=("dangerouslySetInnerHTML",),
            unless=_CLEANED,
        ),
    ),
    rule(
        "js-vue-html",
        "CWE-79 medium low",
        "Markup that is not constant goes around Vue's escaping.",
        _PAGES,
        matching(r"\sv-html=\"(?!')[^\"\n]{1,200}\"", needs=("v-html",), unless=_CLEANED),
    ),
    rule(
        "js-replaced-once",
        "CWE-116 medium medium",
        "Only the first of these characters is replaced; the others get through.",
        _JS,
        matching(r"\.replace\(\s{0,10}(?:\"[<>&'\\]\"|'[<>&\"\\]'|[\"']\.\./[\"'])\s{0,4},"),
    ),
    rule(
        "js-mass-assignment",
        "CWE-915 medium medium",
        "The sender of a request chooses which fields are set.",
        _JS,
        matching(
            r"\b(?:Object\.assign|_\.merge|_\.extend|_\.defaultsDeep|merge|deepmerge)\([^;\n]{0,100},\s{0,10}"
            r"(?:req|request|ctx\.request)\.(?:body|query)\s{0,4}[,)]"
            r"|\.(?:create|insertOne|updateOne|findByIdAndUpdate)\((?:[^;\n]{0,60},)?\s{0,10}(?:req|request)\.body"
            r"\s{0,4}[,)]|\bnew\s{1,4}[A-Z]\w{0,40}\(\s{0,4}(?:req|request)\.body\s{0,4}\)"
        ),
    ),
    rule(
        "js-prototype-key",
        "CWE-1321 medium medium",
        "A key from outside may reach the prototype of all objects.",
        _JS,
        matching(
            r"[\w$)\]]\[\s{0,4}(?:req|request)\.(?:params|query|body)\.[\w$]{1,40}\s{0,4}\](?:\[[^\]\n]"
            r"{1,60}\])?\s{0,4}=(?![=>])"
        ),
    ),
    rule(
        "js-open-redirect",
        "CWE-601 medium high",
        "The sender of a request chooses where it leads.",
        _JS,
        matching(
            rf"\.redirect\((?:\s{{0,4}}\d{{3}}\s{{0,4}},)?\s{{0,10}}{REQUEST}"
            r"|\b(?:window\.)?location(?:\.href)?\s{0,4}=\s{0,4}[^;\n]{0,60}(?:searchParams|[pP]arams)\.get\("
        ),
    ),
    rule(
        "js-url-from-request",
        "CWE-918 high high",
        "The sender of a request chooses an address to fetch.",
        _JS,
        matching(
            rf"(?<![\w$.])(?:fetch|got|needle|axios(?:\.(?:get|post|put|head|request))?)\(\s{{0,20}}(?:`\$"
            rf"\{{\s{{0,4}})?"
            rf"{REQUEST}"
        ),
    ),
    rule(
        "js-xss-in-answer",
        "CWE-79 high high",
        "What the sender of a request chose comes back as markup.",
        _JS,
        matching(
            rf"\bres\.(?:send|write|end)\(\s{{0,20}}(?:`[^`]{{0,300}}?\$\{{\s{{0,4}}{REQUEST}"
            rf"|[\"'][^\"'\n]{{0,200}}[\"']\s{{0,4}}\+\s{{0,4}}{REQUEST})",
            unless=_CLEANED,
        ),
    ),
    rule(
        "js-message-to-anybody",
        "CWE-346 low medium",
        "Whatever page is there gets the message.",
        _PAGES,
        matching(
            r"\b(?:parent|opener|top|contentWindow|frame)\b[\w$.?!]{0,40}\.postMessage\([^;]{0,200}?,\s{0,4}["
            r"\"']\*[\"']",
            needs=("postMessage",),
        ),
    ),
    rule(
        "js-any-origin-with-cookies",
        "CWE-942 medium medium",
        "Any page may ask with the visitor's cookies.",
        _JS,
        matching(
            r"\bcors\(\s{0,4}\{[^}]{0,200}\borigin\s{0,4}:\s{0,4}(?:true\b|[\"']\*[\"'])[^}]{0,200}credentials\s{0,4}:"
            r"\s{0,4}true",
            needs=("cors(",),
        ),
    ),
)


RULES = RULES_JAVASCRIPT + RULES_JAVASCRIPT_WEB
