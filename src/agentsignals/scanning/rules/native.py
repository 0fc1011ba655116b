"""C, C++ and Rust."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_C = ("c",)

RULES = (
    Rule(
        "c-unbounded-copy",
        ("CWE-676", "CWE-120"),
        "high",
        "medium",
        "Nothing keeps the copy within its target.",
        _C,
        matching(
            r"(?<![\w.>:])(?:gets|strcpy|strcat|vsprintf)\s{0,4}\((?!\s{0,4}\w{1,40}\s{0,4},\s{0,4}\"[^\""
            r"\n]{0,60}\"\s{0,4}\))"
            r"|(?<![\w.>:])sprintf\s{0,4}\([^;\n]{0,80},\s{0,4}\"[^\"\n]{0,200}?%s"
        ),
    ),
    Rule(
        "c-format-variable",
        ("CWE-134",),
        "high",
        "medium",
        "A text that is not constant is taken for a format.",
        _C,
        matching(
            r"(?<![\w.>:])(?:printf\s{0,4}\(|(?:fprintf|syslog|dprintf)\s{0,4}\(\s{0,4}\w{1,40}\s{0,4},)"
            r"\s{0,4}[a-z_]\w{0,40}"
            r"(?:(?:->|\.)\w{1,40}){0,3}\s{0,4}\)"
        ),
    ),
    Rule(
        "c-system-variable",
        ("CWE-78",),
        "high",
        "medium",
        "A command that is not constant goes through a shell.",
        _C,
        matching(r"(?<![\w.>:])(?:system|popen)\s{0,4}\(\s{0,4}+(?![\"L)])[A-Za-z_]\w{0,40}"),
    ),
    Rule(
        "c-temporary-name",
        ("CWE-377",),
        "medium",
        "high",
        "Another process can take the name before the file is made.",
        _C,
        matching(r"(?<![\w.>:])(?:tmpnam|tempnam|mktemp)\s{0,4}\("),
    ),
    Rule(
        "rs-shell-built",
        ("CWE-78",),
        "high",
        "medium",
        "A command put together from values goes through a shell.",
        ("rust",),
        matching(
            r"\bCommand::new\(\s{0,4}\"(?:/bin/)?(?:sh|bash|cmd)\"\s{0,4}\)\s{0,40}\.args?\([^;]{0,200}?format!\("
        ),
    ),
    Rule(
        "rs-unverified-tls",
        ("CWE-295",),
        "high",
        "high",
        "The other side's certificate is not checked.",
        ("rust",),
        matching(r"\bdanger_accept_invalid_(?:certs|hostnames)\(\s{0,4}true\b"),
    ),
)
