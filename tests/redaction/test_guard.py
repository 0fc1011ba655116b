"""Plain forms that are masked and stay masked: names, joints, looks and places crossed, so that a rule that spares a
look-alike takes none of them away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import pytest

from agentsignals.redaction import Redactor

PASSWORDS = [
    "password",
    "Password",
    "DB_PASSWORD",
    "dbPassword",
    "existing_password",
    "passwd",
    "DB_PASS",
    "passphrase",
]
NAMES = [*PASSWORDS, "contraseña", "Passwort", "пароль"]
SECRETS = ["secret", "client_secret", "JWT_SECRET"]
TOKENS = ["API_KEY", "api_key", "access_token", "authToken"]
QUOTED = ('{n} = "{v}"', "{n}: '{v}'", "{n}='{v}'", '{{"{n}": "{v}"}}', "'{n}' => '{v}'", '{n} := "{v}"')
BARE = ("{n}={v}", "{n} = {v}", "{n}: {v}", "<{n}>{v}</{n}>", "--{n} {v}", "--{n}={v}")
SAID = ("the {n} is {v}", "| {n} | {v} |")
DRAWN = ["xK9!mQ2pLw7z", "8f3Kd92mX0qw", "5f4dcc3b5aa765d61d8327deb882cf99"]
TYPED = [*DRAWN, "correct-horse-battery-9", "SunShine9", "HunterTwo2", "sunnyday1987", "Blackbird!", "7.4beRlin99"]
"""The others look like a class, a version, a ticket, a pair, a count, a state and a word."""
TOLD = [*TYPED, "hunter2", "ABCD-1234", "lena:Quark55!", "48151623", "zanzibarrier"]
LOOKS = [*TOLD, "blessed"]
PLACES = (
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2x1\n[truncated]\n{}",
    'if "-----BEGIN CERTIFICATE-----" in pem:\n    {}',
    "import os\nfrom app import Config\n{}",
    "class Settings:\n    {}",
    "$ git log -1\n{}",
    "docker image: web\n{}",
    "digest sha256 got\n{}\ncommit abc",
    "+{}",
    "    12→{}",
    "request_id: 7\n{}\n",
    '<div class="row">{}</div>',
    "{} configured",
    "{} created",
    "{}  # rev 3",
    "{}\nsecret/db unchanged",
    'bind = lookup("ldap", {})',
    "db: ENC[AES256 {}",
    "pam_unix.so {}",
    "token: vault:v1:x {}",
    "encryptedData:\n  size: 3\n  {}",
)
COMMANDS = (
    "mysql -u root -p{v} shop",
    "mysqldump -p{v} shop > dump.sql",
    "redis-cli -h cache -a {v} ping",
    "redis-cli -a{v} ping",
    "sshpass -p {v} ssh lena@h1",
    "curl -u lena:{v} https://h.example/x",
    "docker login -u lena -p {v} registry.example.com",
    "echo {v} | sudo -S id",
    'echo "root:{v}" | chpasswd',
    "htpasswd -b users lena {v}",
    "PGPASSWORD={v} psql -h db",
    "postgres://app:{v}@db:5432/shop",
    "docker run -e MYSQL_ROOT_PASSWORD={v} mysql",
)
OF_COMMANDS = [*DRAWN, "correct-horse-battery-9", "SunShine9", "HunterTwo2", "sunnyday1987", "Blackbird!", "hunter2"]


def crossed(ways: Iterable[str], names: Iterable[str], looks: Iterable[str]) -> Iterator[tuple[str, str]]:
    for way, name, look in product(ways, names, looks):
        yield way.format(n=name, v=look), look.rpartition(":")[2]


def left(forms: Iterable[tuple[str, str]]) -> list[str]:
    return [text for text, secret in forms if secret in Redactor().text(text)]


@pytest.mark.parametrize(
    "forms",
    [
        pytest.param([*crossed((*QUOTED, *BARE), NAMES, LOOKS)], id="passwords"),
        pytest.param([*crossed(SAID[:1], PASSWORDS, TOLD), *crossed(SAID[1:], PASSWORDS, TOLD[:-1])], id="said"),
        pytest.param([*crossed((*QUOTED, *BARE), SECRETS, TYPED)], id="secrets"),
        pytest.param([*crossed((*QUOTED, *BARE), TOKENS, DRAWN)], id="tokens"),
        pytest.param([*crossed(QUOTED, TOKENS, ["AB-123456", "SunShine9"])], id="quoted tokens"),
        pytest.param([*crossed(COMMANDS, [""], OF_COMMANDS)], id="commands"),
    ],
)
def test_a_plain_form_is_masked(forms: list[tuple[str, str]]) -> None:
    assert not left(forms)


@pytest.mark.parametrize("place", PLACES)
def test_no_place_hides_a_plain_form(place: str) -> None:
    plain = [
        *crossed(("{n}={v}", "{n}: {v}", '{n} = "{v}"'), ("password", "DB_PASSWORD"), TOLD),
        *crossed(("{n}={v}", '{n} = "{v}"'), ("API_TOKEN", "client_secret"), DRAWN),
    ]
    assert not left((place.format(text), secret) for text, secret in plain)
