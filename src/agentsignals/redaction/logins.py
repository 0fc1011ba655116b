"""Finds logins in fixed places: addresses, headers of Basic, netrc, docker's files, SQL, password hashes, web keys."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.names import names_a_secret
from agentsignals.redaction.spans import Span, occurrences, places
from agentsignals.redaction.values import (
    is_known,
    is_random,
    is_variable,
    looks_chosen,
    looks_drawn,
    looks_given,
    looks_typed,
)
from agentsignals.shell.tokens import names

_LOGIN = deferred_pattern(r"[^\s/@:\"'<>]{0,200}:[^\s/@\"'<>]{1,200}(?=@)|[\w-]{16,255}={0,2}(?=@)")
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
_PGPASS = deferred_pattern(r"(?<=[\w*\]]):(?:\d{2,5}|\*):[\w*.-]+:[\w*.-]+:(?P<value>[^\s:\"'`]{4,100})")
_HASHED = deferred_pattern(r"\$(?:apr1|2[abxy]|[156y]|argon2\w{1,2}|scrypt|pbkdf2[\w-]*|S|P|H)\$[\w./+=,$!-]{12,200}")
_LABELLED = deferred_pattern(
    r"\{(?i:plain|noop|clear(?:text)?)\}[^\s:\"']{6,}|\{S?(?:SHA|SSHA|MD5|SMD5|CRYPT)\d*\}[\w+/=]{16,}"
)
_LICENCE = deferred_pattern(
    r"(?<![\w-])(?=[A-Z0-9]{4,5}-[A-Z0-9]{4,5}-)(?=[A-Z-]*\d)(?=[\d-]*[A-Z])(?:[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3,5}|[A-Z0-9]{4}(?:-[A-Z0-9]{4}){4,6})(?![\w-])"
)
"""A key that a person types."""
_LISTED = r"(?:[ \t]*\d{1,6}[→\t|])?"
_KIND = deferred_pattern(rf"(?m)^{_LISTED}[ \t]*kind:[ ]*[\"']?Secret\b")
_MANIFEST = deferred_pattern(
    rf"(?m)^{_LISTED}(?P<in>[ \t]*)"
    r"(?:data|stringData|(?P<named>secrets|credentials|passwords|basic_auth\w{0,20})):[ \t]*\n"
    rf"(?P<body>(?:{_LISTED}(?P=in)[ \t]+\S.*(?:\n|\Z))+)"
)
_MANIFEST_VALUE = deferred_pattern(rf"(?m)^{_LISTED}[ \t]+(?:[\w.-]+:|-)[ ]*[\"']?(?P<value>[^\s\"'#|>][^\s\"']{{3,}})")
"""Kubernetes' manifests of secrets: everything under `data` and `stringData`. Elsewhere what is under `secrets`."""
_NTLM = deferred_pattern(r":(?:[0-9a-fA-F]{32}:)?[0-9a-fA-F]{32}(?=:|\s|\Z)")
_WEB_KEY = deferred_pattern(
    r"[\"'](?:d|p|q|dp|dq|qi|k)\\{0,4}[\"']\s{0,3}:\s{0,3}\\{0,4}[\"'](?P<value>[\w-]{16,2000})"
)
_QUERY = deferred_pattern(r"[?&;](?:amp;)?(?P<name>[\w.%-]{1,60})=(?P<value>[\w%.~+/=!-]{8,4000})")
_IN_QUERIES = (
    *(
        "appid",
        "sig",
        "signature",
        "code",
        "ticket",
        "sessionid",
        "assertion",
        "policy",
        "hmac",
        "hash",
        "state",
        "auth",
        "key",
    ),
    "private",
)
"""Ends of names of parameters that authorize."""
_HOST = deferred_pattern(r"@(?<=[\w!#$%^&*+=?~)\"'-]@)(?:tcp|unix)?[(]?/{0,2}[\w\[]")
_AT_CHARS = 170
_AT_HOST = deferred_pattern(
    r"(?:\A|(?<=[\s\"'`(=,|<>/]))(?::?(?:[a-z]+:)*[\w.\\-]{1,60}(?:/[\w.\\-]{1,60})?:[\"']?(?P<colon>[^\s:@/\"'`]{5,100})[\"']?|(?:[a-z]+:)*@?"
    r"[\w$#]{2,30}/(?P<slash>[^\s/@\"':?&=\\]{5,60}))\Z"
)
"""`USER:PASSWORD@HOST` and Oracle's `USER/PASSWORD@HOST`, without a scheme."""
_OF_ORACLE = deferred_pattern(r"(?i)\bthin:|\b(?:sqlplus|impdp|expdp|imp|exp|rman|sqlldr|connect)\b")
_NETWORK_HOST = deferred_pattern(r"@(?!sha256)[\w.-]*[:/(]")
_PHRASE = deferred_pattern(
    r"(?i:mnemonic|(?:seed|recovery|secret|backup)[ _-]?(?:phrase|words))[\"'`]?\s?(?:is|are|[:=(])[:\s\"'`\[]{0,4}"
    r"(?P<value>(?:[a-z]{3,40}[ ,\"']{1,6}){3,}[a-z]{3,40})"
    r"|(?P<bare>(?:\b(?:\d{1,2}[.)] ?)?(?!(?:the|and|for|are|not|but|from|can|with)\b)[a-z]{3,8}[\s,\"']{1,4}){11,}"
    r"(?:\d{1,2}[.)] ?)?[a-z]{3,8})\b"
)
"""Words that a wallet is restored from."""
_DIGEST = deferred_pattern(r"\bresponse=\"(?P<given>[0-9a-f]{32,})\"")
_OF_NETWORK = deferred_pattern(
    r"(?m)^\s*(?:(?:[\w-]+\s){0,6}?(?:password|key|secret)\s7\s(?P<coded>[0-9A-F]{10,})"
    r"|r[ow]community6?\s(?P<value>(?!public|private)\S{6,60})|(?:[\w-]*server\b[^\n]{0,60}?\s(?:key|community)|key-string"
    r"|(?:enable|username\s\S+)[^\n]{0,40}?\s(?:secret|password)"
    r"|\W{0,6}(?:[\w.:]{1,30}[>:]\s)?(?:quote\s)?(?:AUTH|PASS|(?:msg \w+ )?IDENTIFY)"
    r"|[\w.:~ ]{1,40}>\s(?i:auth|pass|(?:login|user)\s\S+))\s(?:\d\s)?(?P<typed>\S{6,60}))"
)
"""Words that switches and routers share with servers."""
_KEYED = deferred_pattern(r"(?i)\b(?:md5|sha(?:-?\d+)?|aes(?:[ -]?\d+)?|des)\s\"?(?P<typed>[^\s\"]{6,60})")
"""After the name of an algorithm."""
_OF_ACL = deferred_pattern(r"(?i)\b(?:user|setuser)\s\S+\s[^\n]{0,40}?[\s'\"]>(?P<typed>[^\s'\"]{6,60})")
_WIRELESS = deferred_pattern(
    r"WIFI:(?:[A-OQ-Z]:[^;\n]{0,80};){1,4}P:(?P<value>(?:[^;\\\n]|\\.){6,63});"
    r"|(?i:key content\s{1,20}:)\s(?P<typed>\S{6,63})"
)
"""A network as codes for cameras tell it, and as Windows does."""
_CHAP = deferred_pattern(r"(?m)^\"?[\w*@.-]+\"? +\"?[\w*.-]+\"? +\"?(?P<typed>[^\s\"]{6,60})\"?(?= +[\d*]| *$)")
_FTP = deferred_pattern(r"(?m)^[ \t]*user \S+ (?P<typed>\S{6,60})[ \t]*$")
_RELAY = deferred_pattern(r"(?m)^\[[\w.-]+\](?::\d+)?\s+\S{1,60}?:(?P<typed>\S{6,60})$")
_MAIL_LOGIN = deferred_pattern(
    r"AUTH(?:ENTICATE)? (?:LOGIN|PLAIN)[^\n]{0,60}\n(?:\W{0,6}(?:334 )?[\w+/=]+\r?\n){0,4}?(?:C: )?"
    r"\W{0,6}(?P<value>[A-Za-z0-9+/]{8,}={0,2})(?=\s*(?:\Z|\n\W{0,6}(?:235|535|[A-Z]+\b)))"
)
_PRINTED = deferred_pattern(
    r"\b(?:cat|Get-Content)\s(?:[^\s;|]*/)?(?P<file>[\w.-]{2,60})[ \t]*\n(?P<value>[^\s\"'`:]{6,200})[ \t]*(?:\n|\Z)"
)
"""A file whose name tells that it holds a secret alone, printed."""
_SHOWN = deferred_pattern(
    r"(?m)^(?:[\w@.:~/\[\] -]{0,40}[$#❯]|PS [^>\n]{0,60}>)\s(?P<command>\S[^\n]{3,200})"
    r"\n(?P<value>\S{6,200})[ \t]*(?:\n|\Z)"
)
_SHOWS = deferred_pattern(
    r"(?:go)?pass(?: show)? |op read |secret-tool lookup |security find-\S+ .*-w\b|bw get password |pwgen "
    r"|openssl rand "
)
"""A command that prints a secret alone, and its first line; of these commands any."""
_RANDOM_PASSWORD = deferred_pattern(
    r"\"result\"\s*:\s*\"(?P<value>[^\"\s]{6,200})\"(?=(?s:.{0,800})\"random_password\")"
)
"""As Terraform keeps what it has drawn."""
_PIN = deferred_pattern(
    r"(?:\bPIN|(?i:passcode|\botp"
    r"|\b(?:verification|confirmation|security|one-time|login|access|2fa|sms|auth\w*|alarm|door) (?:code|pin)))\b"
    r"[^.\n]{0,40}?(?:\bis|:|=|\bist|\blautet|(?i:pin|code))\s?(?P<value>\d{4,8})\b"
)
_CODES = deferred_pattern(
    r"(?i:(?:backup|recovery|rescue|scratch)[ _-]?codes?)(?:[\"']?:?|[^:\n]{0,40}:)\s[\s*-]{0,8}"
    r"(?P<value>(?:[\"']?(?=[a-z-]*\d)[\w-]{6,20}[\"']?[\s,*-]{0,6}){1,20})"
)
"""Logins of point-to-point links, of FTP and of mail; codes for a lost device."""
_CHARACTERS = deferred_pattern(r"[\"'](?P<typed>[^\"'\n]{6,200})[\"']\.toCharArray\(\)")
"""A password in Java, which is no String."""
_IN_PATHS = frozenset(("hook", "reset", "invit", "activat", "confirm", "verif", "magic", "rtmp"))
_HOOK = deferred_pattern(
    r"(?i:hooks?|(?:reset|invit|activat|confirm|verif|magic)[\w-]{0,20}|rtmps?:/)[./](?:[\w.-]{1,60}/){0,6}(?P<value>[A-Za-z0-9]{20,64})\b"
)
_WAY_IN = deferred_pattern(r"(?i)(?:reset|confirm|verif|invit|magic|activat|unsubscri)[^\s\"']*\Z")
"""An address whose parameters let somebody in."""
_KEY_LINES = deferred_pattern(
    r"(?i:key\w*(?:\[\w*\])?\s*=\s*\{\s*)(?P<bytes>(?:0x[0-9a-fA-F]{2},?\s*){16,64})\}"
    r"|Private-Lines: \d+\s+(?P<putty>(?:[A-Za-z0-9+/=]{20,}\s*)+)"
    r"|(?:privateExponent|prime[12]|exponent[12]|coefficient|priv):\s*(?P<hex>(?:(?:[0-9a-f]{2}:?){4,}\s*)+)"
    r"|Private-MAC: (?P<mac>[0-9a-f]{40,})"
    r"|-----BEGIN [\w ]{0,30}[Ss]tatic key[\w ]{0,5}-----\s(?P<static>[0-9a-f\s]+)"
)
"""Private keys of PuTTY, of `openssl -text` and of OpenVPN."""
_ACCOUNT = deferred_pattern(
    r"(?<![\w@/.-])(?:(?i:admin(?:istrator)?|root)(?::| / )(?P<typed>(?:[^\s:@/\"'`,;)]|@(?=\d)){6,60})"
    r"|postgres(?::| / )(?P<given>[^\s:@/\"'`,;)]{6,60}))(?![:@/])"
)
_HEX_KEY = deferred_pattern(r"0x[0-9a-fA-F]{64}(?![0-9a-fA-F])")


_SHAPES: tuple[tuple[frozenset[str], re.Pattern[str], str], ...] = tuple(
    (frozenset(words.split()), pattern, kind)
    for words, pattern, kind in (
        ("mnemonic phrase seed words wallet", _PHRASE, "secret"),
        ("privateexponent putty openvpn uint unsigned", _KEY_LINES, "private key"),
        ("realm digest", _DIGEST, "secret"),
        (
            "server community rocommunity rwcommunity enable username auth pass identify ftp lftp",
            _OF_NETWORK,
            "secret",
        ),
        ("random", _RANDOM_PASSWORD, "secret"),
        ("pin passcode otp verification", _PIN, "secret"),
        ("snmp ntp createuser authpriv ospf", _KEYED, "secret"),
        ("setuser default", _OF_ACL, "secret"),
        ("wifi content", _WIRELESS, "secret"),
        ("chap pap pptpd ppp", _CHAP, "secret"),
        ("ftp", _FTP, "secret"),
        ("auth authenticate", _MAIL_LOGIN, "secret"),
        ("smtp mail relay mx", _RELAY, "secret"),
        ("codes", _CODES, "secret"),
        ("tochararray", _CHARACTERS, "secret"),
        ("admin administrator root postgres", _ACCOUNT, "login"),
        ("kty", _WEB_KEY, "key"),
        ("wallet signer private mnemonic", _HEX_KEY, "key"),
    )
)
"""Words that a text must contain, one of them (`text_words` in `words.json`); what they introduce; its kind."""


_LENGTHS = (12, 15, 18, 21, 24)
"""Words of a recovery phrase (BIP 39)."""
_OF_SENTENCES = names("this that you have was were will would which what when then than has had its they")


def _is_phrase(words: str) -> bool:
    """Return whether words in a row are a recovery phrase: of its length, hardly one twice, and no sentence."""
    each = re.findall(r"[a-z]{3,}", words)
    return len(each) in _LENGTHS and len(set(each)) >= len(each) - 1 and len(_OF_SENTENCES.intersection(each)) <= 2


def logins(text: str, low: str, words: frozenset[str]) -> Iterator[Span]:
    """Yield logins in fixed places. `low`: the text in lower case; `words`: those of `text_words` that it contains."""
    for at in occurrences(text, "://") if "://" in text else ():
        login = _LOGIN.match(text, at + 3)
        password = login[0].partition(":")[2] if login else ""
        is_placeholder = password.isupper() and password.isalpha() and names_a_secret(password) is not None
        is_placeholder = is_placeholder or (password != "" and not password.strip("*•"))
        if login and not _VARIABLE.search(login[0]) and not is_placeholder:
            yield Span(login.start(), login.end(), "login")
    for sign, encoded in (("basic", _BASIC), ("auth", _AUTH)):
        for at in occurrences(low, sign) if sign in words else ():
            hit = encoded.match(text, at)
            if hit and is_login(hit["value"]):
                yield Span(*hit.span("value"), "login")
    for sign, pattern, needed in _PLACES:
        done = 0
        for at in occurrences(low, sign) if sign in words and needed in low else ():
            hit = pattern.match(text, at) if at >= done else None
            quoted = hit is not None and text[hit.start("value") - 1] in "\"'"
            if hit and not is_variable(hit["value"]) and (quoted or looks_typed(hit["value"]) or needed):
                done = hit.end()
                yield Span(*hit.span("value"), "login")
    if "@" in text:
        for host in _HOST.finditer(text):
            before = text[max(0, host.start() - _AT_CHARS) : host.start()].rsplit(None, 1)
            hit = _AT_HOST.search(before[-1]) if before else None
            may_be_typed = hit and (
                _OF_ORACLE.search(text, max(0, host.start() - _AT_CHARS), host.start())
                if hit.lastgroup == "slash"
                else _NETWORK_HOST.match(text, host.start())
            )
            value = hit[hit.lastgroup or 0] if hit else ""
            is_sure = text.startswith(("@tcp(", "@unix("), host.start()) and not is_variable(value)
            if hit and (is_sure or (looks_typed if may_be_typed else looks_chosen)(value)):
                at = host.start() - len(before[-1]) + hit.start(hit.lastgroup or 0)
                yield Span(at, at + len(value), "secret")  # no login, before which a mail's host stays
    if "hashes" in words or text.count(":") > 3:
        for hit in _PGPASS.finditer(text):
            if looks_typed(hit["value"]):
                yield Span(*hit.span("value"), "login")
        for hit in _NTLM.finditer(text):
            if ":" in hit[0][1:] or text.endswith("hashes ", 0, hit.start()):
                yield Span(hit.start() + 1, hit.end(), "login")
    if not words.isdisjoint(("kind", "secrets", "credentials", "passwords", "auth")):
        for manifest in _MANIFEST.finditer(text):
            first, last = text.rfind("\n---", 0, manifest.start()), text.find("\n---", manifest.end())
            if manifest["named"] or _KIND.search(text, max(0, first), last if last >= 0 else len(text)):
                for hit in _MANIFEST_VALUE.finditer(text, *manifest.span("body")):
                    if looks_given(hit["value"]) if manifest["named"] else not is_variable(hit["value"]):
                        yield Span(*hit.span("value"), "secret")
    for pattern, sign in ((_HASHED, "$"), (_LABELLED, "{"), (_LICENCE, "-")):
        for hit in pattern.finditer(text) if sign in text else ():
            yield Span(*hit.span(), "secret")
    for needed_words, pattern, kind in _SHAPES:
        for hit in pattern.finditer(text) if needed_words & words else ():
            group = hit.lastgroup or 0
            if group == "bare" and not _is_phrase(hit[group]):
                continue
            if group not in ("given", "typed") or (looks_given if group == "given" else looks_typed)(hit[group]):
                yield Span(*hit.span(group), kind)
    for hit in _PRINTED.finditer(text) if words & {"cat", "content"} else ():
        stem = hit["file"].strip("._").partition(".")[0]
        if names_a_secret(stem) and (looks_typed(hit["value"]) or looks_given(hit["value"])):
            yield Span(*hit.span("value"), "secret")
    for hit in _SHOWN.finditer(text) if "$ " in text or "# " in text or "PS " in text or "❯" in text else ():
        value, shows = hit["value"], _SHOWS.match(hit["command"]) is not None
        named = shows or any(names_a_secret(word.strip("-")) for word in hit["command"].split())
        if named and (shows or looks_typed(value)) and not is_variable(value):
            yield Span(*hit.span("value"), "secret")
    for at, _ in places(low, words & _IN_PATHS):
        hit = _HOOK.match(text, at)
        if hit and looks_given(hit["value"]):
            yield Span(*hit.span("value"), "secret")
    if "=" in text and ("://" in text or "?" in text):
        for hit in _QUERY.finditer(text):
            value = hit["value"]
            is_way_in = _WAY_IN.search(text, max(0, hit.start() - _AT_CHARS), hit.start())
            if (is_way_in or hit["name"].lower().endswith(_IN_QUERIES)) and (
                looks_drawn(value) or looks_given(value) or (is_random(value, 12) and not is_known(value))
            ):
                yield Span(*hit.span("value"), "secret")


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
