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
        "go-exec-shell",
        ("CWE-78",),
        "high",
        "medium",
        "A command that is not constant goes through a shell.",
        _GO,
        matching(
            r"\bexec\.Command(?:Context)?\((?:\s{0,4}\w{1,20}\s{0,4},)?\s{0,4}\"(?:/bin/|/usr/bin/)?(?:sh|bash"
            r"|zsh|cmd|powershell)"
            r"(?:\.exe)?\"\s{0,4},\s{0,4}\"(?:-l?c|/[cC]|-Command)\"\s{0,4},\s{0,10}+(?!\"[^\"\n]{0,400}\"\s{0,4}\)"
            r"|`[^`]{0,400}`\s{0,4}\))",
            needs=("exec.Command",),
        ),
    ),
    Rule(
        "go-exec-variable",
        ("CWE-78",),
        "low",
        "low",
        "Which program is run is not constant.",
        _GO,
        matching(
            r"\bexec\.Command\(\s{0,4}+(?![\"`]|os\.Args\[0\]|[A-Z])[a-z_][\w.\[\]]{0,60}\s{0,4}[,)]"
            r"|\bexec\.CommandContext\(\s{0,4}[\w.()]{1,40}\s{0,4},\s{0,4}+(?![\"`]|os\.Args\[0\])[a-z_][\w.\[\]]{0,60}"
            r"\s{0,4}[,)]",
            needs=("exec.Command",),
        ),
    ),
    Rule(
        "go-sql-built",
        ("CWE-89",),
        "high",
        "medium",
        "SQL is put together from values; pass them as parameters.",
        _GO,
        matching(
            rf"{_ASKED}(?:fmt\.Sprintf\(\s{{0,10}}[\"`]\s{{0,20}}{_SQL}|[\"`]\s{{0,20}}{_SQL}[^\"`]{{0,400}}["
            rf"\"`]\s{{0,4}}\+)"
        ),
    ),
    Rule(
        "go-weak-hash",
        ("CWE-328",),
        "low",
        "low",
        "MD5 and SHA-1 hold against nobody who looks for a collision.",
        _GO,
        matching(r"\b(?:md5|sha1)\.(?:New|Sum)\(", needs=("crypto/md5", "crypto/sha1")),
    ),
    Rule(
        "go-weak-cipher",
        ("CWE-327",),
        "high",
        "high",
        "This cipher is broken.",
        _GO,
        matching(r"\b(?:des\.New(?:TripleDES)?Cipher|rc4\.NewCipher)\(", needs=("crypto/des", "crypto/rc4")),
    ),
    Rule(
        "go-unverified-tls",
        ("CWE-295",),
        "high",
        "high",
        "The other side's certificate or host key is not checked.",
        _GO,
        matching(r"\bInsecureSkipVerify\s{0,4}[:=]\s{0,4}true\b|\bssh\.InsecureIgnoreHostKey\(\)", needs=("Insecure",)),
    ),
    Rule(
        "go-guessable-secret",
        ("CWE-338",),
        "medium",
        "medium",
        "A secret is made of numbers that can be guessed.",
        _GO,
        matching(
            rf"\b\w{{0,40}}{_GUARDED}\w{{0,40}}\s{{0,4}}:?=\s{{0,4}}[^\n]{{0,120}}\brand\.(?:Int|Intn|Int63"
            rf"|Uint32|Float64|Perm)",
            needs=("math/rand",),
        ),
    ),
    Rule(
        "go-template-unescaped",
        ("CWE-79",),
        "medium",
        "medium",
        "A text that is not constant is taken for safe markup.",
        _GO,
        matching(r"\btemplate\.(?:HTML|JS|URL|HTMLAttr|CSS)\(\s{0,4}+(?![\"`)])", needs=("html/template",)),
    ),
    Rule(
        "go-world-writable",
        ("CWE-732",),
        "medium",
        "high",
        "Everybody may write here.",
        _GO,
        matching(r"\.Chmod\([^\n;]{0,300}?\b0o?[0-7]?[0-7][0-7][2367]\s{0,4}\)", needs=("Chmod",)),
    ),
    Rule(
        "go-path-from-request",
        ("CWE-22",),
        "high",
        "high",
        "The sender of a request chooses a path.",
        _GO,
        matching(
            rf"\b(?:filepath\.Join|path\.Join|os\.(?:Open|ReadFile|Create|Remove)|http\.ServeFile)\([^"
            rf"\n;]{{0,160}}{_REQUEST}",
            unless=r"filepath\.Base\(|path\.Base\(",
        ),
    ),
    Rule(
        "go-url-from-request",
        ("CWE-918",),
        "high",
        "high",
        "The sender of a request chooses an address to fetch.",
        _GO,
        matching(rf"\bhttp\.(?:Get|Post|Head|PostForm)\(\s{{0,10}}{_REQUEST}", needs=("net/http",)),
    ),
    Rule(
        "go-open-redirect",
        ("CWE-601",),
        "medium",
        "high",
        "The sender of a request chooses where it leads.",
        _GO,
        matching(rf"\bhttp\.Redirect\([^\n;]{{0,60}},\s{{0,4}}{_REQUEST}", needs=("net/http",)),
    ),
    Rule(
        "go-format-variable",
        ("CWE-134",),
        "low",
        "medium",
        "A text that is not constant is taken for a format.",
        _GO,
        matching(
            r"\bfmt\.(?:Printf|Sprintf|Errorf)\(\s{0,4}+(?![A-Z])[a-z]\w{0,40}(?:\.\w{1,40}){0,3}\s{0,4}\)",
            needs=("fmt.",),
        ),
    ),
)
