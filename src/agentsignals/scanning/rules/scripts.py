"""PHP and Ruby."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_PHP, _RUBY = ("php",), ("ruby",)
_GIVEN = r"\$_(?:GET|POST|REQUEST|COOKIE)\b"
_CLEANED = r"(?i)htmlspecialchars|htmlentities|escapeshell|intval|\(int\)|basename|esc_|filter_"

RULES = (
    Rule(
        "php-sql-built",
        ("CWE-89",),
        "high",
        "medium",
        "SQL is put together from values; pass them as parameters.",
        _PHP,
        matching(
            r"\b(?:mysqli?_query|pg_query|->(?:query|exec|prepare))\((?:\s{0,4}\$\w{1,40}\s{0,4},)?\s{0,10}[\"']"
            r"\s{0,10}"
            r"(?i:select\s|insert\s+into\s|update\s|delete\s+from\s)(?:[^\"';]{0,300}[\"']\s{0,4}\.\s{0,4}\$|[^"
            r"\"';]{0,300}?"
            r"(?:\{\$|\$\w))|->(?:query|exec|prepare)\(\s{0,10}\"(?i:select\s|insert\s+into\s|update\s|delete\s+from\s)"
            r"[^\"]{0,300}?\$\w"
        ),
    ),
    Rule(
        "php-command-from-request",
        ("CWE-78",),
        "high",
        "high",
        "The sender of a request chooses a command.",
        _PHP,
        matching(rf"\b(?:exec|system|shell_exec|passthru|popen|proc_open)\([^;\n]{{0,160}}{_GIVEN}", unless=_CLEANED),
    ),
    Rule(
        "php-include-from-request",
        ("CWE-98",),
        "high",
        "high",
        "The sender of a request chooses a file to run.",
        _PHP,
        matching(rf"\b(?:include|require)(?:_once)?\s{{0,4}}\(?[^;\n]{{0,100}}{_GIVEN}", unless=_CLEANED),
    ),
    Rule(
        "php-echo-request",
        ("CWE-79",),
        "high",
        "high",
        "What the sender of a request chose comes back as markup.",
        _PHP,
        matching(rf"(?:\becho|\bprint|<\?=)\s[^;\n]{{0,120}}{_GIVEN}", unless=_CLEANED),
    ),
    Rule(
        "php-unserialize",
        ("CWE-502",),
        "high",
        "medium",
        "Decoding makes objects that the data names.",
        _PHP,
        matching(r"\bunserialize\(\s{0,4}\$(?![^;\n]{0,120}allowed_classes)"),
    ),
    Rule(
        "php-eval",
        ("CWE-95",),
        "high",
        "medium",
        "A text that is not constant is run as code.",
        _PHP,
        matching(r"(?<![\w>:])eval\(\s{0,4}[^)\"'\n]{0,80}\$"),
    ),
    Rule(
        "rb-command-built",
        ("CWE-78",),
        "high",
        "medium",
        "A command put together from values goes through a shell.",
        _RUBY,
        matching(
            r"(?<![\w.])(?:system|exec|spawn|IO\.popen|Open3\.capture\w{1,4})[ (]\s{0,4}\"[^\"\n]{0,200}?#\{|%x["
            r"\[({][^\n]"
            r"{0,200}?#\{|(?<![\w'\"])`[^`\n]{0,200}?#\{"
        ),
    ),
    Rule(
        "rb-unsafe-decoder",
        ("CWE-502",),
        "high",
        "medium",
        "Decoding makes objects that the data names.",
        _RUBY,
        matching(r"\b(?:Marshal\.load|YAML\.(?:load|unsafe_load))[ (](?![^\n]{0,80}File\.)"),
    ),
    Rule(
        "rb-sql-built",
        ("CWE-89",),
        "high",
        "medium",
        "SQL is put together from values; pass them as parameters.",
        _RUBY,
        matching(
            r"\.(?:where|find_by_sql|execute|order|joins|select)[ (]\s{0,4}\"[^\"\n]{0,200}?#\{(?!\s{0,4}[A-Z])",
            unless=r"sanitize_sql|quote\(",
        ),
    ),
    Rule(
        "rb-html-safe",
        ("CWE-79",),
        "medium",
        "medium",
        "Values become markup without being escaped.",
        _RUBY,
        matching(r"\"[^\"\n]{0,200}?#\{[^\"\n]{0,200}\"\.html_safe\b|\braw[ (]\s{0,4}params\["),
    ),
)
