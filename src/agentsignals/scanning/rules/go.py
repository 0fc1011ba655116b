"""Go."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_GO = ("go",)
_SQL = r"(?i:select\s|insert\s+into\s|update\s|delete\s+from\s|drop\s|alter\s)"
_ASKED = (
    r"\.(?:Query|QueryRow|Exec|QueryContext|QueryRowContext|ExecContext|Raw|Prepare)"
    r"\((?:\s{0,4}\w{1,20}\s{0,4},)?\s{0,20}"
)
_GUARDED = r"(?i:token|secret|passw|otp|nonce|session_?id|api_?key|csrf)"
_REQUEST = r"\b(?:r|req|request)\.(?:URL\.(?:Query\(\)|Path)|FormValue\(|PathValue\(|PostFormValue\(|Header\.Get\()"

RULES = (
    Rule(
        id="go-exec-shell",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command that is not constant goes through a shell.",
        languages=_GO,
        find=matching(
            r"\bexec\.Command(?:Context)?\((?:\s{0,4}\w{1,20}\s{0,4},)?\s{0,4}\"(?:/bin/|/usr/bin/)?(?:sh|bash"
            r"|zsh|cmd|powershell)"
            r"(?:\.exe)?\"\s{0,4},\s{0,4}\"(?:-l?c|/[cC]|-Command)\"\s{0,4},\s{0,10}+(?!\"[^\"\n]{0,400}\"\s{0,4}\)"
            r"|`[^`]{0,400}`\s{0,4}\))",
            needs=("exec.Command",),
        ),
    ),
    Rule(
        id="go-exec-variable",
        cwe=("CWE-78",),
        severity="low",
        confidence="low",
        message="Which program is run is not constant.",
        languages=_GO,
        find=matching(
            r"\bexec\.Command\(\s{0,4}+(?![\"`]|os\.Args\[0\]|[A-Z])[a-z_][\w.\[\]]{0,60}\s{0,4}[,)]"
            r"|\bexec\.CommandContext\(\s{0,4}[\w.()]{1,40}\s{0,4},\s{0,4}+(?![\"`]|os\.Args\[0\])[a-z_][\w.\[\]]{0,60}"
            r"\s{0,4}[,)]",
            needs=("exec.Command",),
        ),
    ),
    Rule(
        id="go-sql-built",
        cwe=("CWE-89",),
        severity="high",
        confidence="medium",
        message="SQL is put together from values; pass them as parameters.",
        languages=_GO,
        find=matching(
            rf"{_ASKED}(?:fmt\.Sprintf\(\s{{0,10}}[\"`]\s{{0,20}}{_SQL}|[\"`]\s{{0,20}}{_SQL}[^\"`]{{0,400}}["
            rf"\"`]\s{{0,4}}\+)"
        ),
    ),
    Rule(
        id="go-weak-hash",
        cwe=("CWE-328",),
        severity="low",
        confidence="low",
        message="MD5 and SHA-1 hold against nobody who looks for a collision.",
        languages=_GO,
        find=matching(r"\b(?:md5|sha1)\.(?:New|Sum)\(", needs=("crypto/md5", "crypto/sha1")),
    ),
    Rule(
        id="go-weak-cipher",
        cwe=("CWE-327",),
        severity="high",
        confidence="high",
        message="This cipher is broken.",
        languages=_GO,
        find=matching(r"\b(?:des\.New(?:TripleDES)?Cipher|rc4\.NewCipher)\(", needs=("crypto/des", "crypto/rc4")),
    ),
    Rule(
        id="go-unverified-tls",
        cwe=("CWE-295",),
        severity="high",
        confidence="high",
        message="The other side's certificate or host key is not checked.",
        languages=_GO,
        find=matching(
            r"\bInsecureSkipVerify\s{0,4}[:=]\s{0,4}true\b|\bssh\.InsecureIgnoreHostKey\(\)", needs=("Insecure",)
        ),
    ),
    Rule(
        id="go-guessable-secret",
        cwe=("CWE-338",),
        severity="medium",
        confidence="medium",
        message="A secret is made of numbers that can be guessed.",
        languages=_GO,
        find=matching(
            rf"\b\w{{0,40}}{_GUARDED}\w{{0,40}}\s{{0,4}}:?=\s{{0,4}}[^\n]{{0,120}}\brand\.(?:Int|Intn|Int63"
            rf"|Uint32|Float64|Perm)",
            needs=("math/rand",),
        ),
    ),
    Rule(
        id="go-template-unescaped",
        cwe=("CWE-79",),
        severity="medium",
        confidence="medium",
        message="A text that is not constant is taken for safe markup.",
        languages=_GO,
        find=matching(r"\btemplate\.(?:HTML|JS|URL|HTMLAttr|CSS)\(\s{0,4}+(?![\"`)])", needs=("html/template",)),
    ),
    Rule(
        id="go-world-writable",
        cwe=("CWE-732",),
        severity="medium",
        confidence="high",
        message="Everybody may write here.",
        languages=_GO,
        find=matching(r"\.Chmod\([^\n;]{0,300}?\b0o?[0-7]?[0-7][0-7][2367]\s{0,4}\)", needs=("Chmod",)),
    ),
    Rule(
        id="go-path-from-request",
        cwe=("CWE-22",),
        severity="high",
        confidence="high",
        message="The sender of a request chooses a path.",
        languages=_GO,
        find=matching(
            rf"\b(?:filepath\.Join|path\.Join|os\.(?:Open|ReadFile|Create|Remove)|http\.ServeFile)\([^"
            rf"\n;]{{0,160}}{_REQUEST}",
            unless=r"filepath\.Base\(|path\.Base\(",
        ),
    ),
    Rule(
        id="go-url-from-request",
        cwe=("CWE-918",),
        severity="high",
        confidence="high",
        message="The sender of a request chooses an address to fetch.",
        languages=_GO,
        find=matching(rf"\bhttp\.(?:Get|Post|Head|PostForm)\(\s{{0,10}}{_REQUEST}", needs=("net/http",)),
    ),
    Rule(
        id="go-open-redirect",
        cwe=("CWE-601",),
        severity="medium",
        confidence="high",
        message="The sender of a request chooses where it leads.",
        languages=_GO,
        find=matching(rf"\bhttp\.Redirect\([^\n;]{{0,60}},\s{{0,4}}{_REQUEST}", needs=("net/http",)),
    ),
    Rule(
        id="go-format-variable",
        cwe=("CWE-134",),
        severity="low",
        confidence="medium",
        message="A text that is not constant is taken for a format.",
        languages=_GO,
        find=matching(
            r"\bfmt\.(?:Printf|Sprintf|Errorf)\(\s{0,4}+(?![A-Z])[a-z]\w{0,40}(?:\.\w{1,40}){0,3}\s{0,4}\)",
            needs=("fmt.",),
        ),
    ),
)
