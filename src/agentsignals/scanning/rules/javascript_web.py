"""JavaScript and TypeScript: pages, requests, objects that others fill."""

from __future__ import annotations

from agentsignals.scanning.rules.javascript import BUILT, REQUEST
from agentsignals.scanning.rules.rule import Rule, matching

_JS = ("javascript",)
_PAGES = ("javascript", "html")
_CLEANED = r"(?i)sanitiz|purify|escapeHtml|escape\(|encodeURI|highlight"

RULES = (
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
