"""One person has one pseudonym by one key, whatever way it is written; nobody without the key finds whose it is."""

from __future__ import annotations

import json
import re
import time
from hashlib import blake2b, md5, sha1, sha256

import pytest

from agentsignals.redaction import Redactor, redacted
from agentsignals.redaction.personal import Pseudonyms
from agentsignals.redaction.values import without_pseudonyms
from tests.quick import each_row
from tests.redaction.planted import CONTEXTS, OPTION

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
PSEUDONYM = re.compile(r"\[(?:user|mail|phone|address)-[0-9a-f]{8}\]")
WRITTEN = {
    "user": ("/home/jodoe/app", "/Users/jodoe/x.py", r"C:\Users\jodoe\x", "-Users-jodoe-src", "%2Fhome%2Fjodoe%2Fx"),
    "mail": ("ask jo.doe@example.org.", "<Jo.Doe@Example.ORG>", "to=jo.doe%40example.org"),
    "phone": ("+49 170 1234567", "call 0049 170 1234567", "+49 (170) 123-4567", "tel: +491701234567"),
    "address": ("2a01:4f8::1 up", "[2a01:04f8:0:0:0:0:0:1]:80", "at 2A01:4F8::1"),
}
OTHERS = {"user": "/home/jodof/app", "mail": "jo.doe@example.com", "phone": "+49 170 1234568", "address": "2a01:4f8::2"}


def pseudonyms(text: str, key: bytes | None = KEY) -> list[str]:
    return PSEUDONYM.findall(Redactor(key).plain(text))


@pytest.mark.parametrize("kind", WRITTEN)
def test_whoever_is_written_in_several_ways_is_one_and_another_is_another(kind: str) -> None:
    found = [pseudonyms(text) for text in WRITTEN[kind]]
    assert found == [found[0]] * len(found) and len(found[0]) == 1 and found[0][0].startswith(f"[{kind}-")
    assert pseudonyms(OTHERS[kind]) != found[0]
    assert len(pseudonyms(OTHERS[kind])) == 1


def test_a_user_name_is_taken_as_it_is() -> None:
    assert pseudonyms("/home/jodoe/x") != pseudonyms("/home/JoDoe/x")


def test_the_same_word_of_two_kinds_has_two_hashes() -> None:
    masks = [Pseudonyms(KEY).mask(kind, "1234567") for kind in WRITTEN]
    assert len({mask.rpartition("-")[2] for mask in masks}) == len(WRITTEN)


@pytest.mark.parametrize("kind", WRITTEN)
def test_another_key_gives_another_pseudonym_and_no_key_one_of_this_redactor_alone(kind: str) -> None:
    text = WRITTEN[kind][0]
    assert pseudonyms(text, KEY) != pseudonyms(text, OTHER)
    redactor = Redactor()
    assert redactor.plain(text) == redactor.plain(text) and redactor.plain(f"x {text}") == f"x {redactor.plain(text)}"
    assert redactor.plain(text) != Redactor().plain(text)


def test_who_lacks_the_key_does_not_find_a_name_by_hashing_names() -> None:
    told = pseudonyms("/home/jodoe/x")[0][len("[user-") : -1]
    for name in (b"jodoe", b"user\0jodoe", b"userjodoe", b"user:jodoe", b"[user-jodoe]"):
        hashed = [make(name).hexdigest() for make in (md5, sha1, sha256, blake2b)]
        hashed += [blake2b(name, digest_size=4, person=person).hexdigest() for person in (b"", b"user")]
        hashed += [blake2b(name, digest_size=4, key=bytes(32), person=person).hexdigest() for person in (b"", b"user")]
        assert not [one for one in hashed if told in one]


@pytest.mark.parametrize("key", [b"", b"short", bytes(31), bytes(33)])
def test_a_key_that_is_none_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match="must have 32"):
        Redactor(key)


def test_a_person_is_the_same_across_texts_and_in_json_in_json() -> None:
    redactor = Redactor(KEY)
    inner = json.dumps({"cwd": "/home/jodoe/app", "to": "JO@example.org"})
    told = redactor.text(json.dumps({"arguments": inner, "text": "see /Users/jodoe/x or jo@example.org"}))
    found = json.loads(told)
    again = json.loads(found["arguments"])
    assert PSEUDONYM.findall(again["cwd"] + again["to"]) == PSEUDONYM.findall(found["text"])
    assert len(set(PSEUDONYM.findall(told))) == 2


def test_names_of_json_that_are_two_people_stay_two_and_one_person_in_two_ways_stays_two_entries() -> None:
    found = json.loads(Redactor(KEY).text('{"a@x.org": 1, "b@x.org": 2, "A@x.org": 3}'))
    assert list(found.values()) == [1, 2, 3]
    assert [PSEUDONYM.fullmatch(name) is not None for name in found] == [True, True, False]


def test_half_a_character_in_a_name_is_no_trouble() -> None:
    told = Redactor(KEY).text('{"cwd": "/home/jo\\ud83ddoe/app"}')
    assert len(PSEUDONYM.findall(told)) == 1 and "doe" not in told


def test_keys_passwords_cards_and_accounts_have_one_word_for_all() -> None:
    numbers = "card 4111 1111 1111 1111 DE89 3704 0044 0532 0130 00"
    text = f"ghp_{'a1' * 18} PASSWORD=hunter22x https://jo:hunter22@x.io {numbers}"
    assert Redactor(KEY).plain(text) == "[key] PASSWORD=[secret] https://[login]@x.io card [card] [account]"


def test_counts_are_by_kind_not_by_person() -> None:
    redactor = Redactor(KEY)
    redactor.plain("/home/jo/x /home/al/x jo@example.org")
    assert redactor.counts == {"user": 2, "mail": 1}


def test_masks_without_pseudonyms_are_those_of_who_tells_nobody_apart() -> None:
    text = "/home/jodoe/x, jo@example.org, +49 170 1234567, 93.184.216.34, PASSWORD=hunter22x"
    told = "/home/[user]/x, [mail], [phone], [address], PASSWORD=[secret]"
    assert redacted(text) == Redactor(pseudonyms=False).plain(text) == told
    assert without_pseudonyms(Redactor(KEY).plain(text)) == told
    assert without_pseudonyms("[user-3f9a1c] [key-3f9a1c07x] [other-3f9a1c07]") == (
        "[user-3f9a1c] [key-3f9a1c07x] [other-3f9a1c07]"
    )


SAYING = {
    "json key": lambda name, value: json.dumps({name: value}),
    "header": lambda name, value: f"Authorization: Bearer {value}",
    "header of its own": lambda name, value: f'"Authorization": "{value}"',
    "cookie": lambda name, value: f"Cookie: sid={value}",
    "is": lambda name, value: f"the {name} is {value}, tell",
    "curl": lambda name, value: f"curl -u jo:{value} x",
    "login": lambda name, value: f"https://{value}@x.example.org/p",
    **CONTEXTS,
    **OPTION,
}
AROUND = ("{}", "/srv/{}/x9", "x9{}", "{}y9", "write to {} now", "{} 4111-1111-1111-1111", "<{}>")


@each_row("context", SAYING)
@each_row("name", ["PASSWORD", "password", "api_key", "ACCESS_TOKEN", "client_secret", "item"])
def test_what_has_a_pseudonym_stays_whoever_masks_it_again(context: str, name: str) -> None:
    for kind, ways in WRITTEN.items():
        for around in AROUND:
            text = SAYING[context](name, around.replace("{}", ways[0]))
            once = Redactor(KEY).text(text)
            for again in (Redactor(KEY), Redactor(OTHER), Redactor(pseudonyms=False)):
                assert again.text(once) == once, f"{kind} {around}"


@pytest.mark.parametrize("hexes", ["12345678", "41111111", "00000000", "deadbeef", "1e5e5e5e"])
@pytest.mark.parametrize("kind", WRITTEN)
def test_no_pseudonym_looks_like_a_secret_whatever_its_digits(kind: str, hexes: str) -> None:
    mask = f"[{kind}-{hexes}]"
    named = json.dumps({"password": mask, mask: mask})
    for text in (f"PASSWORD={mask}", f'api_key: "{mask}"', f"password is {mask}", f"/home/{mask}/x", f"Bearer {mask}",
                 f"+49 {mask} {mask} 4111", f"https://{mask}@x.org", named):  # fmt: skip
        assert Redactor(KEY).text(text) == text


@pytest.mark.parametrize("mask", ["[login]", "[phone]", "[private key]", "[mail]", "[cut]"])
def test_a_word_that_masks_is_no_secret_either(mask: str) -> None:
    for text in (f"DB_PASSWORD={mask} x", f"PASSWORD: {mask}", json.dumps({"password": f"x {mask}"})):
        assert Redactor(KEY).text(text) == text


def test_a_secret_beside_a_pseudonym_is_masked_all_the_same() -> None:
    text = "[user-3f9a1c07] PASSWORD=hunter22x [mail-3f9a1c07] ghp_" + "a1" * 18 + " -u [user]"
    assert redacted(text) == "[user-3f9a1c07] PASSWORD=[secret] [mail-3f9a1c07] [key] -u [user]"
    block = "-----BEGIN RSA PRIVATE KEY-----\nabc [user-3f9a1c07]\nabc\n-----END RSA PRIVATE KEY-----\n"
    assert redacted(block) == "[private key]\n"


def test_a_text_full_of_pseudonyms_takes_no_time() -> None:
    text = "[user-3f9a1c07] password=hunter22 " * 2000 + "[user-3f9a1c" * 5000
    started = time.process_time()
    told = redacted(text)
    assert told.count("[secret]") == 2000
    assert time.process_time() - started < 3
