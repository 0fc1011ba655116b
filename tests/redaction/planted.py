"""Secrets made at run time, of many kinds, and the ways in which they stand in traces. None of them opens anything."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from typing import NamedTuple

WORD = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"


class Secret(NamedTuple):
    """What is planted: it says itself what it is (`name` is empty), or needs a name beside it."""

    value: str
    name: str = ""
    """The name by which it goes, where its shape says nothing."""
    around: tuple[str, str] = ("", "")
    """What always stands before and after it, and may be seen."""
    breaks: bool = False
    """Whether its shape has a beginning by which it is known over line ends, too."""


Make = Callable[[random.Random], Secret]


def drawn(chance: random.Random, n: int, letters: str = WORD) -> str:
    """`n` letters; one digit at least among them, as in every secret of length."""
    told = chance.choices(letters, k=n)
    told[chance.randrange(n)] = chance.choice("23456789")
    return "".join(told)


def key(prefix: str, n: int, letters: str = WORD) -> Make:
    return lambda chance: Secret(prefix + drawn(chance, n, letters), breaks=True)


def named(name: str, n: int, letters: str = WORD) -> Make:
    return lambda chance: Secret(drawn(chance, n, letters), name)


def password(name: str) -> Make:
    def make(chance: random.Random) -> Secret:
        return Secret(drawn(chance, 5) + chance.choice("!_.#-") + drawn(chance, 6), name)

    return make


def _base64(chance: random.Random, n: int) -> str:
    return base64.b64encode(chance.randbytes(n)).decode()


def private_key(kind: str) -> Make:
    def make(chance: random.Random) -> Secret:
        body = _base64(chance, 480)
        lines = "\n".join(body[n : n + 64] for n in range(0, len(body), 64))
        return Secret(lines, around=(f"-----BEGIN {kind}-----\n", f"\n-----END {kind}-----\n"))

    return make


def web_token(chance: random.Random) -> Secret:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": drawn(chance, 12), "iat": chance.randrange(10**9)})
    said = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    return Secret(".".join([*said, drawn(chance, 43)]), breaks=True)


def luhn(digits: str) -> str:
    total = 0
    for n, c in enumerate(reversed(digits + "0")):
        total += int(c) if n % 2 == 0 else sum(divmod(2 * int(c), 10))
    return digits + str(-total % 10)


def card(chance: random.Random) -> Secret:
    told = luhn(chance.choice(("4", "51", "55")).ljust(2, "1") + drawn(chance, 13, string.digits))
    return Secret(chance.choice(("", " ", "-")).join(told[n : n + 4] for n in range(0, 16, 4)))


def account(chance: random.Random) -> Secret:
    rest = drawn(chance, 18, string.digits)
    check = 98 - int(rest + "".join(str(int(c, 36)) for c in "DE") + "00") % 97
    told = f"DE{check:02}{rest}"
    return Secret(" ".join(told[n : n + 4] for n in range(0, 22, 4)) if chance.random() < 0.5 else told)


def mail(chance: random.Random) -> Secret:
    return Secret(f"{drawn(chance, 7, LOWER)}.{drawn(chance, 6, LOWER)}@{drawn(chance, 9, LOWER)}.example.org")


def phone(chance: random.Random) -> Secret:
    a, b, c = (drawn(chance, n, string.digits) for n in (3, 3, 4))
    return Secret(chance.choice((f"+49 {a} {b}{c}", f"({a}) {b}-{c}", f"+1-{a}-{b}-{c}", f"+44 20 {c} {b}9")))


def address_v4(chance: random.Random) -> Secret:
    return Secret(
        f"{chance.randint(130, 168)}.{chance.randint(1, 250)}.{chance.randint(1, 250)}.{chance.randint(1, 250)}"
    )


def address_v6(chance: random.Random) -> Secret:
    return Secret("2a01:" + ":".join(f"{chance.randrange(4096, 65536):x}" for _ in range(7)))


def user(before: str, after: str) -> Make:
    return lambda chance: Secret(drawn(chance, 10, LOWER).replace("n", "m"), around=(before, after))


def login(scheme: str) -> Make:
    def make(chance: random.Random) -> Secret:
        told = f"{drawn(chance, 9, LOWER)}:{drawn(chance, 14)}"
        return Secret(told, around=(f"{scheme}://", "@db.internal:5432/shop"))

    return make


KINDS: dict[str, Make] = {
    "aws id": key("AK" + "IA", 16, string.ascii_uppercase + "234567"),
    "aws secret": named("AWS_SECRET_ACCESS_KEY", 40, WORD + "/+"),
    "aws session": named("aws_session_token", 420, WORD + "/+"),
    "github classic": key("gh" + "p_", 36),
    "github app": key("gh" + "s_", 36),
    "github fine": lambda c: Secret("github" + f"_pat_{drawn(c, 22)}_{drawn(c, 59)}", breaks=True),
    "gitlab": key("gl" + "pat-", 20),
    "slack token": lambda c: Secret("xo" + f"xb-{drawn(c, 12, string.digits)}-{drawn(c, 24)}", breaks=True),
    "slack hook": lambda c: Secret(f"T{drawn(c, 9)}/B{drawn(c, 9)}/{drawn(c, 24)}",
                                   around=("https://hooks.slack" + ".com/services/", "")),
    "stripe": key("sk_" + "live_", 24),
    "stripe restricted": key("rk_" + "live_", 32),
    "stripe hook": key("wh" + "sec_", 32),
    "openai": key("sk-" + "proj-", 64),
    "openai old": key("sk" + "-", 48),
    "anthropic": key("sk-" + "ant-api03-", 93),
    "hugging face": key("h" + "f_", 34),
    "google": key("AI" + "za", 35),
    "google refresh": key("GOC" + "SPX-", 28),
    "google access": key("ya" + "29.", 80),
    "gcp account": private_key("PRIVATE " + "KEY"),
    "rsa": private_key("RSA PRIVATE " + "KEY"),
    "ssh": private_key("OPENSSH PRIVATE " + "KEY"),
    "pgp": private_key("PGP PRIVATE " + "KEY BLOCK"),
    "age": key("AGE-" + "SECRET-KEY-1", 58, string.ascii_uppercase + "234567"),
    "jwt": web_token,
    "basic auth": login("https"),
    "postgres": login("postgres"),
    "mongo": login("mongodb+srv"),
    "redis": lambda c: Secret(drawn(c, 20), around=("redis://:", "@cache.internal:6379/0")),
    "npm": key("np" + "m_", 36),
    "pypi": key("py" + "pi-AgEIcHlwaS5vcmc", 120),
    "sendgrid": lambda c: Secret("S" + f"G.{drawn(c, 22)}.{drawn(c, 43)}", breaks=True),
    "twilio id": lambda c: Secret("A" + f"C{drawn(c, 32, HEX)}"),
    "twilio token": named("TWILIO_AUTH_TOKEN", 32, HEX),
    "azure storage": lambda c: Secret(_base64(c, 64), "AccountKey"),
    "azure signature": lambda c: Secret(drawn(c, 43) + "%3D", around=("?sv=2022-11-02&ss=b&sp=rl&sig=", "")),
    "telegram": lambda c: Secret(f"{c.randrange(10**9, 10**10)}:AA{drawn(c, 33)}"),
    "discord": lambda c: Secret(f"M{drawn(c, 23)}.{drawn(c, 6)}.{drawn(c, 38)}"),
    "discord hook": lambda c: Secret(drawn(c, 68), around=(f"https://discord.com/api/webhooks/{10**17 + 7}/", "")),
    "groq": key("gs" + "k_", 52),
    "vault": key("hv" + "s.", 24),
    "shopify": key("shp" + "at_", 32, HEX),
    "digital ocean": key("dop" + "_v1_", 64, HEX),
    "databricks": lambda c: Secret("da" + f"pi{drawn(c, 32, HEX)}"),
    "password": password("password"),
    "db password": password("DB_PASSWORD"),
    "passphrase": password("passphrase"),
    "client secret": named("client_secret", 32),
    "camel": named("clientSecret", 24),
    "api key": named("api_key", 24),
    "x-api-key": named("X-Api-Key", 32),
    "env key": named("ENCRYPTION_KEY", 44),
    "access token": named("accessToken", 40),
    "bearer": lambda c: Secret(drawn(c, 40), around=("Authorization: Bearer ", "")),
    "bearer alone": lambda c: Secret(drawn(c, 32, LOWER), around=("Bearer ", "")),
    "basic header": lambda c: Secret(base64.b64encode(f"{drawn(c, 6)}:{drawn(c, 9)}".encode()).decode(),
                                     around=("Authorization: Basic ", "")),
    "curl user": lambda c: Secret(f"{drawn(c, 8)}:{drawn(c, 12)}", around=("curl -u ", " https://x.test/")),
    "cookie": lambda c: Secret(drawn(c, 32), around=("Cookie: sid=", "")),
    "connection": lambda c: Secret(drawn(c, 16), around=("Server=db;User Id=app;Password=", ";Encrypt=true")),
    "mail": mail,
    "phone": phone,
    "ipv4": address_v4,
    "ipv6": address_v6,
    "card": card,
    "iban": account,
    "mac user": user("/Users/", "/src/app.py"),
    "linux user": user("/home/", "/src/app.py"),
    "windows user": user("C:\\Users\\", "\\src\\app.py"),
    "folder user": user("/projects/-Users-", "-src-app"),
    "folder user in small letters": user("/projects/-users-", "-src-app"),
    "mac user in small letters": user("/users/", "/src/app.py"),
    "windows user in small letters": user("c:\\users\\", "\\src\\app.py"),
    "tailscale": key("tskey-" + "auth-", 32),
    "atlassian": key("ATA" + "TT3xFfGF0", 180),
    "heroku": key("HR" + "KU-", 60),
    "langsmith": key("lsv2" + "_pt_", 40, HEX),
    "gitlab ci": key("glc" + "bt-64_", 20),
    "slack cookie": key("xo" + "xd-", 100),
    "google refresh again": lambda c: Secret("1/" + "/0" + drawn(c, 60)),
    "rubygems": lambda c: Secret("ruby" + "gems_" + drawn(c, 48, HEX)),
    "notion": lambda c: Secret(drawn(c, 43), around=("sec" + "ret_", "")),
    "planetscale": key("psc" + "ale_pw_", 43),
    "posthog": key("ph" + "x_", 43),
    "nuget": lambda c: Secret("oy" + "2" + drawn(c, 43, LOWER)),
    "square": lambda c: Secret("EA" + "AA" + drawn(c, 60)),
    "facebook": lambda c: Secret("EAAC" + "EdEose0cBA" + drawn(c, 120)),
    "terraform cloud": lambda c: Secret(f"{drawn(c, 14)}.atlas" + f"v1.{drawn(c, 67)}"),
    "mailchimp": lambda c: Secret(drawn(c, 32, HEX) + "-us" + "14"),
    "mysql": lambda c: Secret(drawn(c, 11), around=("mysql -u root -p", " prod")),
    "sshpass": lambda c: Secret(drawn(c, 11), around=("sshpass -p ", " ssh root@h")),
    "docker login": lambda c: Secret(drawn(c, 12), around=("docker login -u bob -p ", "")),
    "docker config": lambda c: Secret(base64.b64encode(f"bob:{drawn(c, 14)}".encode()).decode(),
                                      around=('{"auths":{"ghcr.io":{"auth":"', '"}}}')),
    "netrc": lambda c: Secret(drawn(c, 30), around=("machine api.acme.io\n  login user\n  password ", "")),
    "mail on a diff line": lambda c: Secret(mail(c).value, around=("\n+", "")),
    "phone on a diff line": lambda c: Secret(f"({drawn(c, 3, '3456789')}) 555-{drawn(c, 4, string.digits)}",
                                             around=("\n+", "")),
}  # fmt: skip


def _wrapped(name: str, value: str) -> str:
    return f"{name}:\n  {value}\n"


CONTEXTS: dict[str, Callable[[str, str], str]] = {
    "json": lambda name, value: json.dumps({"n": 1, name: value, "ok": True}),
    "json twice": lambda name, value: json.dumps({"arguments": json.dumps({name: value, "ok": True})}),
    "json indented": lambda name, value: json.dumps({name: value}, indent=2),
    "shell": lambda name, value: f"export {name}='{value}' && make\n",
    "env": lambda name, value: f"DEBUG=1\n{name}={value}\nPORT=80\n",
    "yaml": lambda name, value: f"config:\n  {name}: {value}\n  retries: 3\n",
    "yaml quoted": lambda name, value: f'config:\n  - {name}: "{value}"  # mine\n',
    "toml": lambda name, value: f'[tool]\n{name} = "{value}"\n',
    "python": lambda name, value: f'client = Client(1, {name}="{value}", retries=3)\n',
    "python map": lambda name, value: f"os.environ['{name}'] = '{value}'\n",
    "markdown": lambda name, value: f"* **{name}**: `{value}` (rotate it!)\n",
    "markdown table": lambda name, value: f"| {name} | `{value}` | yes |\n",
    "diff": lambda name, value: f"@@ -1,2 +1,2 @@\n-{name} = '{value}'\n+{name} = load()\n",
    "listing": lambda name, value: f"    11→DEBUG=1\n    12→{name}={value}\n    13→PORT=80\n",
    "next line": _wrapped,
}
"""Each must hold for every kind. What is multi-line stays so."""

OPTION: dict[str, Callable[[str, str], str]] = {
    "option": lambda name, value: f"$ tool login --{name.lower().replace('_', '-')} {value} --verbose\n",
    "option with =": lambda name, value: f"$ tool login --{name.lower().replace('_', '-')}={value} --verbose\n",
    "query": lambda name, value: f"GET https://x.test/v1?page=2&{name}={value}&sort=asc\n",
    "prose": lambda name, value: f"the {name} is {value}, don't tell\n",
}
"""For what goes by a name."""


def said(secret: Secret, context: Callable[[str, str], str], neutral: str = "item") -> str:
    """A secret in a context."""
    return context(secret.name or neutral, secret.around[0] + secret.value + secret.around[1])


def broken(value: str, at: int, how: str) -> str:
    """A value over two lines."""
    return value[:at] + how + value[at:]


def pieces(secret: Secret) -> set[str]:
    """Every part of eight characters; a shorter one tells nothing. Lines of a key are looked for one by one."""
    return {line[n : n + 8] for line in secret.value.splitlines() for n in range(max(1, len(line) - 7))}
