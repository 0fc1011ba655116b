"""Pages: what they load from elsewhere, and how."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_PAGES = ("html",)
_HERE = r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|www\.w3\.org|schemas?\.|example\.(?:com|org|net))"

RULES = (
    Rule(
        id="html-no-integrity",
        cwe=("CWE-353",),
        severity="low",
        confidence="medium",
        message="A script or style of another site is loaded without its hash.",
        languages=_PAGES,
        find=matching(
            r"<script\b(?=[^<>]{0,400}\ssrc\s{0,4}=\s{0,4}[\"']?(?:https?:)?//)(?![^<>]{0,400}\sintegrity"
            r"\s{0,4}=)[^<>]{0,400}>"
            r"|<link\b(?=[^<>]{0,400}\srel\s{0,4}=\s{0,4}[\"']?stylesheet)(?=[^<>]{0,400}\shref\s{0,4}=\s{0,4}["
            r"\"']?(?:https?:)?//)"
            r"(?![^<>]{0,400}\sintegrity\s{0,4}=)[^<>]{0,400}>",
            needs=("//",),
            flags=2,
            unless=r"fonts\.googleapis\.com|googletagmanager\.com|localhost|127\.0\.0\.1",
        ),
    ),
    Rule(
        id="html-plaintext-link",
        cwe=("CWE-319",),
        severity="low",
        confidence="medium",
        message="This address is asked without encryption.",
        languages=_PAGES,
        find=matching(
            rf"\b(?:href|src|action|poster)\s{{0,4}}=\s{{0,4}}[\"']http://(?!{_HERE})[^\"'\n<>]{{1,300}}[\"']",
            flags=2,
            needs=("http://", "HTTP://"),
        ),
    ),
    Rule(
        id="html-script-address",
        cwe=("CWE-79",),
        severity="low",
        confidence="medium",
        message="Values become part of a script address.",
        languages=("html", "javascript"),
        find=matching(
            r"\bhref\s{0,4}=\s{0,4}(?:\{\s{0,4}`|[\"'])javascript:[^\"`\n]{0,100}(?:\$\{|\{\{)", needs=("javascript:",)
        ),
    ),
)
