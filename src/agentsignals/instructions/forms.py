"""The forms in which sentences of instruction files state mechanical rules; code stands in them as `⟦n⟧`."""

from __future__ import annotations

import re

from agentsignals.instructions.rule import When

SOFT = re.compile(
    r"\b(?:can|could|may|might|consider|optionally|optional|prefer(?:ably|red)?|ideally|usually|typically|generally|try"
    r"|recommended|suggest(?:ed)?|feel free|if you (?:want|like|prefer|wish)|where possible|when possible|if possible"
    r"|no need to|not required|don't have to|do not have to|don't need to|do not need to)\b",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"\b(?:must|never|always|do not|don['’]t|should|shall|avoid|prefer|ensure|make sure|required)\b"
    r"|^(?:run|use|keep|follow|write|add|read|put|check|create|update|test|verify|document|treat|skip|ask|name|place)\b",
    re.IGNORECASE,
)
NOT = (
    r"(?:never|do not|don['’]t|must not|mustn['’]t|must never|should not|shouldn['’]t|should never|cannot|avoid"
    r"|under no circumstances)"
)
_NEVER = rf"{NOT}(?:\s+(?:ever|directly|manually|hand|try to))*\s+"
FORGET = re.compile(r"\b(?:never|do not|don['’]t) (?:forget|skip|fail|neglect) (?:to )?", re.IGNORECASE)
_CODES = r"((?:(?:\s*(?:,|/|or|and|and/or|nor|,\s*(?:or|and|nor))\s*)?⟦\d+⟧)+)"
NEVER_RUN = re.compile(
    rf"\b{_NEVER}(?:run|use|execute|call|invoke|using|running|executing|calling|invoking)\s+"
    rf"(?:(?:the|any|bare|plain|raw|standard|a)\s+)*{_CODES}",
    re.IGNORECASE,
)
NEVER_EDIT = re.compile(
    rf"\b{_NEVER}(?:edit|modify|touch|change|alter|overwrite|hand-edit|update|editing|modifying|touching|changing)\s+"
    rf"(?:(?:the|any|files?|code|anything|something|contents?|in|under|inside|within|of|a)\s+)*{_CODES}",
    re.IGNORECASE,
)
NEVER_BRANCH = re.compile(
    rf"\b{_NEVER}(?:commit|push|committing|pushing)(?:\s+(?:or|and)\s+(?:commit|push))?(?:\s+(?:directly|straight))?"
    r"\s+(?:to|on|into|onto)\s+(?:the\s+)?(⟦\d+⟧|main|master)(?:(?:\s+or\s+|/)(⟦\d+⟧|main|master))?(?: branch(?:es)?)?",
    re.IGNORECASE,
)
UNCHECKED = re.compile(
    rf"\b{_NEVER}(?P<act>commit|push|merge|open|create|submit|finish|complete)\w*(?P<what>[^⟦.;]*?)\b"
    rf"(?:without|before|until|unless)\s[^⟦.;]*?{_CODES}",
    re.IGNORECASE,
)
USE_NOT = (
    re.compile(
        rf"\buse\s+(?:the\s+)?{_CODES}\s*(?:commands?|cli)?\s*[,;(–—-]*\s*(?:instead of|rather than|not|never|and not|"
        rf"over|{NOT}(?: use)?)\s+(?:the\s+)?{_CODES}",
        re.IGNORECASE,
    ),
    re.compile(rf"\binstead of\s+{_CODES}\s*,?\s*(?:always )?use\s+{_CODES}", re.IGNORECASE),
    re.compile(
        rf"\b{_NEVER}use\s+(?:(?:the|bare|plain|standard)\s+)*{_CODES}(?:\s+commands?)?\s*[,;:.(–—-]+\s*"
        rf"(?:always |instead,? )?use\s+{_CODES}(?:\s+instead)?",
        re.IGNORECASE,
    ),
)
USE = re.compile(r"\b(?P<strong>always |only |must )?use\s+(?:only\s+)?⟦(\d+)⟧(?P<tail>[^.;]*)", re.IGNORECASE)
FOR_PACKAGES = re.compile(
    r"^\s*(?:$|exclusively|only|(?:for|as|to)\b[^⟦]*\b(?:packages?|dependenc(?:y|ies)|install\w*|scripts?)\b)", re.I
)
PREFIX = re.compile(
    r"\bprefix\s+(?:(?:all|every|each|any|your|shell|bash|terminal|cli)\s+)*commands?\s+with\s+⟦(\d+)⟧", re.I
)
MESSAGE = re.compile(r"\bconventional[- ]commits?\b", re.IGNORECASE)
TRAILER = re.compile(
    rf"\b{_NEVER}(?:add|include|use|put|append|mention|write|insert)\b[^.;]*\bco-?author(?:ed-by|s|ship)?\b", re.I
)
RUN = re.compile(
    rf"\b(?:re-?run|run|execute|invoke)\s+(?:(?:both|all|the|always|at least|a|full|first)\s+)*{_CODES}", re.I
)
RUN_BLOCK = re.compile(r"\b(?:re-?run|run|execute)\b[^⟦]*:\s*$", re.IGNORECASE)
_ANY = (
    r"(?:(?:any|every|each|all|you|your|the|a|an|making|make|creating|create|opening|submitting|raising|finali[sz]ing"
    r"|code)\s+)*"
)
OCCASIONS: tuple[tuple[When, re.Pattern[str]], ...] = (
    (
        "commit",
        re.compile(
            rf"\b(?:before|prior to)\s+{_ANY}(?:commits?|committing)\b(?:\s+(?:changes|code|anything))?", re.I
        ),
    ),
    ("push", re.compile(rf"\b(?:before|prior to)\s+{_ANY}(?:push(?:ing)?|PRs?|pull[- ]requests?)\b", re.I)),
    (
        "change",
        re.compile(
            rf"\bafter\s+{_ANY}(?:(?:code|source|file)\s+)?(?:changes?|edits?|modifications?|editing|modifying code"
            r"|changing code)\b(?!\s+(?:to|in|of)\b)", re.I
        ),
    ),
    (
        "done",
        re.compile(
            rf"\b(?:before\s+{_ANY}(?:finishing|completing|completion|considering|declaring|marking|handing|reporting"
            r"|claiming)\b(?:\s+(?:the|a|any|your|work|tasks?|done|complete|completed|as|it|off|over|in))*"
            r"|at the end of (?:any|every|each|the|a|your) (?:task|session|work)"
            r"|when (?:you are|you're) (?:done|finished))", re.I
        ),
    ),
)  # fmt: skip
EDITED = re.compile(
    r"\b(?:after|when(?:ever)?|if)\s+(?:(?:you|any|every|making|make|a|the|schema|an)\s+)*(?:changing|modifying|editing"
    r"|touching|updating|change|modify|edit|touch|update|changes?\s+(?:to|in)|changed)\s+"
    rf"(?:(?:the|any|files?|in|under|of|to|a|anything)\s+)*{_CODES}",
    re.I,
)
NEGATIVE_HEADING = re.compile(
    rf"^(?:{NOT}(?:\s+(?P<verb>run|use|edit|touch|modify|do))?"
    r"(?:\s+(?:this|these|any of these|the following|commands?|files?))*"
    r"|forbidden|prohibited|not allowed|don['’]ts)(?:\s*\([^)]*\))?\s*:?$",
    re.I,
)
BARE_MANAGER = re.compile(r"(?<![\w/@.-])(npm|pnpm|yarn|pip|poetry|conda|pipenv|bun|uv)(?![\w/@-]|\.\w)", re.IGNORECASE)
ADDRESSED = re.compile(
    r"(?:^|[,;:(–—.]|\b(?:and|then|also|please|always|you|we|agents?|contributors|developers|to|that|sure|must|should"
    r"|shall|need|have|remember|ensure|make|first|important|critical|mandatory|required|note|warning|be|only)\b|[^\w\s⟦⟧`'’])\s*$",
    re.IGNORECASE,
)
NOT_ADDRESSED = re.compile(
    r"\b(?:CI|hooks?|pipelines?|tests?|scripts?|servers?|users?|customers|they|it)\s+(?:must|should|shall|will|to)\s*$",
    re.IGNORECASE,
)
"""Somebody else is: `CI must run`."""
_BEHIND = (
    r"^\W*(?:$|(?:directly|ever|commands?|anymore|here|at all|again|manually|by hand|instead|yourself|files?|folders?"
    r"|director(?:y|ies)|in (?:this|the) (?:repo|repository|project|codebase)|under any circumstances|for any reason"
    r"|locally|first|successfully|branch(?:es)?)\b\W*)*"
    r"(?:$|(?:and|so|because|since|it|they|this|these)\b.*$|(?<=[—–:(] )\w.*$|(?<=[—–:(])\w.*$)"
)
HARMLESS = re.compile(_BEHIND, re.IGNORECASE)
"""What follows a command or a path without narrowing the rule: nothing, emphasis, a reason. A purpose (`to make tests
pass`) narrows what is forbidden."""
