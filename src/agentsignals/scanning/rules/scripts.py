"""PHP and Ruby."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_PHP, _RUBY = ("php",), ("ruby",)
_REQUEST_DATA = r"\$_(?:GET|POST|REQUEST|COOKIE)\b"
_CLEANED = r"(?i)htmlspecialchars|htmlentities|escapeshell|intval|\(int\)|basename|esc_|filter_"

RULES = (
    Rule(
        id="php-sql-built",
        cwe=("CWE-89",),
        severity="high",
        confidence="medium",
        message="SQL is put together from values; pass them as parameters.",
        languages=_PHP,
        find=matching(
            r"\b(?:mysqli?_query|pg_query|->(?:query|exec|prepare))\((?:\s{0,4}\$\w{1,40}\s{0,4},)?\s{0,10}[\"']"
            r"\s{0,10}"
            r"(?i:select\s|insert\s+into\s|update\s|delete\s+from\s)(?:[^\"';]{0,300}[\"']\s{0,4}\.\s{0,4}\$|[^"
            r"\"';]{0,300}?"
            r"(?:\{\$|\$\w))|->(?:query|exec|prepare)\(\s{0,10}\"(?i:select\s|insert\s+into\s|update\s|delete\s+from\s)"
            r"[^\"]{0,300}?\$\w"
        ),
    ),
    Rule(
        id="php-command-from-request",
        cwe=("CWE-78",),
        severity="high",
        confidence="high",
        message="The sender of a request chooses a command.",
        languages=_PHP,
        find=matching(
            rf"\b(?:exec|system|shell_exec|passthru|popen|proc_open)\([^;\n]{{0,160}}{_REQUEST_DATA}", unless=_CLEANED
        ),
    ),
    Rule(
        id="php-include-from-request",
        cwe=("CWE-98",),
        severity="high",
        confidence="high",
        message="The sender of a request chooses a file to run.",
        languages=_PHP,
        find=matching(rf"\b(?:include|require)(?:_once)?\s{{0,4}}\(?[^;\n]{{0,100}}{_REQUEST_DATA}", unless=_CLEANED),
    ),
    Rule(
        id="php-echo-request",
        cwe=("CWE-79",),
        severity="high",
        confidence="high",
        message="What the sender of a request chose comes back as markup.",
        languages=_PHP,
        find=matching(rf"(?:\becho|\bprint|<\?=)\s[^;\n]{{0,120}}{_REQUEST_DATA}", unless=_CLEANED),
    ),
    Rule(
        id="php-unserialize",
        cwe=("CWE-502",),
        severity="high",
        confidence="medium",
        message="Decoding makes objects that the data names.",
        languages=_PHP,
        find=matching(r"\bunserialize\(\s{0,4}\$(?![^;\n]{0,120}allowed_classes)"),
    ),
    Rule(
        id="php-eval",
        cwe=("CWE-95",),
        severity="high",
        confidence="medium",
        message="A text that is not constant is run as code.",
        languages=_PHP,
        find=matching(r"(?<![\w>:])eval\(\s{0,4}[^)\"'\n]{0,80}\$"),
    ),
    Rule(
        id="rb-command-built",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command put together from values goes through a shell.",
        languages=_RUBY,
        find=matching(
            r"(?<![\w.])(?:system|exec|spawn|IO\.popen|Open3\.capture\w{1,4})[ (]\s{0,4}\"[^\"\n]{0,200}?#\{|%x["
            r"\[({][^\n]"
            r"{0,200}?#\{|(?<![\w'\"])`[^`\n]{0,200}?#\{"
        ),
    ),
    Rule(
        id="rb-unsafe-decoder",
        cwe=("CWE-502",),
        severity="high",
        confidence="medium",
        message="Decoding makes objects that the data names.",
        languages=_RUBY,
        find=matching(r"\b(?:Marshal\.load|YAML\.(?:load|unsafe_load))[ (](?![^\n]{0,80}File\.)"),
    ),
    Rule(
        id="rb-sql-built",
        cwe=("CWE-89",),
        severity="high",
        confidence="medium",
        message="SQL is put together from values; pass them as parameters.",
        languages=_RUBY,
        find=matching(
            r"\.(?:where|find_by_sql|execute|order|joins|select)[ (]\s{0,4}\"[^\"\n]{0,200}?#\{(?!\s{0,4}[A-Z])",
            unless=r"sanitize_sql|quote\(",
        ),
    ),
    Rule(
        id="rb-html-safe",
        cwe=("CWE-79",),
        severity="medium",
        confidence="medium",
        message="Values become markup without being escaped.",
        languages=_RUBY,
        find=matching(r"\"[^\"\n]{0,200}?#\{[^\"\n]{0,200}\"\.html_safe\b|\braw[ (]\s{0,4}params\["),
    ),
)
