"""Finds logins in fixed places: addresses, headers of Basic, netrc, docker's files, SQL, password hashes, web keys."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.spans import Span, occurrences
from agentsignals.redaction.values import is_known, is_random, is_variable, looks_chosen, looks_drawn

_LOGIN = deferred_pattern(r"[^\s/@:\"'<>]{0,200}:[^\s/@\"'<>]{1,200}(?=@)|[\w-]{16,255}(?=@)")
_VARIABLE = deferred_pattern(r"(?:\A|:)(?:\$?\{|\$\(|\$[A-Z_]+\Z|\[)")
_BASIC = deferred_pattern(r"(?i:basic) (?P<value>[A-Za-z0-9+/]{8,400}={0,2})")
_AUTH = deferred_pattern(
    r"(?i:auth)\\{0,16}[\"']?\s{0,3}[:=]\s{0,3}\\{0,16}[\"']?(?P<value>[A-Za-z0-9+/_-]{8,400}={0,2})"
)
_VALUE = r"\\{0,4}[NE]?\\{0,4}[\"']?(?P<value>[^\s\"'\\<>\[{$-][^\s\"'\\|;&]{2,200})"
_NEXT = r"(?:\s|\\{1,2}[nrt]){1,8}(?:\d{1,6}[→\t:|]\s{0,4})?(?:[+>|#-]{1,3}\s{0,8})?"
"""Between two words of a file: blanks, a line end, and what a listing, diff or quote puts before a line."""
_NETRC = deferred_pattern(
    rf"(?:machine{_NEXT}\S{{1,200}}|default){_NEXT}(?:(?:login|account){_NEXT}\S{{1,200}}{_NEXT}){{1,2}}password{_NEXT}{_VALUE}"
)
_IDENTIFIED = deferred_pattern(rf"(?i:identified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?){_VALUE}")
_PLACES = (("machine", _NETRC, "password"), ("default", _NETRC, "password"), ("identified", _IDENTIFIED, ""))
_PGPASS = deferred_pattern(r":(?:\d{2,5}|\*):[\w*.-]+:[\w*.-]+:(?P<value>[^\s:\"'`]{4,100})")
_HASHED = deferred_pattern(r"\$(?:apr1|2[abxy]|[156y]|argon2\w{1,2}|scrypt|pbkdf2[\w-]*|S|P|H)\$[\w./+=,$!-]{12,200}")
_LABELLED = deferred_pattern(r"\{S?(?:SHA|SSHA|MD5|SMD5|CRYPT)\d*\}[\w+/=]{16,}")
_LISTED = r"(?:[ \t]*\d{1,6}[→\t|])?"
_KIND = deferred_pattern(rf"(?m)^{_LISTED}[ \t]*kind:[ ]*[\"']?Secret\b")
_MANIFEST = deferred_pattern(
    rf"(?m)^{_LISTED}(?P<in>[ \t]*)(?:data|stringData):[ \t]*\n(?P<body>(?:{_LISTED}(?P=in)[ \t]+\S.*(?:\n|\Z))+)"
)
_MANIFEST_VALUE = deferred_pattern(rf"(?m)^{_LISTED}[ \t]+[\w.-]+:[ ]*[\"']?(?P<value>[^\s\"'#|>][^\s\"']{{3,}})")
"""Kubernetes' manifests of secrets: everything under `data` and `stringData`."""
_NTLM = deferred_pattern(r":[0-9a-fA-F]{32}:[0-9a-fA-F]{32}(?=:|\s|\Z)")
_WEB_KEY = deferred_pattern(
    r"[\"'](?:d|p|q|dp|dq|qi|k)\\{0,4}[\"']\s{0,3}:\s{0,3}\\{0,4}[\"'](?P<value>[\w-]{16,2000})"
)
_TICKET = deferred_pattern(
    r"(?i:negotiate|ntlm|kerberos) (?P<value>[A-Za-z0-9+/]{24,20000}={0,2})"
    r"|(?P<paseto>v[1-4]\.(?:local|public)\.[\w-]{20,})"
)
_QUERY = deferred_pattern(r"[?&;](?:amp;)?(?P<name>[\w.%-]{1,60})=(?P<value>[\w%.~+/=!-]{8,4000})")
_IN_QUERIES = (
    *("sig", "signature", "code", "ticket", "sessionid", "assertion", "policy", "hmac", "hash", "state", "auth", "key"),
)
"""Ends of names of parameters that authorize."""
_AT_CHARS = 170
_AT_HOST = deferred_pattern(
    r"(?:\A|(?<=[\s\"'`(=,|<>]))(?:[\w.\\-]{1,60}(?:/[\w.\\-]{1,60})?:(?P<value>[^\s:@/\"'`]{5,100})|(?:[a-z]+:)*@?"
    r"[\w$#]{2,30}/(?P<behind>[^\s/@\"':?&=]{5,60}))\Z"
)
_HOST = deferred_pattern(r"@(?<=[\w!#$%^&*+=?~)-]@)(?:tcp|unix)?[(]?/{0,2}[\w\[][\w.:-]*")
_HEX_KEY = deferred_pattern(r"0x[0-9a-fA-F]{64}(?![0-9a-fA-F])")


def logins(text: str, low: str) -> Iterator[Span]:
    """Yield logins in fixed places. `low`: the text in lower case."""
    for at in occurrences(text, "://") if "://" in text else ():
        login = _LOGIN.match(text, at + 3)
        if login and not _VARIABLE.search(login[0]):
            yield Span(login.start(), login.end(), "login")
    for sign, encoded in (("basic ", _BASIC), ("auth", _AUTH)):
        if sign in low:
            for at in occurrences(low, sign):
                hit = encoded.match(text, at)
                if hit and is_login(hit["value"]):
                    yield Span(*hit.span("value"), "login")
    for sign, pattern, needed in _PLACES:
        done = 0
        for at in occurrences(low, sign) if needed in low else ():
            hit = pattern.match(text, at) if at >= done else None
            quoted = hit is not None and text[hit.start("value") - 1] in "\"'"
            if hit and not is_variable(hit["value"]) and (quoted or looks_chosen(hit["value"]) or needed):
                done = hit.end()
                yield Span(*hit.span("value"), "login")
    if "@" in text:
        for host in _HOST.finditer(text):
            at = host.start()
            words = text[max(0, at - _AT_CHARS) : at].rsplit(None, 1)
            hit = _AT_HOST.search(words[-1]) if words else None
            value = (hit["value"] or hit["behind"]) if hit else ""
            if value and looks_chosen(value):
                yield Span(at - len(value), at, "secret")  # no login, before which a mail's host stays
    if text.count(":") > 3:
        for hit in _PGPASS.finditer(text):
            if looks_chosen(hit["value"]):
                yield Span(*hit.span("value"), "login")
        for hit in _NTLM.finditer(text):
            yield Span(hit.start() + 1, hit.end(), "login")
    if "kind" in low and "data:" in low and _KIND.search(text):
        for manifest in _MANIFEST.finditer(text):
            first, last = text.rfind("\n---", 0, manifest.start()), text.find("\n---", manifest.end())
            if _KIND.search(text, max(0, first), last if last >= 0 else len(text)):
                for hit in _MANIFEST_VALUE.finditer(text, *manifest.span("body")):
                    if not is_variable(hit["value"]):
                        yield Span(*hit.span("value"), "secret")
    for pattern, sign in ((_HASHED, "$"), (_LABELLED, "{")):
        for hit in pattern.finditer(text) if sign in text else ():
            yield Span(*hit.span(), "secret")
    if "kty" in low:
        for hit in _WEB_KEY.finditer(text):
            yield Span(*hit.span("value"), "key")
    if "o" in low and ("negotiate" in low or "ntlm" in low or "local." in low or "kerberos" in low):
        for hit in _TICKET.finditer(text):
            yield Span(*hit.span("value" if hit["value"] else "paseto"), "key")
    if "=" in text and ("://" in text or "?" in text):
        for hit in _QUERY.finditer(text):
            value = hit["value"]
            if hit["name"].lower().endswith(_IN_QUERIES) and (
                looks_drawn(value) or (is_random(value, 12) and not is_known(value))
            ):
                yield Span(*hit.span("value"), "secret")
    if "0x" in text and any(word in low for word in ("private", "wallet", "secret", "mnemonic", "signer")):
        for hit in _HEX_KEY.finditer(text):
            yield Span(*hit.span(), "key")


def is_login(encoded: str) -> bool:
    """Return whether a text is NAME:PASSWORD in base64. Base64 in one case decodes to nothing and is judged by its
    look."""
    try:
        plain = encoded.replace("-", "+").replace("_", "/")
        decoded = b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (NotBase64, ValueError):
        return False
    if encoded in (encoded.lower(), encoded.upper()) and not is_known(encoded):
        return is_random(encoded, 20) or encoded.endswith("=")
    return b":" in decoded and decoded.isascii() and decoded.decode().isprintable()
