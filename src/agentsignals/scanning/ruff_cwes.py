"""The weakness that each of ruff's S rules is about, which its output does not name (MITRE's list, by title).

Rules without an entry are about robustness (`assert`, swallowed exceptions), or about an import alone.
"""

from __future__ import annotations

_RULES_OF = {
    "CWE-78": "S602 S603 S604 S605 S606 S607 S609 S601 S404",
    "CWE-89": "S608 S610 S611",
    "CWE-94": "S612 S702",
    "CWE-95": "S102 S307",
    "CWE-79": "S308 S701 S704",
    "CWE-22": "S202",
    "CWE-259": "S105 S106 S107",
    "CWE-295": "S323 S501 S507",
    "CWE-319": "S312 S321 S401 S402 S508",
    "CWE-326": "S505 S509",
    "CWE-327": "S304 S305 S413 S502 S503 S504",
    "CWE-328": "S303 S324",
    "CWE-330": "S311",
    "CWE-377": "S108 S306",
    "CWE-400": "S113",
    "CWE-489": "S201",
    "CWE-502": "S301 S302 S403 S506",
    "CWE-605": "S104",
    "CWE-611": "S313 S314 S315 S316 S317 S318 S319 S320 S405 S406 S407 S408 S409 S410 S411",
    "CWE-732": "S103",
    "CWE-939": "S310",
}
CWE_OF = {rule: cwe for cwe, rules in _RULES_OF.items() for rule in rules.split()}
