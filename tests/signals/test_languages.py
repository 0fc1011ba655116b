"""No rule made for English judges another language: it gives no value, with the language as the reason."""

from __future__ import annotations

import pytest

from agentsignals.model import Absent
from agentsignals.questions.sql import ENGLISH_ONLY
from agentsignals.signals.catalog import catalogue, measure
from agentsignals.views.session import SessionView
from tests.build import call, say, think, user, view
from tests.signals.ask import absent, detail, value

TALKS = {
    "de": ("Bitte behebe den Fehler in der Datei parser.py und teste sie", "Ich habe die Datei geändert und getestet.",
           "Nein, das ist falsch, mach das bitte wieder rückgängig", "stimmt nicht", "danke"),
    "fr": ("Corrige le bug dans le fichier parser.py et ajoute un test", "J'ai modifié le fichier, les tests passent.",
           "Non, c'est faux, il faut annuler tout", "ce n'est pas ça", "merci"),
    "es": ("Arregla el error en el archivo parser.py y añade una prueba", "He cambiado el archivo y las pruebas pasan.",
           "No, eso está mal, hay que deshacer todo", "esto no funciona", "gracias"),
    "zh": ("请修复解析器文件中的错误并添加测试", "我已经修改了文件,测试通过了。",
           "不对,请撤销所有更改", "还是不行", "谢谢"),
    "ru": ("Исправь ошибку в файле parser.py и добавь тест", "Я изменил файл, и тесты проходят.",
           "Нет, это неправильно, отмени всё", "не то", "спасибо"),
}  # fmt: skip


def talk(language: str, closing: str | None = None) -> SessionView:
    first, answer, no, again, thanks = TALKS[language]
    return view(
        user(first), call("Edit", path="parser.py"), say(answer),
        user(no), call("Edit", path="parser.py"), say(answer),
        user(again), say(answer), user(closing or thanks),
    )  # fmt: skip


@pytest.mark.parametrize("language", TALKS)
def test_a_talk_in_another_language_is_not_judged(language: str) -> None:
    judged = {
        row.signal.path: row.value
        for row in measure(talk(language))
        if row.signal.path in ENGLISH_ONLY and not isinstance(row.value, Absent)
    }
    # An answer that changed a file is no question, whatever it says.
    assert judged in ({}, {"chat.agent_clarification_stop": False})


@pytest.mark.parametrize("language", TALKS)
@pytest.mark.parametrize("closing", ["ok", "undo", "no"])
def test_a_word_that_tells_no_language_is_in_the_one_of_the_talk(language: str, closing: str) -> None:
    assert absent(talk(language, closing), "user.closing_reaction") == ("not_computable", f"language: {language}")


def test_a_last_word_in_english_is_read_and_one_in_another_language_is_not() -> None:
    english = [user("Fix the error in the parser and add a test"), say("The file is changed and tested.")]
    last = view(*english, user("no, undo all of it"))
    kept = value(last, "user.closing_reaction")
    assert isinstance(kept, dict) and kept["kind"] == "revert_all"
    foreign = view(*english, user("nein, mach alles rückgängig"))
    assert absent(foreign, "user.closing_reaction") == ("not_computable", "language: de")


def test_of_a_mixed_talk_the_english_part_is_judged_and_the_rest_is_counted() -> None:
    mixed = view(
        user("Fix the error in the parser"), say("It is done."), user("no, that is wrong, the other file"),
        say("It is done now."), user("и добавь тест"), say("The test is there."), user("thanks, that works"),
    )  # fmt: skip
    rate = detail(mixed, "dynamics.correction_ratio")
    assert (rate["num"], rate["den"], rate["not_judged"]) == (1, 3, 1)
    assert detail(mixed, "chat.pushback_rate")["not_judged"] == 1


def test_thinking_in_another_language_than_the_answer_is_not_read_as_english() -> None:
    one = view(
        user("go"), think("我想我应该先检查文件,然后再修改它。"), say("I think the file is right now and should work.")
    )
    assert absent(one, "anticipation.assumption_count") == ("not_computable", "language: zh")
    assert absent(one, "reasoning.self_correction_count") == ("not_computable", "language: zh")


def test_every_signal_of_word_patterns_is_named_among_those_for_english() -> None:
    of_patterns = {s.path for s in catalogue().values() if s.source == "regex"}
    assert of_patterns - ENGLISH_ONLY == NEUTRAL


NEUTRAL: set[str] = set()
"""Signals by patterns of programs' output and commands, in which no person and no agent speaks."""
