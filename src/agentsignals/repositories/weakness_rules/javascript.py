"""JavaScript and TypeScript: commands, code, queries, files, hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentsignals.repositories.weakness_rules.rule import Rule, Span, Text, matching, piles_up

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


# JavaScript and TypeScript: pages, requests, objects that others fill.

_PAGES = ("javascript", "html")
_CLEANED = r"(?i)sanitiz|purify|escapeHtml|escape\(|encodeURI|highlight"

RULES_JAVASCRIPT_WEB = (
    Rule(
        id="js-html-built",
        cwe=("CWE-79",),
        severity="medium",
        confidence="medium",
        message="Values become markup without being escaped.",
        languages=_PAGES,
        find=matching(
            rf"\.(?:innerHTML|outerHTML)\s{{0,4}}\+?=\s{{0,20}}(?:{BUILT}|[a-z][\w$]{{0,40}}(?:\.[\w$]{{1,40}}){{0,4}}"
            rf"\s{{0,4}};)|\.insertAdjacentHTML\(\s{{0,10}}[\"'][a-z]{{5,12}}[\"']\s{{0,4}},\s{{0,20}}{BUILT}",
            needs=("HTML",),
            unless=_CLEANED,
        ),
    ),
    Rule(
        id="js-document-write",
        cwe=("CWE-79",),
        severity="medium",
        confidence="medium",
        message="Values are written into the page as markup.",
        languages=_PAGES,
        find=matching(
            rf"\bdocument\.write(?:ln)?\(\s{{0,20}}(?:{BUILT}|location\b)", needs=("document.write",), unless=_CLEANED
        ),
    ),
    Rule(
        id="js-react-html",
        cwe=("CWE-79",),
        severity="medium",
        confidence="medium",
        message="Markup that is not constant goes around React's escaping.",
        languages=_JS,
        find=matching(
            r"\bdangerouslySetInnerHTML=\{\{\s{0,10}__html:\s{0,10}+(?![\"'][^\"'\n]{0,200}[\"']\s{0,4}\}"
            r"|[A-Z][A-Z0-9_]{1,40}\b|JSON\.stringify)",
            needs=("dangerouslySetInnerHTML",),
            unless=_CLEANED,
        ),
    ),
    Rule(
        id="js-vue-html",
        cwe=("CWE-79",),
        severity="medium",
        confidence="low",
        message="Markup that is not constant goes around Vue's escaping.",
        languages=_PAGES,
        find=matching(r"\sv-html=\"(?!')[^\"\n]{1,200}\"", needs=("v-html",), unless=_CLEANED),
    ),
    Rule(
        id="js-replaced-once",
        cwe=("CWE-116",),
        severity="medium",
        confidence="medium",
        message="Only the first of these characters is replaced; the others get through.",
        languages=_JS,
        find=matching(r"\.replace\(\s{0,10}(?:\"[<>&'\\]\"|'[<>&\"\\]'|[\"']\.\./[\"'])\s{0,4},"),
    ),
    Rule(
        id="js-mass-assignment",
        cwe=("CWE-915",),
        severity="medium",
        confidence="medium",
        message="The sender of a request chooses which fields are set.",
        languages=_JS,
        find=matching(
            r"\b(?:Object\.assign|_\.merge|_\.extend|_\.defaultsDeep|merge|deepmerge)\([^;\n]{0,100},\s{0,10}"
            r"(?:req|request|ctx\.request)\.(?:body|query)\s{0,4}[,)]"
            r"|\.(?:create|insertOne|updateOne|findByIdAndUpdate)\((?:[^;\n]{0,60},)?\s{0,10}(?:req|request)\.body"
            r"\s{0,4}[,)]|\bnew\s{1,4}[A-Z]\w{0,40}\(\s{0,4}(?:req|request)\.body\s{0,4}\)"
        ),
    ),
    Rule(
        id="js-prototype-key",
        cwe=("CWE-1321",),
        severity="medium",
        confidence="medium",
        message="A key from outside may reach the prototype of all objects.",
        languages=_JS,
        find=matching(
            r"[\w$)\]]\[\s{0,4}(?:req|request)\.(?:params|query|body)\.[\w$]{1,40}\s{0,4}\](?:\[[^\]\n]"
            r"{1,60}\])?\s{0,4}=(?![=>])"
        ),
    ),
    Rule(
        id="js-open-redirect",
        cwe=("CWE-601",),
        severity="medium",
        confidence="high",
        message="The sender of a request chooses where it leads.",
        languages=_JS,
        find=matching(
            rf"\.redirect\((?:\s{{0,4}}\d{{3}}\s{{0,4}},)?\s{{0,10}}{REQUEST}"
            r"|\b(?:window\.)?location(?:\.href)?\s{0,4}=\s{0,4}[^;\n]{0,60}(?:searchParams|[pP]arams)\.get\("
        ),
    ),
    Rule(
        id="js-url-from-request",
        cwe=("CWE-918",),
        severity="high",
        confidence="high",
        message="The sender of a request chooses an address to fetch.",
        languages=_JS,
        find=matching(
            rf"(?<![\w$.])(?:fetch|got|needle|axios(?:\.(?:get|post|put|head|request))?)\(\s{{0,20}}(?:`\$"
            rf"\{{\s{{0,4}})?"
            rf"{REQUEST}"
        ),
    ),
    Rule(
        id="js-xss-in-answer",
        cwe=("CWE-79",),
        severity="high",
        confidence="high",
        message="What the sender of a request chose comes back as markup.",
        languages=_JS,
        find=matching(
            rf"\bres\.(?:send|write|end)\(\s{{0,20}}(?:`[^`]{{0,300}}?\$\{{\s{{0,4}}{REQUEST}"
            rf"|[\"'][^\"'\n]{{0,200}}[\"']\s{{0,4}}\+\s{{0,4}}{REQUEST})",
            unless=_CLEANED,
        ),
    ),
    Rule(
        id="js-message-to-anybody",
        cwe=("CWE-346",),
        severity="low",
        confidence="medium",
        message="Whatever page is there gets the message.",
        languages=_PAGES,
        find=matching(
            r"\b(?:parent|opener|top|contentWindow|frame)\b[\w$.?!]{0,40}\.postMessage\([^;]{0,200}?,\s{0,4}["
            r"\"']\*[\"']",
            needs=("postMessage",),
        ),
    ),
    Rule(
        id="js-any-origin-with-cookies",
        cwe=("CWE-942",),
        severity="medium",
        confidence="medium",
        message="Any page may ask with the visitor's cookies.",
        languages=_JS,
        find=matching(
            r"\bcors\(\s{0,4}\{[^}]{0,200}\borigin\s{0,4}:\s{0,4}(?:true\b|[\"']\*[\"'])[^}]{0,200}credentials\s{0,4}:"
            r"\s{0,4}true",
            needs=("cors(",),
        ),
    ),
)


RULES = RULES_JAVASCRIPT + RULES_JAVASCRIPT_WEB
