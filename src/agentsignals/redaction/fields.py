"""Finds the values of fields whose name states a secret: `DB_PASSWORD=…`, `"client_secret": "…"`, `setPassword("…")`,
a column of a table, a pair of name and value, a header, a sentence.

A name is not enough: `token: string`, `password = form.password` and `api_key=$KEY` are code. The look of the value
decides (`values`), the more so the less its name and its place state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.keys import BREAK
from agentsignals.redaction.values import (
    LEAST_CHARS,
    OF_APP,
    Present,
    Span,
    Word,
    alternates,
    common,
    has_all_kinds,
    has_digit,
    is_known,
    is_mixed,
    is_public,
    is_random,
    is_rare,
    is_rare_word,
    is_secret,
    is_strong,
    is_variable,
    looks_chosen,
    looks_drawn,
    looks_given,
    looks_typed,
    named,
    names_a_secret,
    occurrences,
    places,
    speaks_of_other,
)
from agentsignals.shell.tokens import names

_LINE_END = r"(?:\\?\r?\n|\\{1,2}n)"
_COPULAS = "is was are be ist war lautet est es era é è to jest er är on je este là adalah yra ir"
_COPULA = (
    rf"(?<=[ \t])(?:{_COPULAS.replace(' ', '|')}|to be|set to)\b(?!=)|[→—–]"
    r"|[是为為:：]|(?<=[\u3040-\u30ff])は|[은는]|هي|هو"
)
_ATTRIBUTES = r"(?:\s[\w:.-]{1,40}=(?:\"[^\"<>]{0,80}\"|'[^'<>]{0,80}')){0,4}"
_WRAPPED = (
    r"(?:string\(\d+\)\s(?=\")|(?:\[\]byte|bytes|String|str|Some|Ok|utf8|(?:[A-Za-z.:]{0,30}[.:])?(?:from\w*|[gG]etBytes|new|of|un?hex\w*"
    r"|\w*decode\w*))\((?=[\"']))?"
)
"""A conversion of a literal."""
_JOINT = deferred_pattern(
    r"(?:\\{0,4}[\"'`])?[\])*]{0,3}[\"']?(?:[.]{2,20}|[ ]\d(?=:))?[ \t]{0,24}"
    r"(?:\[\d{0,5}\][ ]?(?==)|\s\[[\w ]{1,30}\](?=:))?"
    r"(?:\s(?i:as\s|constant\s)?[\w&*]{1,20}(?:\(\d+\))?(?=\s:?=\s?[\"'])[ ])?"
    r"(?P<op>(?:\|\||\?\?|[:?+])?=(?!>)=?|=>|->|<-|:|(?:\|\||\?\?|or|[{])(?=[ ][\"'])|\|"
    rf"|{_ATTRIBUTES}>|,|{_COPULA}|(?=[ \t]))[*]{{0,3}}"
    rf"(?P<gap>[ \t]{{0,24}}(?:(?:[>|][-+]?)?{_LINE_END}[ \t+|#-]{{0,40}})?)(?:\[[\w ]{{0,20}}hidden\][ ])?[*(]{{0,3}}"
    rf"(?:!!?\w+[ ])?{_WRAPPED}(?:[bBrRfFuUN$@]{{1,2}}(?=\\{{0,4}}[\"'`]))?(?=[^\s])"
)
"""What joins a name to a value."""
_GIVEN_WITH = deferred_pattern(r"\b(?:with|using|and|by|use|trying) (?:(?:the|my|this) )?\Z")
_ENGLISH = frozenset(("password", "passwords", "passphrase", "passcode", "passwd", "pwd"))
"""Words that a sentence goes on after."""
_NAMES, _OTHER = deferred_pattern(r"(?:\A|(?<=\n))\s*(?:[\w.]+, )+\Z"), deferred_pattern(r"[\"'][^\"'\n]*[\"'], ")
_LINE_SIGN = r"(?:[ ]{0,8}\d{1,6}[→\t|:])?[+>|-]?"
"""What a listing or a diff puts before a line."""
_BLOCK = r"\s{0,4}\{[^{}]{0,200}?(?<=\s)(?=default|value)"
_TAGS = r"/?>(?:\s{0,20}</?\w{1,20}>)?|</\w{1,20}>"
_PAIR = deferred_pattern(
    r"\"[^\n]{0,80}\r?\n(?:[\w-]+: [^\n]{1,80}\n)?\r?\n(?=\S)|"  # a part of a form
    r"[\w\s]{0,20}/?i?[\"'`]?(?:,[^()\n]{0,40})?\),\s(?=[\"'`])|"  # of an element that a call looked up
    r"[^\n]{0,60}\n(?:New|Your)\s(?:value|password|token):\s|"  # a line of its own
    r"\(\)\s?(?:[:{]|=>)?\s*(?:return\s)?(?=[\"'`])|"  # what a function returns
    rf"[\])\"'`\\:]{{0,6}}(?:{_BLOCK}|\s{{0,8}}(?:[,;{{](?:\s\{{\starget:\s\{{)?|{_TAGS})|\s{{0,2}}\n{_LINE_SIGN}|\s{{1,3}}-(?=-?value|-?body))?"
    r"\s{0,40}(?:[-<.]\s{0,2})?(?:\\{0,4}[\"'`])?"
    r"(?:\w{1,20}[.])?(?i:(?:parameter)?value|default|val|string|data|text|content|fill|type|send(?:_?keys|_?line)?|write(?:_?line|ln)?|set_?value|input|enter"
    r"|current|body|with)"
    r"(?:\\{0,4}[\"'`])?(?:(?:\s[^<>\n]{1,60})?>(?:<\w{1,20}>)?|\s{0,3}(?:=>|[:=>(])|(?<=send)\s(?=\")|(?<=-value)\s|(?<=-Value)\s)\s{0,3}(?=\S)"
)
"""Between the name of a field and its value, where both are values of their own: `name: X, value: Y`."""
_QUOTE = deferred_pattern(r"\\{0,4}[\"'`]")
_MOST_QUOTED = 2000
_BRACED = deferred_pattern(r"\{(?![A-Za-z_][\w.]*[\[(}:!])(?P<value>[^{}\s\"']{6,60})\}(?=[;\"']|\Z)")
"""As connections by ODBC quote; a name in braces is a variable."""
_BARE_CHAR = r"(?:(?!&\w+=|\\{1,4}[\"'`]|\\[nrt])[^\s\"'`;<>,)\]}])"
_BARE_REST = deferred_pattern(f"{_BARE_CHAR}{{0,4000}}")
_BARE_END = deferred_pattern(r"[\s\"'`;<>,)\]}&\\](?:(?<![&\\])|(?<=&)(?=\w+=)|(?<=\\)(?=\\{0,3}[\"'`]|[nrt]))")
_TO_LINE_END = deferred_pattern(r"(?=\S*[;<>,][A-Za-z\d])[^\s\"'`=(){}\[\]\\]{8,40}(?=[ \t]*(?:\n|\Z))")
"""A value with a sign in it that ends others, if it is all that is left of the line."""
_BARE_CHARS = 100
"""So much of an unquoted value shows whether it is a secret. Only then the rest is read."""
_NEXT_LINE = deferred_pattern(BREAK + r"(?P<rest>[\w+/.-]{6,400}={0,2})(?=[ \t]{0,40}(?:[\r\n\"'`|│\\]|\Z))")
_BROKEN_CHARS = 12
"""Characters of a broken value on each of its lines but the last."""
_CUT = deferred_pattern(r"[|]|[^\0-\x7f]")
"""Where an unquoted value may end inside a word: a table cell, a pipe, another script."""
_ALONE = deferred_pattern(r"[ \t]*(?:\n|\Z)|[ ]\(")
_GOES_ON = deferred_pattern(r",? [^\W\d_]{2,}")
_ENDS = deferred_pattern(
    r"[.,;!?)\"']*(?:\s*(?:\Z|\n)|\s(?=[,(–—-]|(?:for|on|to|at|in|and|then|please|für|pour|para|per|i|y|et|und)\s))|,\s"
)
"""Behind a value that a sentence gives."""
_ALL_PROSE = deferred_pattern(r"(?: [a-z]{2,}){3}")
_LONG_WORD = 12
"""Letters from which on a word that others follow may be several joined, as a password is."""
_TEMPLATE = deferred_pattern(r"\{\{[^{}]*\Z")
_TELLS = frozenset((":", "=", ":=", "=>", "||", "??", "||=", "??=", "?=", "+=", "<-"))
"""Operators that always stand between a name and its value."""
_NAME = deferred_pattern(r"[\w.-]*")
_ESCAPED = deferred_pattern("u[0-9a-f]{4}")
_NAMED = deferred_pattern(r"[A-Za-z]\w{1,59}")
_NAME_REST = deferred_pattern(r"[\w-]{0,40}(?:\.\w{1,20}(?=[\"']))?")
_NAME_CHARS = 60
"""No name is longer."""
_OPENS_BEFORE = deferred_pattern(
    r"(?i)\b(?P<cipher>pragma|as \w{1,8})[ ]\Z"
    r"|\b(api|access|secret|private|license|licence|signing|encryption|account|master|unseal|recovery|deploy|storage)"
    r"(?:'s)?[ ]\Z"
)
_DRAWN_KEY = deferred_pattern(
    r"(?:\s(?:for|to|of)\s[\w\s]{1,40}?)?(?:\s?:?=\s?|:?\s(?:(?:is|was)\s)?)(?:\[\]byte\()?[\"']?(?:[a-z]{2,6}_){0,2}(?=[A-Za-z+/]*\d)(?=[a-z\d+/]*[A-Z])[A-Za-z\d+/]{24,}(?![\w-])"
)
_OPENS_CHARS = 12
_PARENT = deferred_pattern(
    r"(?m)^[ \t[-]*(api|app|access|secret|private|client|service|auth|account|master|admin)\"?(?:\]"
    r"|:\s*)\n(?:[ \t]*[\w-]+\s?[:=][^\n]*\n){0,3}[ \t]*\Z"
)
"""The field that a `key` is a part of."""
_OF_NETWORK = deferred_pattern(r"(?i)ssid|\bwpa|wlan|wi-?fi|wireless|isakmp|ipsec|tacacs|radius|\bpsk")
_NETWORK_CHARS = 80
"""So far behind such a word a `key` is a password."""
_DIGITS_OF_NETWORK = deferred_pattern(r"\d{16,}")
_NO_SIGNS = {ord(sign): None for sign in "+/"}
_HEADER = deferred_pattern(
    r"(?i:authorization)\\{0,4}[\"'`]?[ \t]{0,3}[:=,][ \t]{0,3}\\{0,4}[\"'`]?[brf]?"
    r"(?:[A-Za-z][\w-]{1,20}[ ])?"
    r"(?P<bare>[^\s\"'`\\,;<>\[{$][^\s\"'`\\,;<>]{5,4000})"
)
_BEARER = deferred_pattern(r"(?i:bearer)[ :]{1,2}(?P<bare>[\w.~+/-]{8,4000}={0,2})")
_COOKIE = deferred_pattern(
    r"(?i:cookie)\\{0,4}[\"'`]?[:,=][ ]?\\{0,4}[\"'`]?(?P<bare>[\w.-]{1,60}=[^\s\"'`\\][^\"'`\n\\]{5,4000})"
)
_COOKIE_CHARS = 8
_LOGIN_FIELD = deferred_pattern(r"\s{0,3}[:=]\s{0,3}[\"'](?P<value>[\w-]{20,200})[\"']")
"""A login that is a key, as analysers of code take it."""
_HEADERS = (("authorization", _HEADER), ("bearer", _BEARER))


def secrets(text: str, low: str, parts: Present) -> Iterator[Span]:
    """Yield values whose name states a secret, and values of headers that carry one. `low`: the text in lower case;
    `parts`: the parts of words that it contains."""
    done = name_end = 0
    tables: _Tables = {}
    for at, end in places(low, parts.names):
        if at < name_end or at < done:
            continue
        begun = _NAME.match(text[max(0, at - _NAME_CHARS) : at][::-1])  # backwards: else from each
        start = at - (begun.end() if begun else 0)
        if at - start == _NAME_CHARS:  # base64
            name_end = end
            continue
        if start and text[start - 1] == "\\":  # an escaped line end or arrow
            start += 1 if text[start] in "nrt" else 5 if _ESCAPED.match(text, start) else 0
        is_script = text[end - 1] > "\u2000"  # of no blanks: what follows is another word
        rest = None if is_script else _NAME_REST.match(text, end)
        name_end = rest.end() if rest else end
        name = text[start:name_end].rpartition("env.")[2].removeprefix("set_")
        if name.lower() == "key" and (opens := _OPENS_BEFORE.search(text, max(0, start - _OPENS_CHARS), start)):
            name = "database_password" if opens["cipher"] else f"{opens[2]}_key"
        elif name == "key" and (parent := _PARENT.search(text, max(0, start - _SAID_CHARS), start)):
            name = f"{parent[1]}_key"
        elif name.lstrip("-") == "key" and _DRAWN_KEY.match(text, name_end):
            name = "a_key"
        is_shared = name.lower().endswith(("key", "schlüssel")) and _OF_NETWORK.search(
            text, max(0, start - _NETWORK_CHARS), start
        )
        word = "password" if is_shared else named(name)
        around = text[max(0, at - 20) : end + 20] if word else ""
        if word is None or (len(around) > 40 and around.translate(_NO_SIGNS).isalnum()):  # base64
            continue
        for span in _of_name(text, start, name_end, name, word, tables):
            done = max(done, span.end)
            yield span
    for part, pattern in _HEADERS:
        for at in occurrences(low, part) if part in parts.texts else ():
            header = pattern.match(text, at)
            value = header["bare"] if header else ""
            is_mixed_case = len(value) >= 24 and value.lower() != value != value.upper()
            if header and not is_variable(value) and (has_digit(value) or is_mixed_case) and "(" not in value:
                yield Span(header.start("bare"), _last(text, *header.span("bare")), "secret")
    done = 0
    for at in occurrences(low, "cookie") if "cookie" in parts.texts else ():
        cookie = _COOKIE.match(text, at) if at >= done else None
        held = [pair.partition("=")[2] for pair in cookie["bare"].split(";")] if cookie else []
        held = held[:1] if text[at - 1 : at] == "-" else held  # attributes of a cookie that is set
        if cookie and any(len(value) >= _COOKIE_CHARS and not is_variable(value) for value in held):
            done = cookie.end()
            yield Span(*cookie.span("bare"), "secret")
    for at, end in places(low, parts.logins):
        if (both := _BELOW_BOTH.match(text, end)) and (looks_typed(both["value"]) or is_rare_word(both["value"])):
            yield Span(*both.span("value"), "secret")
        yield from _in_sentence(text, end)
        if given := _LOGIN_FIELD.match(text, end):
            value = given["value"]
            if (is_random(value, 20) and not is_public(value)) or _HEX_KEY.fullmatch(value):
                yield Span(*given.span("value"), "secret")
        before = _PAIR_BEFORE.search(text, max(0, at - _SAID_CHARS), at)
        if before and (looks_typed if ":" in before[0] else looks_chosen)(before["value"]):
            yield Span(*before.span("value"), "secret")
    yield from _calls(text, low, parts.calls)
    if parts.names:
        yield from _bytes_of_keys(text)
    if "insert" in parts.texts:
        yield from _inserts(text, low)


def _of_name(  # noqa: PLR0913  (a name, and what was read)
    text: str, start: int, end: int, name: str, word: Word, tables: _Tables
) -> Iterator[Span]:
    """Yield the secrets that the name from `start` to `end` introduces, by the first way to write them that fits."""
    if text[start - 1 : start] == ":" == text[end : end + 1]:  # an id of parts
        return
    if span := _value(text, start, end, name, word):
        yield span
        return
    before = _SAID_BEFORE.search(text, max(0, start - _SAID_CHARS), start) if word in _SAID else None
    said = before[before.lastgroup or 0] if before else ""
    is_rare_said = is_rare_word(said) and _ENDS.match(text, end) is not None
    if before and (
        looks_typed(said) or looks_given(said) or is_rare_said if word == "password" else looks_chosen(said)
    ):
        yield Span(*before.span(before.lastgroup or 0), "secret")
    if speaks_of_other(name) or (text[end : end + 1] in _OF_CODE and not text.startswith(("/i)", "()", "? "), end)):
        return
    if pair := _PAIR.match(text, end):
        first, last, quoted = _place(text, pair.end())
        value = text[first:last]
        if word == "password" and not quoted and is_rare_word(value) and _ALONE.match(text, last):
            yield Span(first, last, "secret")
            return
        may_be = looks_given(value) or (word == "password" and looks_typed(value))
        if value and (quoted or may_be) and is_secret(word, name, value, quoted=quoted):
            yield Span(first, last, "secret")
            return
    cells = list(_column(text, start, end, word, tables))
    if cells:
        yield from cells
    elif word in _SAID or word == "key":
        yield from _in_sentence(
            text, end, 20 if word == "key" else LEAST_CHARS, is_password=word in ("password", "secret")
        )


def _value(text: str, start: int, end: int, name: str, word: Word) -> Span | None:
    """Return the secret that an operator, a word or a line end joins to its name, if there is one."""
    joint = _JOINT.match(text, end)
    if joint is None or text.startswith("::", end) or text.startswith("--- PASS:", start - 4):  # a test's
        return None
    op = joint["op"]
    is_option = name[:1] == "-" or (text[start - 1 : start] == "/" and op == ":")
    at = joint.end()
    if op == "=" and text[start - 2 : start] == ", ":  # NAME, PASSWORD = "…", "…"
        names = _NAMES.search(text, max(0, start - _SAID_CHARS), start)
        for _ in range(names[0].count(", ") if names else 0):
            other = _OTHER.match(text, at)
            at = other.end() if other else at
    first, last, quoted = _place(text, at)
    is_file = text[start - 1 : start] == "/"  # the end of a path names a file, not the next word
    is_line = word == "password" and text[start - 1 : start] in ("", "\n") and text[last : last + 1] in ("", "\n")
    is_field = is_line or "_" in name or "." in name
    is_said = word == "password" and (
        name.lower().strip("-0123456789") not in _ENGLISH
        or _GIVEN_WITH.search(text, max(0, start - 15), start) is not None
    )
    is_quoted = (
        word == "password" and (text[last] == "'" or text[last + 1 : last + 2] in (",", ")", ";")) if quoted else False
    )
    is_keyword = quoted and text[start - 1 : start] == ":"
    if op == "" and (
        is_file
        or not (is_option or is_field or is_said or name.isupper() or "]" in joint[0] or is_quoted or is_keyword)
    ):
        return None
    if text.startswith("${", start - 2) and text.startswith(":-", end):  # what stands in for a variable
        first += 1
    before = text[start - 1 : start]
    if op == "=" and not quoted and before in ("'", '"') and joint.end() - end == 1:  # 'NAME=VALUE', quoted together
        closing = text.find(before, first, first + _BARE_CHARS)
        given = text[first:closing]
        if closing > first and "\n" not in given and "/" not in given and (word == "password" or " " not in given):
            last, quoted = closing, True
    if op.endswith(">") and text[start - 1 : start] == "<" and not quoted:  # an element's text
        closing = text.find("<", first, first + _BARE_CHARS)
        if closing > first and text.startswith("</", closing) and "\n" not in text[first:closing]:
            last, quoted = closing, True
    if op == ":" and not quoted and joint["gap"][:1] == " " and (whole := _TO_LINE_END.match(text, first)):
        last = whole.end() if is_random(whole[0], 8) or has_digit(whole[0]) else last
    value = text[first:last]
    if not quoted and text[first - 1 : first] == "(" and value.isalpha():
        return None
    if op == "|" and _TEMPLATE.search(text, max(0, start - _SAID_CHARS), start):
        return None  # a filter
    # A sentence gives a word that programs do not use, and goes on with another thing.
    is_given = word == "password" and is_rare_word(value) and _ENDS.match(text, last) is not None
    is_given = is_given and (op in _COPULAS.split() or (is_said and op == "" and name.isalpha()))
    if is_given and not quoted and not speaks_of_other(name):
        return Span(first, last, "secret")
    is_short = value.isalpha() and len(value) < _LONG_WORD
    is_common = is_short and not (is_option and (value not in common() or not _ALL_PROSE.match(text, last)))
    if not quoted and op != "=" and is_common and _GOES_ON.match(text, last):  # prose
        return None
    if quoted and " " in value and any(map(named, value.split())):  # what a person shall enter
        return None
    if not value or (quoted and value[0] in ";,)") or (value[0] in "?-+" and text.startswith("${", start - 2)):
        return None
    is_joined = _joined(word, name, value, joint, quoted=quoted, is_option=is_option, is_field=is_field)
    is_joined = is_joined or (op == "" and (is_quoted or is_keyword))
    if not (is_joined or (is_said and op == "" and (looks_typed(value) or _DIGITS_OF_NETWORK.fullmatch(value)))):
        return None
    is_assigned = op in _TELLS or is_option
    is_id = name.lower().replace("_", "").replace("-", "").endswith("secretid") and is_known(value)
    if (
        speaks_of_other(name)
        and not (is_id and "/" not in value)
        and not (is_assigned and word != "key" and is_random(value, 16) and not ("/" in value or is_known(value)))
    ):
        return None
    called = not quoted and text[last : last + 1] in ("(", "[")
    is_word = word == "password" and value.istitle() and value.isalpha() and _ALONE.match(text, last) is not None
    literal = (
        quoted or is_word or is_option or text[start - 1 : start] in ("?", "&", "#") or text[last : last + 2] == "</"
    )  # no code
    if called or not is_secret(word, name, value, quoted=literal):
        cut = None if called or quoted else _CUT.search(value)
        is_cut = cut and is_secret(word, name, value[: cut.start()], quoted=False)
        return Span(first, first + cut.start(), "secret") if cut and is_cut else None
    rest = None if quoted else _BARE_REST.match(text, last)
    if rest and rest[0]:
        last = max(last, len(text[: rest.end()].rstrip(".:\\")))
    return Span(first, last if quoted else _last(text, first, last), "secret")


def _last(text: str, start: int, end: int) -> int:
    """Return where a value ends that a terminal or a mail broke over lines: each next line looks random too."""
    while is_random(text[start:end], _BROKEN_CHARS) and (more := _NEXT_LINE.match(text, end)):
        if not (is_random(more["rest"], LEAST_CHARS) or alternates(more["rest"])):
            break
        end = more.end()
    return end


def _place(text: str, at: int) -> tuple[int, int, bool]:
    """Return start and end of the value, and whether it is quoted. The bounds are equal if there is none."""
    quote = _QUOTE.match(text, at)
    if quote:
        sign = quote[0] * 3 if text.startswith(quote[0] * 3, at) else quote[0]
        at += len(sign)
        end = text.find(sign, at, at + _MOST_QUOTED)
        if end >= 0 and "\n" not in text[at:end]:
            return at, end, True
    if braced := _BRACED.match(text, at):
        return *braced.span("value"), True
    ending = _BARE_END.search(text, at, at + _BARE_CHARS)
    bare = text[at : ending.start() if ending else at + _BARE_CHARS]
    return at, at + (len(bare.rstrip(".:\\")) if len(bare) >= LEAST_CHARS else 0), False


def _joined(  # noqa: PLR0913
    word: Word, name: str, value: str, joint: re.Match[str], *, quoted: bool, is_option: bool, is_field: bool
) -> bool:
    """Return whether the text between a name and a value can join them."""
    op, gap = joint["op"], joint["gap"]
    if name.lower() in ("pwd", "oldpwd") and (value[:1] in "/~.-" or op not in ("=", ":")):
        return False
    if "n" in gap or "\n" in gap:  # the next line is another thing more often than not
        is_dumped = op == "=>" and quoted
        return (
            op in (":", "=>")
            and value[-1] != ":"
            and "/" not in value[:1]
            and (is_dumped or _may_be_drawn(word, value))
        )
    if op == "":
        if is_option:
            return value[0] != "-"
        return is_random(value, 12) or (quoted and word == "password") or (is_field and looks_chosen(value))
    is_argument = op == "," and is_option and " " not in value and value[0] != "-"
    return (
        op in _TELLS
        or (quoted and (is_argument or op[-1] == ">"))
        or ((quoted or op != ",") and _may_be_drawn(word, value))
    )


def _may_be_drawn(word: Word, value: str) -> bool:
    if word == "password" and (value.isdigit() or OF_APP.fullmatch(value)):
        return True
    return (
        is_random(value, 8)
        or has_all_kinds(value)
        or (word in ("password", "hint") and (is_mixed(value) or looks_typed(value)))
    )


# -- sentences, calls and tables ---------------------------------------------------------------------------------------

_ASSIGNED = deferred_pattern(r"\w+=\w")
_OF_CODE = frozenset(("", ".", "(", "[", "?", "!", "-", "/", "&"))
"""What follows a name that is code or a part of another word."""
_SENTENCE_CHARS = 120
_SAID_CHARS = 90
_SAID_BEFORE = deferred_pattern(
    r"(?i:use|used|using|with|enter|type|try)\s(?P<used>\S{6,60})\sas\s(?:(?:the|a|my|your|its)\s)?(?:[a-z]+\s)?\Z"
    r"|[\"'](?P<other>[^\"'\s]{6,60})[\"'](?:\sas\s(?:(?:the|a|my|your)\s)?[\"'`]?|,\s?(?:\w+:\s?)?[\"'][\w.]*)\Z|[\"'](?P<compared>[^\"'\s]{6,60})[\"']\s[!=]={1,2}\s[\w.]*\Z|`(?P<value>[^`\s]{6,60})`\s(?:as|is|for)\s[\w\s]{0,30}\Z|\s(?P<beside>\S{6,60})\s\((?:(?:the|a|my|your)\s(?:\w+\s)?)?\Z"
    r"|\b(?:set|changed|reset)(?:\s\w+){0,4}\sto\s(?P<until>[^\s\"'`]{6,60})\s[^.;:\n]{0,60}\Z"
)
"""A value before the name of what it is."""
_PAIR_BEFORE = deferred_pattern(
    r"(?:\s[A-Za-z][\w.@-]{0,40}:|\b(?i:use|try|with|using)\s)(?P<value>[^\s:/\"'`]{6,60})\s(?:for|as|to|in|the|my)\s\Z"
)
_SAID = frozenset(("password", "secret", "token"))
_TOKEN = deferred_pattern(r"[^\s\"'`,|，。：、]+")
_ASIDE = deferred_pattern(r"\s?\((?:(?P<value>[^\s()]{8,})|[\w\s]{1,20})\)")
_BELOW = deferred_pattern(
    r"[ *]{0,8}\s*\n(?:\s*\n){0,2}(?:```\w*\s*\n)?(?:[\w-]{1,20}[ ]+\|)?"
    r"[ \t>|│]{0,12}(?P<value>[^\s`\"']{6,400})[ \t|│]*(?:\n|\Z)"
)
"""The line below a sentence that ends in a colon."""
_BELOW_BOTH = deferred_pattern(
    r"[^\n=(){}]{0,40}\n[ \t]*[A-Za-z][\w.@-]{1,30}\n[ \t]*(?P<value>[^\s:=(){}]{6,40})[ \t]*(?:\n|\Z)"
)
"""A user's name and a password, each on a line of its own."""
_GIVES = frozenset((*"/:=→—–«“„s", *_COPULAS.split(), "from", "with", "and", "still", "now", "just", "は", "是"))
_USER_AND = deferred_pattern(r"[A-Za-z][\w.@-]*(?::|/(?!.*/))(.+)")
_ITS = deferred_pattern(
    r"[^.\n]{0,60}?\b(?:it['’]?s|it is)\s(?:now\s)?(?P<value>[A-Za-z][\w.-]{5,40})(?=[\s,;)]|\.?\Z)"
)
_USER_AND_WORD = deferred_pattern(
    r"(?:(?:\s(?:are|is|were))?[\s:=]{1,3}|[^\n]{0,60}?\s(?:as|is)\s)[A-Za-z][\w.@-]{0,40}(?::|\s/\s|\sand\s(?:it['’]?s\s)?(?=[\w.-]*\d))(?P<value>[A-Za-z][\w.-]{5,40})(?=[\s,;)]|\.?\Z)"
)
_OF_OTHER = deferred_pattern(
    r"\s(?:for|of|on|to|für|pour|para|per)\s[^.,;:\n]{1,40}?(?:\s(?:is|was|ist|lautet|es|est|è):?|[:?])\s[\"'`]?(?P<value>[\w-]{6,40})[\"'`]?(?=[,.;!)]|\s*\Z)"
)
"""What the password of something is."""
_MIXES = deferred_pattern(r"[0-9!#$%^&*+?~]")
_SENTENCE = deferred_pattern(r"(?:[^\n\\(){}\[\];<>]|(?<=\s)\([^\n()]{1,60}\))*")
_IDENTIFIED = frozenset(("id", "commit", "sha", "hash", "version", "file", "uuid", "request", "ref", "build", "branch"))


def _in_sentence(text: str, at: int, least: int = LEAST_CHARS, *, is_password: bool = False) -> Iterator[Span]:
    """Yield a value of so many characters that looks drawn among the next words of the line: what a sentence or command
    says of it."""
    aside = _ASIDE.match(text, at)
    if aside and aside["value"] and (looks_typed if is_password else looks_drawn)(aside["value"]):
        yield Span(*aside.span("value"), "secret")
        return
    is_asked = text.startswith("? ", at)
    at = aside.end() if aside else at + is_asked
    if is_password and (drawn := _APP_PASSWORD.match(text, at) or _IN_QUOTES.match(text, at)):
        yield Span(*drawn.span(drawn.lastgroup or 0), "secret")
        return
    line = _SENTENCE.match(text, at, at + _SENTENCE_CHARS)
    before = ""
    end = line.end() if line else at
    end = min((n for n in (text.find('",', at, end), text.find('":', at, end)) if n >= 0), default=end)
    if (text[at:end].rstrip(" *").endswith(":") or (aside and at == end)) and (below := _BELOW.match(text, end)):
        value = below["value"]
        if looks_drawn(value) or looks_given(value):
            yield Span(*below.span("value"), "secret")
        return
    pair = _USER_AND_WORD.match(text, at, end) or (_ITS.match(text, at, end) if is_password else None)
    if pair and (is_rare_word(pair["value"]) or (_WORD_OF_CASES.fullmatch(pair["value"]) and is_rare(pair["value"]))):
        yield Span(*pair.span("value"), "secret")
        return
    if is_password and (of := _OF_OTHER.match(text, at, end)) and is_rare_word(of["value"]):
        yield Span(*of.span("value"), "secret")
        return
    if not _MIXES.search(text, at, end):
        return
    for n, token in enumerate(_TOKEN.finditer(text, at, end)):
        value = token[0].rstrip(".:?")
        value = value.rstrip("*_") if value[:1] in "*_" else value
        if n > 8 or before.endswith((".", "!", "?")) or before.strip(":#=").lower() in _IDENTIFIED:
            return
        value = value.lstrip("*_:=")
        if token.end() == end and text[end : end + 1] == "(":  # a call
            return
        is_given = (
            text[token.start() - 1] in "\"'`" or before in _GIVES or (is_asked and not n) or before.endswith((":", "="))
        )
        is_of_option = before[:1] == "-" and speaks_of_other(before)
        if (
            value[:1] == "-" or is_of_option or _IS_MAIL.fullmatch(value) or "://" in value or _ASSIGNED.match(value)
        ):  # judged by others
            before = token[0]
            continue
        value = value.strip("()")
        if (pair := _USER_AND.match(value)) and looks_chosen(pair[1]) and not is_known(pair[1].rstrip("/")):
            value, is_given = pair[1], True
        is_told = looks_drawn(value) or is_strong(value)
        is_told = is_told or (is_given and (looks_typed if is_password or before == "/" else looks_chosen)(value))
        is_told = is_told or (is_given and is_password and value.isdigit())
        is_told = is_told or (is_password and before.endswith(":") and value[-1:].isdigit() and is_rare_word(value))
        is_told = is_told or (is_given and least > LEAST_CHARS and _HEX_KEY.fullmatch(value) is not None)
        if len(value) >= least and is_told:
            first = text.index(value, token.start())
            yield Span(first, first + len(value), "secret")
            if not text.startswith(" to ", token.end()):  # from one to another
                return
        before = token[0]


_CALL = deferred_pattern(
    r"(?P<name>[a-z0-9_]{0,60}(?:(?:\.|::)\w{1,30}){0,2})(?:\\{0,4}[\"'])?\s{0,2}(?:(?:[=:]|=>)\s{0,2}(?:\w+\s?)?)?[(\[]\s{0,20}(?=[^)\]\s])"
)
"""The rest of the name of a call, or of a pair or list under such a name, and its opening."""
_LITERAL = deferred_pattern(r"[\"'`]((?:[^\"'`\\\n]|\\.){0,400})[\"'`]")
_ARGUMENTS_CHARS = 400
_IS_MAIL = deferred_pattern(r"[\w.+-]+@[\w-]+(?:\.[a-z]{2,}){1,3}[.,?]?")
_MAIL = deferred_pattern(r"@[\w-]+\.")
_ONLY_SECRETS = tuple(
    names("pass pwd secret crypt hmac fernet md5 sha aes serializer cookieparser hashsync hash:: cipher authenticate")
)
_TAKE_CHOSEN = (
    *_ONLY_SECRETS,
    *names("sequelize datasource argon redis.auth url.create auth cred login sign connect jwt basic wifi wlan"),
    *names("pdo drivermanager user bind keychain _pw ftp mysqli certificate pkcs"),
)
_TAKE_HEX = ("wallet", "private", "client", "cred", "token")
_TAKE_ONE = tuple(names(".auth :auth >auth set_password setpassword requirepass .unlock"))
"""Methods whose only literal is a password."""
_TAKE_ANY = tuple(names("login signin sign_in basicauth basic_auth credential credentials set_password"))
"""Calls of which the second of two literals is a password, however it looks."""
_IN_QUOTES = deferred_pattern(
    r"[^\n]{0,40}?(?:\bis|['’]s|\buse|:)\s(?=[\"'][a-z]+(?: [a-z]+){2,7}[\"'])[\"'](?!enter|please|your|the"
    r"|invalid|wrong)(?P<phrase>[a-z ]+)[\"']|[^.\n]{0,20}?[„“«「『](?P<value>[^„“”«»」』\n]{6,60})[“”»」』]"
)
_APP_PASSWORD = deferred_pattern(rf"[^.\n]{{0,90}}?(?:\bis|[:=])\s?(?P<value>{OF_APP.pattern})(?=[.\s]|\Z)")
_HEX_KEY = deferred_pattern(r"(?:0x)?[0-9a-fA-F]{32,128}")


def _calls(text: str, low: str, parts: frozenset[str]) -> Iterator[Span]:
    """Yield literals that are handed to a function or a pair whose name says that it takes a secret."""
    done = 0
    for at, _ in places(low, parts):
        call = _CALL.match(low, at) if at >= done else None
        if call is None or low.startswith("author", at):
            continue
        done, name = call.end(), call["name"]
        end = _closing(text, done)
        if text.find('"', done, end) < 0 and text.find("'", done, end) < 0:
            continue
        literals = [
            literal
            for literal in _LITERAL.finditer(text, done, end)  # without named ones
            if text[literal.start() - 4 : literal.start()].rstrip()[-1:] not in (":", "=")
            and text[literal.end() : literal.end() + 3].lstrip()[:1] not in (":", "=")
        ]
        for n, literal in enumerate(literals):
            value = literal[1]
            if len(value) < LEAST_CHARS or _MAIL.search(value):
                continue
            is_last = n == len(literals) - 1 and text.find(",", done, literal.start()) >= 0
            takes = (
                is_last
                or any(part in name for part in _ONLY_SECRETS)
                or (n > 0 and any(part in name for part in ("connect", "login")))
            )
            takes = takes or (n > 0 and len(literals) > 2) or (n == 1 and "cred" in name)
            takes_chosen = any(part in name for part in _TAKE_CHOSEN)
            chosen = (
                takes and takes_chosen and (looks_typed(value) or OF_APP.fullmatch(value) or _HEX_KEY.fullmatch(value))
            )
            # HOST, USER, PASSWORD, DATABASE or USER, PASSWORD.
            of_network = name.endswith(("wlan.connect", "wifi.connect"))
            is_named = of_network or not name.endswith("connect")
            is_place = n == 2 or (n == len(literals) - 1 < 2 and (n == 1 or takes) and is_named)
            if n == 2 and name.endswith("plainauth") and not is_variable(value):
                yield Span(*literal.span(1), "secret")
            is_place = is_place or (n == 1 and name.endswith("networkcredential"))
            is_place = is_place or (name.endswith("crypt") and "gen_salt" in text[literal.end() : literal.end() + 12])
            chosen = chosen or (is_place and takes_chosen and is_rare_word(value))
            if "encode" in name and (pair := _USER_AND.fullmatch(value)) and looks_typed(pair[1]):
                yield Span(literal.start(1) + pair.start(1), literal.end(1), "secret")
            is_hex = any(part in name for part in _TAKE_HEX) and _HEX_KEY.fullmatch(value)
            is_only = len(literals) == 1 and has_digit(value) and not ({*"/ .:"} & {*value} or is_variable(value))
            is_only = is_only and f"{text[at - 1 : at].lower()}{name}".endswith(_TAKE_ONE)
            is_second = n == 1 == len(literals) - 1 and name.endswith(_TAKE_ANY) and not is_variable(value)
            if (
                chosen
                or is_hex
                or is_only
                or (is_second and " " not in value)
                or looks_drawn(value, 12)
                or is_strong(value)
            ):
                yield Span(*literal.span(1), "secret")


_BYTE = r"(?:0x[0-9a-fA-F]{1,2}|\d{1,3})"
_BYTES = deferred_pattern(
    rf"[\[({{\"'](?:(?<=[\[({{])\s{{0,8}}+(?P<listed>(?:{_BYTE}\s{{0,8}}+,\s{{0,8}}+){{15,63}}{_BYTE})\s{{0,8}},?\s{{0,8}}[\])}}]"
    r"|(?<=[\"'])(?P<escaped>(?:\\{1,2}x[0-9a-fA-F]{2}){16,64})[\"'])"
)
_ONE_BYTE = deferred_pattern(r"0?x([0-9a-fA-F]{1,2})|(\d{1,3})")
_KEY_LENGTHS = (16, 24, 32, 48, 64)
_BEFORE_CHARS, _BEHIND_CHARS = 80, 60


def _bytes_of_keys(text: str) -> Iterator[Span]:
    """Yield the bytes of keys: as many as a key has, drawn, with a name of a secret before or behind them."""
    for hit in _BYTES.finditer(text):
        kind = hit.lastgroup or 0
        told = [int(x, 16) if x else int(n) for x, n in _ONE_BYTE.findall(hit[kind])]
        if len(told) not in _KEY_LENGTHS or not 127 < max(told) < 256 or 3 * len({*told}) < 2 * len(told):
            continue
        before, behind = text[max(0, hit.start() - _BEFORE_CHARS) : hit.start()], text[hit.end() :][:_BEHIND_CHARS]
        near = _NAMED.findall(before) + _NAMED.findall(behind.partition("\n")[0])
        if any(named(name) or name.lower().endswith("key") for name in near) and not any(map(speaks_of_other, near)):
            yield Span(*hit.span(kind), "key")


def _closing(text: str, at: int) -> int:
    """Return where the arguments end that begin at `at`."""
    depth, end = 1, min(len(text), at + _ARGUMENTS_CHARS)
    for n in range(at, end):
        if text[n] in "([{":
            depth += 1
        elif text[n] in ")]}":
            depth -= 1
            if not depth:
                return n
    return end


_RULE = deferred_pattern(r"[\s|+:=─┼├┤│┌┬┐└┴┘━┃-]+")
_RULED, _RULE_RUN = deferred_pattern(r"[-=]{3,}(?: {1,40}[-=]+){0,40} *(?=\n)"), deferred_pattern(r"[-=]+")
_MOST_ROWS = 200
_HEAD_CHARS = 500
_GAPS = deferred_pattern(r"[ ]{2,}|\t")
_Tables = dict[tuple[str, int, int, Word], int]
"""End of the last table by its separator, its width, the column that was read, and what the column's name states."""


def _column(text: str, start: int, end: int, word: Word, tables: _Tables) -> Iterator[Span]:
    """Yield the cells under a name that heads a column: of CSV, of tables in Markdown and on terminals. `tables`: where
    tables end that were read. A row inside one is no head of its own: it would read all rows below again."""
    near = text[max(0, start - 3) : start] + text[end : end + 3]
    near += text[max(0, start - _NAME_CHARS) : start].rstrip(" ")[-1:]
    head_end = text.find("\n", end, end + _HEAD_CHARS)
    ruled = _RULED.match(text, head_end + 1) if head_end >= 0 else None
    is_aligned = "  " in near or "\n" in text[end : end + 2] or ruled is not None
    sign = next((sign for sign in "|│,;\t" if sign in near), "  " if is_aligned else "")
    if not sign or (text[start - 1 : start] + text[end : end + 1]).strip(" \t|│,;\"'`*\n\r"):
        return
    head_start = text.rfind("\n", max(0, start - _HEAD_CHARS), start) + 1
    if head_end < 0 or start - head_start > _HEAD_CHARS:
        return
    is_aligned = sign == "  "
    head, before = text[head_start:head_end], text[head_start:start]
    if "||" in head:  # a head of a wiki
        head, before = head.replace("||", "|"), before.replace("||", "|")
    if sign == "\t" and _LISTED.match(head) and head.count("\t") == 1:  # a listing's own tab
        return
    width = len(_GAPS.findall(head.strip())) if is_aligned else head.count(sign)
    index = len(_GAPS.findall(before.lstrip())) if is_aligned else before.count(sign)
    columns = [run.span() for run in _RULE_RUN.finditer(ruled[0])] if ruled and is_aligned else []
    if columns:  # the line below the head tells where each begins
        index = sum(begin <= len(before) for begin, _ in columns) - 1
        columns = [(begin, after) for (begin, _), (after, _) in pairwise([*columns, (_HEAD_CHARS, 0)])]
    table = sign, width, index, word
    if not (width or columns) or index < 0 or start < tables.get(table, 0) or (sign == "," and "(" in head):
        return
    is_ruled = text.startswith(("-", "="), head_end + 1)
    sure = word in ("password", "secret", "hint") and (
        not is_aligned or is_ruled or text[start:end].isupper() or _OF_USERS.search(head) is not None
    )
    is_plain = word == "password" and sign in "|│"  # in such a column a password may be a word
    is_pin = word == "hint" and text[start:end].lower() in ("pin", "puk", "otp")
    is_plain_name = text[start:end].islower() or text[start:end].istitle()
    at = head_end + 1
    for _ in range(_MOST_ROWS):
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        line = text[at:line_end]
        if not line.strip():
            break
        if not _RULE.fullmatch(line):
            cells = (
                _CELL.finditer(line)
                if is_aligned
                else _QUOTED_CELL.finditer(line)
                if '"' in line and sign == ","
                else re.finditer(rf"(?:\A|(?<=[{sign}]))[^{sign}]*", line)
            )
            pieces = columns or [cell.span() for cell in cells]
            if len(pieces) != (len(columns) or width + 1):
                break
            first, last = pieces[index]
            if is_aligned and not columns and first != start - head_start and last != end - head_start:  # indented code
                break
            cell = line[first:last]
            value = cell.strip(" \t\r\"'`")
            if value and (
                looks_given(value)
                or (is_pin and _DIGITS.fullmatch(value))
                or (
                    is_plain
                    and is_mixed(value)
                    and len(value) >= LEAST_CHARS
                    and not is_known(value)
                    and " " not in value
                )
                or (word == "password" and cell[:1] == '"' and is_secret(word, "password", value))
                or (
                    sure
                    and (
                        looks_typed(value)
                        or (is_plain_name and not value.isupper() and is_rare_word(value))
                        or (is_plain and _WORD_OF_CASES.fullmatch(value))
                    )
                )
                if sure or word == "token"
                else looks_drawn(value)
            ):
                first += at + cell.index(value)
                yield Span(first, first + len(value), "secret")
        at = line_end + 1
    tables[table] = at


_LISTED = deferred_pattern(r" *\d+\t")
_WORD_OF_CASES = deferred_pattern(r"(?=.*[A-Z])(?=.*[a-z])(?=.*[_.!-])[\w.!-]{6,60}")
_OF_USERS = deferred_pattern(r"(?i)\b(?:user|login|account|e?mail)(?:name)?\b")
_DIGITS = deferred_pattern(r"\d{4,8}")
_QUOTED_CELL = deferred_pattern(r'(?:\A|(?<=,))(?:"(?:[^"]|"")*"|[^,]*)')
_CELL = deferred_pattern(r"\S+(?: \S+)*")
_INSERT = deferred_pattern(r"insert\s+into\s+\S+\s*\((?P<columns>[^)]{1,400})\)\s*values\s*(?=\()")
_ROW = deferred_pattern(
    r"\s*,?\s*\(((?:'(?:[^'\\]|\\.|'')*'|[^()'])*(?:\([^()]*\)(?:'(?:[^'\\]|\\.|'')*'|[^()'])*)*)\)"
)
_SQL_VALUE = deferred_pattern(r"\s*(?:[NEnexX]?'((?:[^'\\]|\\.|'')*)'|((?:[^,(']|\([^)]*\))*))\s*(?:,|\Z)")


def _inserts(text: str, low: str) -> Iterator[Span]:
    """Yield values of columns of secrets in rows that SQL inserts."""
    for insert in _INSERT.finditer(low):
        columns = text[slice(*insert.span("columns"))].split(",")
        wanted = {n for n, column in enumerate(columns) if names_a_secret(column.strip(" \t\n`\"[]'"))}
        at = insert.end()
        while wanted and (row := _ROW.match(text, at)):
            at = row.end()
            for n, value in enumerate(_SQL_VALUE.finditer(text, *row.span(1))):
                if n in wanted and value[1] and is_secret("password", "password", value[1]):
                    yield Span(*value.span(1), "secret")
