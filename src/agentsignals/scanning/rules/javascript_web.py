"""JavaScript and TypeScript: pages, requests, objects that others fill."""

from __future__ import annotations

from agentsignals.scanning.rules.javascript import BUILT, REQUEST
from agentsignals.scanning.rules.rule import Rule, matching

_JS = ("javascript",)
_PAGES = ("javascript", "html")
_CLEANED = r"(?i)sanitiz|purify|escapeHtml|escape\(|encodeURI|highlight"

RULES = (
    Rule(
        "js-html-built",
        ("CWE-79",),
        "medium",
        "medium",
        "Values become markup without being escaped.",
        _PAGES,
        matching(
            rf"\.(?:innerHTML|outerHTML)\s{{0,4}}\+?=\s{{0,20}}(?:{BUILT}|[a-z][\w$]{{0,40}}(?:\.[\w$]{{1,40}}){{0,4}}"
            rf"\s{{0,4}};)|\.insertAdjacentHTML\(\s{{0,10}}[\"'][a-z]{{5,12}}[\"']\s{{0,4}},\s{{0,20}}{BUILT}",
            needs=("HTML",),
            unless=_CLEANED,
        ),
    ),
    Rule(
        "js-document-write",
        ("CWE-79",),
        "medium",
        "medium",
        "Values are written into the page as markup.",
        _PAGES,
        matching(
            rf"\bdocument\.write(?:ln)?\(\s{{0,20}}(?:{BUILT}|location\b)", needs=("document.write",), unless=_CLEANED
        ),
    ),
    Rule(
        "js-react-html",
        ("CWE-79",),
        "medium",
        "medium",
        "Markup that is not constant goes around React's escaping.",
        _JS,
        matching(
            r"\bdangerouslySetInnerHTML=\{\{\s{0,10}__html:\s{0,10}+(?![\"'][^\"'\n]{0,200}[\"']\s{0,4}\}"
            r"|[A-Z][A-Z0-9_]{1,40}\b|JSON\.stringify)",
            needs=("dangerouslySetInnerHTML",),
            unless=_CLEANED,
        ),
    ),
    Rule(
        "js-vue-html",
        ("CWE-79",),
        "medium",
        "low",
        "Markup that is not constant goes around Vue's escaping.",
        _PAGES,
        matching(r"\sv-html=\"(?!')[^\"\n]{1,200}\"", needs=("v-html",), unless=_CLEANED),
    ),
    Rule(
        "js-replaced-once",
        ("CWE-116",),
        "medium",
        "medium",
        "Only the first of these characters is replaced; the others get through.",
        _JS,
        matching(r"\.replace\(\s{0,10}(?:\"[<>&'\\]\"|'[<>&\"\\]'|[\"']\.\./[\"'])\s{0,4},"),
    ),
    Rule(
        "js-mass-assignment",
        ("CWE-915",),
        "medium",
        "medium",
        "The sender of a request chooses which fields are set.",
        _JS,
        matching(
            r"\b(?:Object\.assign|_\.merge|_\.extend|_\.defaultsDeep|merge|deepmerge)\([^;\n]{0,100},\s{0,10}"
            r"(?:req|request|ctx\.request)\.(?:body|query)\s{0,4}[,)]"
            r"|\.(?:create|insertOne|updateOne|findByIdAndUpdate)\((?:[^;\n]{0,60},)?\s{0,10}(?:req|request)\.body"
            r"\s{0,4}[,)]|\bnew\s{1,4}[A-Z]\w{0,40}\(\s{0,4}(?:req|request)\.body\s{0,4}\)"
        ),
    ),
    Rule(
        "js-prototype-key",
        ("CWE-1321",),
        "medium",
        "medium",
        "A key from outside may reach the prototype of all objects.",
        _JS,
        matching(
            r"[\w$)\]]\[\s{0,4}(?:req|request)\.(?:params|query|body)\.[\w$]{1,40}\s{0,4}\](?:\[[^\]\n]"
            r"{1,60}\])?\s{0,4}=(?![=>])"
        ),
    ),
    Rule(
        "js-open-redirect",
        ("CWE-601",),
        "medium",
        "high",
        "The sender of a request chooses where it leads.",
        _JS,
        matching(
            rf"\.redirect\((?:\s{{0,4}}\d{{3}}\s{{0,4}},)?\s{{0,10}}{REQUEST}"
            r"|\b(?:window\.)?location(?:\.href)?\s{0,4}=\s{0,4}[^;\n]{0,60}(?:searchParams|[pP]arams)\.get\("
        ),
    ),
    Rule(
        "js-url-from-request",
        ("CWE-918",),
        "high",
        "high",
        "The sender of a request chooses an address to fetch.",
        _JS,
        matching(
            rf"(?<![\w$.])(?:fetch|got|needle|axios(?:\.(?:get|post|put|head|request))?)\(\s{{0,20}}(?:`\$"
            rf"\{{\s{{0,4}})?"
            rf"{REQUEST}"
        ),
    ),
    Rule(
        "js-xss-in-answer",
        ("CWE-79",),
        "high",
        "high",
        "What the sender of a request chose comes back as markup.",
        _JS,
        matching(
            rf"\bres\.(?:send|write|end)\(\s{{0,20}}(?:`[^`]{{0,300}}?\$\{{\s{{0,4}}{REQUEST}"
            rf"|[\"'][^\"'\n]{{0,200}}[\"']\s{{0,4}}\+\s{{0,4}}{REQUEST})",
            unless=_CLEANED,
        ),
    ),
    Rule(
        "js-message-to-anybody",
        ("CWE-346",),
        "low",
        "medium",
        "Whatever page is there gets the message.",
        _PAGES,
        matching(
            r"\b(?:parent|opener|top|contentWindow|frame)\b[\w$.?!]{0,40}\.postMessage\([^;]{0,200}?,\s{0,4}["
            r"\"']\*[\"']",
            needs=("postMessage",),
        ),
    ),
    Rule(
        "js-any-origin-with-cookies",
        ("CWE-942",),
        "medium",
        "medium",
        "Any page may ask with the visitor's cookies.",
        _JS,
        matching(
            r"\bcors\(\s{0,4}\{[^}]{0,200}\borigin\s{0,4}:\s{0,4}(?:true\b|[\"']\*[\"'])[^}]{0,200}credentials\s{0,4}:"
            r"\s{0,4}true",
            needs=("cors(",),
        ),
    ),
)
