"""Finds secrets in commands, read by the shell reader, for any program: each argument is judged by its role.

Roles are: the value of a short option of a command that logs in, `USER:PASSWORD`, arguments and standard input of
commands that take a secret, `NAME=VALUE` for a store of secrets. Options with a name of a secret are fields (`fields`).
A line of prose is read the same way; the look of a value decides there.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.encoded import of_base64
from agentsignals.redaction.values import (
    LEAST_CHARS,
    Span,
    has_digit,
    is_known,
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
    names_a_secret,
    places,
    speaks_of_other,
)
from agentsignals.shell.commands import leading_words
from agentsignals.shell.tokens import names, split

_PROMPT = deferred_pattern(
    r"(?:\s*(?:\d{1,6}[→\t:|]|[+>|#*-]{1,3}(?=\s)))?\s*(?:\([\w.-]+\)\s)?(?:PS [^>\n]{0,80}>|[A-Z]:[^>\n]{0,80}>"
    r"|(?:(?! -)[\w.@~:/\[\] -]){0,60}[$#%❯➜](?=\s)|[\w.:()=-]{2,40}>(?=\s)|RUN |run: |- run: |>>>)?\s*"
)
"""What stands before a command: a line number, a diff's or quote's sign, a prompt."""
_SIGN = deferred_pattern(
    r"-(?<=[\s\"'`,(\[]-)-?(?P<option>[A-Za-z][\w-]*)|/(?<=\s/)(?P<slash>[A-Za-z]\w{0,20})(?::|(?=\s))"
)
_OWN = r"(?:\./|\S{1,60}/)?[\w-]+\.(?:sh|py|rb|pl|js|ps1|php)|\./[\w./-]+"
_OWN_PROGRAM = deferred_pattern(rf"(?:\$ )?(?:\w{{2,7}} )?(?P<program>{_OWN})(?= )")
_IN_OWN = ("./", ".sh ", ".py ", ".rb ", ".pl ", ".js ", ".ps1 ", ".php ")
"""A program of somebody's own: nobody knows its arguments. A line with one contains one of these."""
_WHOLE = deferred_pattern(r"[^\s\"'`;|&)\\]+")
_VALUE = deferred_pattern(r"(?:[ =:,\"'\\]|\\\n[ \t]*){0,4}([^\s\"'`|;&)\]]+)")
_TAKER = deferred_pattern(
    r"(?i)(?:\A|(?<=[-_:]))(?:\w*login|oathtool|obscure|logon|su|runas|cryptsetup|rootpw|\w*pw|load-key|\w*passw(?:or)?d|\w{2,}pass\w*|passphrase|\w*secrets?|token|auth|authtoken|authori[sz]e|sign-?in|\w*vault"
    r"|\w*cred\w*|keyring|keychain|basic|keyvault|luks\w+|unlock|kinit|requirepass|masterauth|authenticate|sudo|setx"
    r"|\w*(?:secure|encrypt_)string|adduser|add_user|change_password)(?=[-_:.]\w|\Z)"
)
"""A part of the name of a program or subcommand that takes a secret."""
_TAKES_TYPED = deferred_pattern(
    r"(?i)(?P<alone>rootpw|obscure|pass(?!.*file)|unlock|securestring|encrypt_string|masterauth)|login|basic|user"
)
"""One that takes a password alone, or after a name."""
_TAKES_ONLY = deferred_pattern(r"(?i)rootpw|obscure|(?:secure|encrypt_)string|masterauth|requirepass")
"""One that takes no other word than a password."""
_NAME = deferred_pattern(r"[\w.:-]{1,100}\Z")
_MAY_TAKE = (
    "install|join|activate|redeem|config|configure|connect|register|enroll|user|net|set|variables?|env|context|put"
    "|export|add"
)
_MAY_TAKER = deferred_pattern(rf"(?:{_MAY_TAKE})(?:[-_]\w+)?\Z")
"""A subcommand that may take one: its value has to look drawn."""
_IS_OWN = deferred_pattern(rf"(?:{_OWN})\Z")
_OPERATORS = frozenset("=:(.,;)]}>[?!+*")
_STORE = deferred_pattern(
    r"(?i)(?:.*[-_:.])?(?:secrets?|vault|kv|config:set|envs?|setenv|variables?|vars?|parameters?|keyvault|put-parameter|setx|configmap)\Z"
)
"""A subcommand that keeps names and values."""
_SHORT = names("p P w W a A x X k K N b s S y")
_SURE_SHORT = names("p P w W pw N A hp rp")
"""Short options that carry a password in many commands, and those that hardly carry another thing that looks so."""
_PROTOCOL = deferred_pattern(
    r"(?i).*(?:sql|ldap|redis|valkey|mongo|maria|influx|cassandra|cql|neo4j|cypher|rabbit|mosquitto|mqtt|kafka|smb|ftp|ssh"
    r"|rdp|vnc|telnet|imap|smtp|snmp|ipmi|http|curl|wget|zip|rar|7z|pdf|ssl|gpg|keytool|plink|scp|nuget|jenkins|db\w*\Z)"
)
"""A program of a protocol, a database or archives: its short options may carry a password."""
_USERS = names("u U user username login auth a creds credentials credential account proxy-user l src-creds dest-creds")
_USER_WORDS = names("user auth creds credentials basic userpwd")
_ARCHIVER = deferred_pattern(r"(?:\S*/)?(?:7z\w?|rar|zip)\Z")
_LEAST_DIGITS = 8
"""A password of digits alone has so many, or it is a count."""
_ONE_DIGIT = deferred_pattern(r"[a-z]{5,}\d")
_PASSWORD_OF_DIGITS = deferred_pattern(r"\d{6,}\Z")
"""The same behind an option for one: a port is shorter."""
_GIVES_LAST = deferred_pattern(r"(?i)(?:add|create)_user|(?:set|change)[_-]password|htpasswd")
"""Commands that end in a password, whatever it looks like: `add_user NAME PASSWORD`."""
_MYSQL = deferred_pattern(r"(?:\S*/)?(?:mysql|maria)")
_CERTAIN = deferred_pattern(
    r"(?:\S*/)?(?:(?:redis|valkey|keydb)\S* -a|ldap\w* -w|(?:sqlcmd|bcp|unzip|ipmitool|mosquitto_\w+) -P|(?:sshpass"
    r"|mongo\w*|cqlsh) -p)"
)
"""A program, and its option that carries nothing but a password."""
_HASHED = names("K k H")
"""Short options for a key or a hash in hex."""
_LONG_HEX = deferred_pattern(r"[0-9a-fA-F]{32,}")
_PREFIXED = deferred_pattern(r"(?i)(?:pass(?:word)?|pw|(?:hex)?key|secret|token|plain):(?P<value>[^\s:/]{6,})\Z")
"""A value that says itself what it is."""
_PASSPHRASE = deferred_pattern(r"(?=.*[\dA-Z!?&])[\w!?&'-]+(?: [\w!?&'.,-]+){1,6}")
_PHRASE = deferred_pattern(r"[a-z]{3,}(?: [a-z]{2,}){2,6}")
_SLASHED = names("p pw pass pwd password rp")
"""Options that carry a password after a slash and a colon."""
_HOSTS = names("h H host hostname server S url")
_CODES = names("invite invitation code activation enrollment-code pairing-code license license-key")
"""Options for a code that lets somebody in."""
_GIVEN_AS = names("v value val")
_GIVEN = names("new old current value body secret-string data text b string")
"""Options for the value that a store keeps."""
_INPUT = names("-S --stdin -i --with-token --password-stdin -stdin")
"""Options of commands that read a secret on their standard input."""
_HOST = deferred_pattern(
    r"[a-z][\w+.-]*://|//|(?:[\w-]+\.)+(?:[a-z]{2,}[:/]|(?:com|net|org|io|dev|local|internal|test|example)\Z)"
    r"|localhost|\d+\.\d+\.\d+\.\d+"
)
_PAIR = deferred_pattern(r"(?P<user>[\w.\\/+${}-]*@?[\w.-]*)(?P<sign>[:%,])(?P<password>.{3,200})\Z")
_SIGNS = deferred_pattern(r"[:,%]")
_POWERSHELL = deferred_pattern(r"-[A-Z][a-z]+(?:[A-Z][a-z]+)+\Z")
"""An option of PowerShell, whose value is never attached."""
_SHORT_OPTION = deferred_pattern(r"-\w\Z")
_USER_AND = deferred_pattern(r"[A-Za-z][\w.-]*:([^:/\s][^:\s]{5,})\Z")
_CONTAINER = deferred_pattern(r"(?:docker|podman|nerdctl|kubectl|chown|install|rsync|cp|buildah)\b")
"""A program whose `-u` is a user and a group."""
_AT_SIGN = deferred_pattern(r"[\w.+\[\]-]+@(?:[A-Za-z]|\d+\.\d)[\w.-]*(?::|\Z)")
_ASSIGNED = deferred_pattern(r"(?:--?[\w.-]+=)?(?P<name>[\w.:/-]+)=(?P<value>.+)\Z", re.S)
_MASKED = deferred_pattern(r"\[(?:secret|login|key|random)\]")
_NUMBERS = deferred_pattern(r"[\d:./-]+\Z")
_NESTED = deferred_pattern(r"\S\s+\S")
_COOKIES = deferred_pattern(r"(?i)(sess|sid|auth|token|jwt|login)?[\w.-]*=([^;\s]{6,})")
_VALUED = names("-u -e -w -n -c --user --env --workdir --namespace --container")
"""Options that a value follows, of commands that run another one in a container."""
_RUNS_INSIDE = deferred_pattern(r"exec\Z")
_OF_PROSE = names("the a an is are was of for that this to in at on and or it with")
_PRINTS = names("echo printf Write-Output print yes")
_WORD_REST = deferred_pattern(r"[\w:.-]{0,40}[\"']?")
_CHOSEN = deferred_pattern(r"[0-9!@#$%^&*+=?~]")
"""What every value contains that looks chosen."""
_SHELL_WORD = deferred_pattern(r"[^\s\"'`|;&()<>{}\[\],\\]{6,100}")
_GIVEN_CHARS = 200
"""How far behind the word of a command its secret may be."""
_LINE_CHARS = 400
"""Longer lines with escaped line ends are read by those; a pipe may be so far before a word."""
_REGION_CHARS = 3000
_MOST_DEPTH = 3
_FED_CHARS = 10
"""A word that looks drawn and is a whole standard input is a secret for any program."""
_HEREDOC = deferred_pattern(r"<<-?\s*[\"']?([A-Za-z_]\w*)[\"']?")


def secrets(text: str, low: str, parts: frozenset[str]) -> list[Span]:
    """Return secrets in the commands of a text. `low`: the text in lower case; `parts`: the parts of commands that take
    a secret which it contains."""
    done, spans = 0, list[Span]()
    for at in _signs(text, low, parts):
        if at < done:
            continue
        start, done = _region(text, at)
        line = text[start:done]
        found: dict[str, None] = {}
        _read(line, found)
        for read in found:
            value = read if read in line else read.rpartition(":")[2]  # quoted apart
            if "\\n" in value:
                continue
            begin = line.find(value) if len(value) >= LEAST_CHARS else -1
            while begin >= 0:
                spans.append(Span(start + begin, start + begin + len(value), "login"))
                begin = line.find(value, begin + len(value))
    return spans


def _signs(text: str, low: str, parts: frozenset[str]) -> list[int]:
    """Return where a command with a secret may be: an option with a value that looks like one, and words of commands
    that take one."""
    signs: list[int] = []
    line_end = -1
    for at, _ in places(text, _IN_OWN):
        if at > line_end:
            if own := _OWN_PROGRAM.match(text, text.rfind("\n", 0, at) + 1):
                signs.append(own.start("program"))
            line_end = text.find("\n", at)
            line_end = line_end if line_end >= 0 else len(text)
    if "-" in text or " /" in text:
        for sign in _SIGN.finditer(text):
            option = sign["option"] or ""
            value = _VALUE.match(text, sign.end())
            given = value[1] if value else ""
            is_long = text[sign.start() + 1] == "-"
            prefixed = _PREFIXED.match(given)
            whole = _WHOLE.match(text, sign.start("option")) if option else None
            attached = whole[0][1:] if whole and not is_long else ""
            attached = attached if not attached.isalpha() or is_rare_word(attached) else ""
            if sign["slash"] and sign["slash"].lower() in _SLASHED:
                may_be = len(given) >= LEAST_CHARS
            elif (
                prefixed
                or (option in _CODES and is_random(given, 8))
                or (option in _HASHED and _LONG_HEX.fullmatch(given))
            ):
                may_be = True
            elif option in _SURE_SHORT or (option[:1] in _SURE_SHORT and attached):
                word = attached or given
                may_be = (
                    len(word) >= 3
                    and (not _NUMBERS.match(word) or _PASSWORD_OF_DIGITS.match(word) is not None)
                    and word[0] not in "({[$<"
                    and "(" not in word
                )
            elif option[:1] == "p" and option[1:2].isupper() and not is_long:
                may_be = len(option) > LEAST_CHARS
            elif is_long or len(option) >= LEAST_CHARS:
                is_user = _is_user(option) and any(c in given for c in ":%,")
                may_be = is_user or (option.lower() in _GIVEN and (looks_typed(given) or looks_given(given)))
                may_be = may_be or is_strong(given) or (looks_drawn(given, _FED_CHARS) and not speaks_of_other(option))
                may_be = may_be or (option[:1] in _SHORT and looks_typed(attached))
                may_be = may_be or (option[:2] == "hp" and len(option) > LEAST_CHARS)
                may_be = may_be or (option[:1] == "a" and has_digit(attached))
            else:
                may_be = (
                    looks_typed(given)
                    or (option == "a" and has_digit(given))
                    or (option in _SHORT and (is_rare_word(given) or _LONG_HEX.fullmatch(given) is not None))
                    or ((option in _USERS or option[-1:] in ("u", "U")) and _SIGNS.search(given, 1) is not None)
                )
            if may_be:
                signs.append(sign.start())
    for at, end in places(low, (*parts, "<<<")):
        rest = _WORD_REST.match(text, end)
        after = text[rest.end() : rest.end() + 2].lstrip(" ") if rest else ""
        if after[:1] in _OPERATORS and after != "=<" and "64" not in low[at:end]:  # else it is code
            continue
        line = text.find("\n", end, end + _GIVEN_CHARS)
        line = line if line >= 0 else end + _GIVEN_CHARS
        before = max(text.rfind("\n", max(0, at - _LINE_CHARS), at), at - _LINE_CHARS, 0)
        if (
            text.find("|", before, at) >= 0
            or (text[at - 1 : at] in ("/", ".", "\\") and text.find("> ", before, at) >= 0)
            or text.find("<<", end, line) >= 0
            or low[at] in "<-"
            or (
                low.startswith("passw", at)
                and (given := _SHELL_WORD.match(text, rest.end() + 1 if rest else end))
                and is_rare_word(given[0])
            )
            or _GIVES_LAST.search(text, max(0, at - 10), end + 10)
            or _TAKES_ONLY.search(text, max(0, at - 10), end + 10)
            or (
                _CHOSEN.search(text, end, line)
                and any(
                    _CHOSEN.search(given) and (looks_typed(given) or looks_given(given))
                    for given in _SHELL_WORD.findall(text, end, line)
                )
            )
        ):
            signs.append(at)
    signs.sort()
    return signs


def _region(text: str, at: int) -> tuple[int, int]:
    """Return the bounds of the command around `at`, with lines that go on and here-documents."""
    low_bound = max(0, at - _REGION_CHARS)
    start = max(text.rfind("\n", low_bound, at) + 1, low_bound)
    while start > 1 and text[start - 2] == "\\" and text[start - 1] == "\n" and at - start < _REGION_CHARS:
        start = text.rfind("\n", 0, start - 1) + 1
    end = start
    while True:
        line_end = text.find("\n", end, at + _REGION_CHARS)
        end = line_end if line_end >= 0 else min(len(text), at + _REGION_CHARS)
        if end >= len(text) or text[end - 1] != "\\" or text[end] != "\n":
            break
        end += 1
    if end - start > _LINE_CHARS and text.find("\\n", start, end) >= 0:  # lines in a text with escapes
        before, behind = text.rfind("\\n", start, at), text.find("\\n", at, end)
        start, end = before + 2 if before >= 0 else start, behind if behind >= 0 else end
    heredoc = _HEREDOC.search(text, start, end) if text.find("<<", start, end) >= 0 else None
    if heredoc and text[heredoc.start() - 1 : heredoc.start()] != "<":
        last = re.compile(rf"\n[ \t]*{heredoc[1]}\b").search(text, end, end + _REGION_CHARS)
        end = last.end() if last else end
    return start, max(end, at + 1)


def _read(line: str, found: dict[str, None], depth: int = _MOST_DEPTH) -> None:
    """Add the secrets of a line of commands."""
    prompt = _PROMPT.match(line)
    command = line[prompt.end() if prompt else 0 :].rstrip("\\ \t\n").lstrip("#<>").replace("`", "\n")
    if '", "' in command or "', '" in command:  # a list of arguments
        command = re.sub(r"(?<=[\"']),\s*", " ", command.partition("[")[2] or command).rstrip(" ]\n")
    _read_commands(command, found, depth)


def _read_commands(command: str, found: dict[str, None], depth: int) -> None:
    """Collect the secrets of a command line, with what is fed by pipes and here-documents and texts that a shell
    runs."""
    parsed = split(command)
    fed: list[str] = []
    for n, (all_words, targets, _, is_nested) in enumerate(parsed.commands):
        words = leading_words(all_words)
        if not words or words[0][:1] == "-":
            words = all_words
        if not words:
            continue
        texts = fed if n and parsed.ends[n - 1] in ("|", "|&", ")") else []
        if n in parsed.heredocs:
            texts = [*texts, parsed.heredocs[n]]
        _judge(words, all_words, texts, found)
        at = next((n for n, word in enumerate(words[1:3], 1) if _RUNS_INSIDE.match(word)), 0)
        if at and (inner := _inner(words[at + 1 :])):
            _judge(inner, inner, texts, found)
        if words[0] in _PRINTS:
            fed += [word.replace("\\n", "\n") for word in words[1:] if word not in ("-n", "-e", "-ne")]
            # A literal that is printed for another command is a file or an argument of it.
            if is_nested or any(
                names_a_secret(target.rpartition("/")[2].partition(".")[0] or target) for target in targets
            ):
                found.update((given, None) for given in words[1:] if looks_typed(given) or looks_given(given))
        else:
            fed = [words[0]] if len(all_words) == 1 and looks_typed(words[0]) else []
        for word in all_words:
            if depth and len(word) > LEAST_CHARS and _NESTED.search(word) and word != command:
                _read(word, found, depth - 1)
    if "<<<" in command:
        before, _, after = command.partition("<<<")
        given = split(after.strip()).commands
        taker = split(before).commands
        if given and looks_drawn("".join(given[0][0]), _FED_CHARS):
            found["".join(given[0][0])] = None
        if given and taker and given[0][0]:
            bare = given[0][0][0].removeprefix("$") if after.lstrip()[:2] == "$'" else given[0][0][0]
            told = [bare.replace("\\n", "\n").strip()]
            _judge(taker[-1][0], taker[-1][0], told, found)


def _inner(words: list[str]) -> list[str]:
    """Return the command that runs in a container: behind the options and the container's name."""
    if "--" in words:
        return words[words.index("--") + 1 :]
    n = 0
    while n < len(words) and words[n][:1] == "-":
        n += 1 + (words[n] in _VALUED)
    return words[n + 1 :]


def _judge(words: list[str], all_words: list[str], fed: list[str], found: dict[str, None]) -> None:
    """Add the secrets of one simple command. `fed`: texts on its standard input."""
    options = {word.lstrip("-").partition("=")[0] for word in words if word[:1] == "-"}
    has_user = any(o in _USERS or o[:1] in ("u", "U") for o in options) or any(
        w[:3].lower() in ("/u:", "/us") for w in words
    )
    has_host = any(map(_HOST.match, words[1:]))
    taker = next(
        (
            n
            for n, word in enumerate(words[:6])
            if _NAME.match(word if n else word.rpartition("/")[2])
            and _TAKER.search(word if n else word.rpartition("/")[2])
            and not (n and _SHORT_OPTION.match(words[n - 1]))
        ),
        -1,
    )
    has_user = has_user or taker >= 0
    stores = (
        any(_STORE.match(word) for word in words[:5] if len(word) <= 100)
        or "SecureString" in words
        or (taker >= 0 and "pw" in words[taker].lower())
        or "secret" in options
    )
    logs_in = has_user or has_host or taker >= 0 or not options.isdisjoint(_HOSTS) or bool(_PROTOCOL.match(words[0]))
    may_take = any(map(_MAY_TAKER.match, words[:6]))
    logs_in = logs_in or may_take
    role = _Role(
        program=words[0],
        logs_in=logs_in,
        has_user=has_user,
        stores=stores,
        has_host=has_host,
        is_mysql=_MYSQL.match(words[0]) is not None,
        is_snmp="snmp" in words[0],
        is_protocol=_PROTOCOL.match(words[0]) is not None,
        is_archiver=_ARCHIVER.match(words[0]) is not None,
    )
    is_own = any(map(_IS_OWN.match, words[:2]))
    is_prose = sum(map(_OF_PROSE.__contains__, all_words)) > 1
    positional: list[str] = []
    kind = _TAKES_TYPED.search(words[taker]) if taker >= 0 else None
    takes_typed, has_mail = kind is not None and kind["alone"] is not None, False
    previous = ""
    for n, word in enumerate(words[1:], 1):
        if word[:1] == "-" and len(word) > 1 and not (stores and word.count("=") > 1):
            _option(word, words[n + 1] if n + 1 < len(words) else "", found, role)
        elif word[:1] == "/" and ":" in word:
            name, _, value = word[1:].partition(":")
            if name.lower() in _SLASHED and len(value) >= LEAST_CHARS and not is_variable(value):
                found[value] = None
        elif (pair := _ASSIGNED.match(word)) and (
            stores or all_words[0] == "export" or previous in ("-e", "--env", "-var", "--set")
        ):
            found.update({pair["value"]: None} if (looks_typed if stores else looks_drawn)(pair["value"]) else {})
        elif word[:1] != "/":
            # A path such as /etc/passwd names a file, not the next argument.
            is_free = "/" not in previous and not _MASKED.search(previous)
            named = names_a_secret(previous.rpartition(":")[2]) if is_free else None
            named = "password" if previous == "using" and "user" in words else named
            if words[n + 1 : n + 2] and words[n + 1].lstrip("-").lower() in _GIVEN_AS and names_a_secret(word):
                found.update((given, None) for given in words[n + 2 : n + 3] if looks_typed(given))
            if (named or (previous[:1] == "/" and previous[1:].lower() in _SLASHED)) and (
                looks_given(word)
                or (not named and is_rare_word(word))
                or (named == "password" and is_rare_word(word) and (may_take or role.is_protocol) and not is_prose)
                or (named == "password" and word.isdigit() and len(word) >= _LEAST_DIGITS)
                or (named in ("password", "hint") and (looks_typed(word) or _PASSPHRASE.fullmatch(word)))
            ):
                found[word] = None
            if (given := _USER_AND.match(word)) and looks_typed(given[1]) and (taker >= 0 or may_take or is_own):
                found[given[1]] = None
            if given and previous.lower() in ("auth", "login") and is_rare(given[1]):
                found[given[1]] = None
            is_value = previous[:1] == "-" and "=" not in previous and not looks_drawn(word)
            if is_strong(word):
                found[word] = None
            if n > taker and (not is_value or (takes_typed and n == len(words) - 1)):
                is_known_id = pair is not None and is_known(pair["value"])
                positional += [] if is_known_id or _AT_SIGN.match(word) else [word]
                has_mail = has_mail or not positional
        previous = word
    if positional:
        if taker >= 0 or stores or (words[0] in ("net", "net.exe") and len(words) > 3):
            # Beside a secret that was masked before, the last word is none.
            last = None if any(map(_MASKED.search, words)) else positional[-1]
            is_kept = any(word in ("put", "set") for word in words[:5]) and len(positional) > 1
            takes_typed = takes_typed or (taker < 0 and not stores) or (stores and is_kept)
            takes_typed = (takes_typed or (kind is not None and (len(positional) > 1 or has_mail))) and not is_prose
            is_paired = len(positional) > 1 or words[taker] == "htpasswd"  # whose user may follow its options
            ends = taker >= 0 and is_paired and _GIVES_LAST.search(words[taker]) is not None
            ends = ends and ("htpasswd" not in words[taker] or any("b" in option for option in options))
            if ends and last and len(last) >= LEAST_CHARS and "/" not in last and not is_variable(last):
                found[last] = None
            is_only = words[:2] == ["net", "user"] and len(positional) > 2
            is_only = is_only or (kind is not None and _TAKES_ONLY.search(words[taker]) is not None)
            found.update(
                (word, None)
                for word in positional
                if looks_drawn(word)
                or (word is last and (looks_given(word) or (takes_typed and looks_typed(word))))
                or (word is last and is_only and is_rare_word(word))
            )
        elif may_take:
            found.update((w, None) for w in positional[1:] if looks_drawn(w))
    if not fed:
        return
    takes_input = (
        taker >= 0
        or "sudo" in all_words
        or any(map(names_a_secret, options))
        or words[0] == "pass"
        or not {*all_words}.isdisjoint(_INPUT)
        or any(w.endswith("-stdin") for w in all_words)
    )
    if words[0] == "base64":  # what is decoded here, or encoded, is a secret more often than not
        for text in fed:
            plain = text.rpartition(":")[2]
            coded = looks_given(of_base64(text).decode("utf-8", "replace").strip())
            found.update({text: None} if coded else {plain: None} if looks_given(plain) else {})
    for text in fed if takes_input or stores else ():
        is_phrase = _PASSPHRASE.fullmatch(text) or _PHRASE.fullmatch(text)
        if taker >= 0 and words[taker] not in ("sudo", "su") and is_phrase:
            found[text] = None
        for piece in text.split():
            value = piece.rpartition("=")[2] if "=" in piece[:-1] else piece
            value = value.rpartition(":")[2] if ":" in value[:-1] and "//" not in value else value
            is_alone = len({*text.split()}) == 1  # or typed twice
            if (is_alone or looks_chosen(value)) and len(value) >= LEAST_CHARS and not is_variable(value):
                found[value] = None


def _is_user(option: str) -> bool:
    """Return whether the value of an option may be `USER:PASSWORD`."""
    return option in _USERS or option.rpartition("-")[2] in _USER_WORDS


class _Role(NamedTuple):
    """Facts about a whole command that decide whether one of its arguments is a secret."""

    program: str
    logs_in: bool
    has_user: bool
    stores: bool
    has_host: bool
    is_mysql: bool
    """A password is attached to its `-p`; the next word is a database."""
    is_snmp: bool
    is_protocol: bool
    is_archiver: bool


def _option(word: str, after: str, found: dict[str, None], role: _Role) -> None:
    """Judge the value of an option, which follows it or is attached."""
    name, _, attached = word.lstrip("-").partition("=")
    value = attached or ("" if after[:1] == "-" else after)
    short = word[1] if word[1:2] != "-" else ""
    if (prefixed := _PREFIXED.match(value)) or (name in _HASHED and _LONG_HEX.fullmatch(value)):
        found[prefixed["value"] if prefixed else value] = None
        return
    if name in _CODES and is_random(value, 8) and "/" not in value:
        found[value] = None
    is_user = _is_user(name) or (bool(short) and len(name) < 5 and name[-1:] in ("u", "U"))
    if is_user and value[-1:] == ":" and looks_drawn(value[:-1]):  # a key as user, without a password
        found[value[:-1]] = None
    pair = _PAIR.match(value if is_user else word[2:]) if is_user or short in ("u", "U") else None
    if pair:
        password = pair["password"]
        is_sent = role.has_host or (role.is_protocol and pair["sign"] == ",")
        is_account = is_rare_word(password) and not _CONTAINER.match(role.program)
        if (
            looks_typed(password)
            or is_account
            or (is_sent and not _NUMBERS.match(password) and not is_variable(password))
        ):
            found[pair[0] if pair["sign"] == ":" else password] = None
            return
    if name in ("b", "cookie") and not role.stores:
        found.update(
            (cookie[1], None)
            for cookie in _COOKIES.findall(value)
            if (looks_chosen if cookie[0] else looks_drawn)(cookie[1])
        )
        return
    if (
        len(name) > 1
        and not ({*"/|"} & {*value} or speaks_of_other(name))
        and (is_strong(value) or looks_drawn(value, 2 * _FED_CHARS))
    ):
        found[value] = None
    if len(name) > 1 and value and names_a_secret(name) and looks_given(value):
        found[value] = None
    if not short or name.lower() in _GIVEN:
        if role.stores and name.lower() in _GIVEN and (looks_typed(value) or looks_given(value)):
            found[value] = None
        return
    if len(name) > 1 and name not in _SURE_SHORT:  # attached
        if _POWERSHELL.match(word):
            return
        name = next((n for n in ("hp", "pw") if name.startswith(n)), short)
        value = word[1 + len(name) :]
    if name == "c" and role.is_snmp and len(value) >= LEAST_CHARS:
        found[value] = None
    is_sure = name in _SURE_SHORT and (name != "p" or value != after or not role.is_mysql)
    if not is_sure and name not in _SHORT:
        return
    if is_sure and (login := _USER_AND.match(value)) and looks_typed(login[1]):
        value = login[1]
    expects = (is_sure and role.logs_in) or role.stores or (role.logs_in and name in ("a", "k", "s", "x", "X"))
    attaches = role.is_archiver or (role.is_mysql and name == "p" and not (is_variable(value) or names_a_secret(value)))
    is_told = attaches and is_sure and value != after and len(value) >= LEAST_CHARS
    if role.is_protocol and not is_told:
        is_told = (is_sure or name == "k") and _PASSPHRASE.fullmatch(value) is not None
        is_told = is_told or (is_sure and _PASSWORD_OF_DIGITS.match(value) is not None)
        is_told = is_told or (name == "a" and role.logs_in and _ONE_DIGIT.fullmatch(value) is not None)
        is_told = is_told or (
            len(value) >= LEAST_CHARS
            and not ("/" in value or is_variable(value))
            and _CERTAIN.fullmatch(f"{role.program} -{name}") is not None
        )
    is_plain = (is_sure or role.is_protocol) and (is_rare_word(value) or _LONG_HEX.fullmatch(value) is not None)
    if is_told or ((looks_typed(value) or is_plain) if expects else is_sure and looks_drawn(value)):
        found[value] = None
    elif is_sure and role.has_user and "/" not in value and not _NUMBERS.match(value):
        found.update({value: None} if is_secret("password", "password", value, quoted=True) else {})
