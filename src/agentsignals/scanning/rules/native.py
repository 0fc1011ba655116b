"""C, C++ and Rust."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_C = ("c",)

RULES = (
    Rule(
        id="c-unbounded-copy",
        cwe=("CWE-676", "CWE-120"),
        severity="high",
        confidence="medium",
        message="Nothing keeps the copy within its target.",
        languages=_C,
        find=matching(
            r"(?<![\w.>:])(?:gets|strcpy|strcat|vsprintf)\s{0,4}\((?!\s{0,4}\w{1,40}\s{0,4},\s{0,4}\"[^\""
            r"\n]{0,60}\"\s{0,4}\))"
            r"|(?<![\w.>:])sprintf\s{0,4}\([^;\n]{0,80},\s{0,4}\"[^\"\n]{0,200}?%s"
        ),
    ),
    Rule(
        id="c-format-variable",
        cwe=("CWE-134",),
        severity="high",
        confidence="medium",
        message="A text that is not constant is taken for a format.",
        languages=_C,
        find=matching(
            r"(?<![\w.>:])(?:printf\s{0,4}\(|(?:fprintf|syslog|dprintf)\s{0,4}\(\s{0,4}\w{1,40}\s{0,4},)"
            r"\s{0,4}[a-z_]\w{0,40}"
            r"(?:(?:->|\.)\w{1,40}){0,3}\s{0,4}\)"
        ),
    ),
    Rule(
        id="c-system-variable",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command that is not constant goes through a shell.",
        languages=_C,
        find=matching(r"(?<![\w.>:])(?:system|popen)\s{0,4}\(\s{0,4}+(?![\"L)])[A-Za-z_]\w{0,40}"),
    ),
    Rule(
        id="c-temporary-name",
        cwe=("CWE-377",),
        severity="medium",
        confidence="high",
        message="Another process can take the name before the file is made.",
        languages=_C,
        find=matching(r"(?<![\w.>:])(?:tmpnam|tempnam|mktemp)\s{0,4}\("),
    ),
    Rule(
        id="rs-shell-built",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command put together from values goes through a shell.",
        languages=("rust",),
        find=matching(
            r"\bCommand::new\(\s{0,4}\"(?:/bin/)?(?:sh|bash|cmd)\"\s{0,4}\)\s{0,40}\.args?\([^;]{0,200}?format!\("
        ),
    ),
    Rule(
        id="rs-unverified-tls",
        cwe=("CWE-295",),
        severity="high",
        confidence="high",
        message="The other side's certificate is not checked.",
        languages=("rust",),
        find=matching(r"\bdanger_accept_invalid_(?:certs|hostnames)\(\s{0,4}true\b"),
    ),
)
