"""Secrets in files of any language."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_ANY = ("any",)
_NO_GUARDED = (
    r"(?i)example|placeholder|change[-_ ]?me|your[-_ ]|dummy|fake|sample|test|xxxx|\*\*\*|<[a-z]|\$\{|process"
    r"\.env|os\.environ"
    r"|getenv|REDACTED|todo|secret\b[\"']$|1234|password[\"'];?$"
)

RULES = (
    Rule(
        id="any-private-key",
        cwe=("CWE-321",),
        severity="high",
        confidence="high",
        message="A private key lies in the repository.",
        languages=_ANY,
        find=matching(
            r"-----BEGIN (?:[A-Z]{2,10} )?PRIVATE KEY-----(?:\\n|\s){1,4}[A-Za-z0-9+/=]{16}",
            needs=("PRIVATE KEY",),
            in_comments=True,
        ),
    ),
    Rule(
        id="any-token",
        cwe=("CWE-798",),
        severity="high",
        confidence="high",
        message="What looks like a service's token lies in the repository.",
        languages=_ANY,
        find=matching(
            r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[A-Z2-7]{16}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60,90}"
            r"|glpat-[\w-]{20}|xox[abprs]-[0-9A-Za-z-]{20,80}|sk_live_[0-9A-Za-z]{24,60}|AIza[\w-]{35}"
            r"|sk-ant-[\w-]{40,120}|npm_[A-Za-z0-9]{36})(?![A-Za-z0-9])",
            in_comments=True,
            unless=r"EXAMPLE|(.)\1{7}|0123456|abcdef|ABCDEF",
        ),
    ),
    Rule(
        id="any-password",
        cwe=("CWE-798",),
        severity="medium",
        confidence="low",
        message="A password is written in the program.",
        languages=("python", "javascript", "go", "java", "csharp", "php", "ruby", "rust"),
        find=matching(
            r"\b[\w$]{0,30}(?i:passwo?r?d|api_?key|secret_?key|client_?secret|auth_?token)[\"']?\s{0,4}(?::|:?="
            r"|=>)\s{0,4}"
            r"[\"'](?=[^\"'\n]{0,80}[0-9])(?=[^\"'\n]{0,80}[A-Za-z])[^\"'\s{}<>$%()]{8,80}[\"']",
            unless=_NO_GUARDED,
        ),
    ),
    Rule(
        id="any-address-with-password",
        cwe=("CWE-798",),
        severity="medium",
        confidence="medium",
        message="An address holds a password.",
        languages=_ANY,
        find=matching(
            r"\b(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|redis|amqp|https?|ftp)://[\w.-]{1,40}:(?![\"'"
            r"\s$<{%*]|password@|pass@"
            r"|postgres@|root@|user@|secret@)[^\s:@/\"'<>{}$]{6,60}@(?!localhost|127\.|0\.0|db\b|host\b"
            r"|example)[\w.-]{3,80}",
            needs=("://",),
            unless=r"(?i)example|placeholder|xxxx|\*\*\*|your|test|dummy|<",
        ),
    ),
)
