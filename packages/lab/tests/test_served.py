"""Answers from a server: what is asked of it, what is made of what it says, and what happens when it fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agentsignals.errors import LabError, UsageError
from agentsignals.network import LOCAL_NOTICE

from agentsignals_lab.residual import Generation, Message, Piece, Sampling
from agentsignals_lab.served_model import TRIES, Served
from tests.conftest import Server, said

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def chat(*texts: str) -> list[Message]:
    return [Message("system", (Piece("system", "be short"),)), Message("user", tuple(Piece("task", t) for t in texts))]


def writer(server: Server, **more: Any) -> Served:
    return Served(server.url, "small", wait=lambda _: None, **more)


def test_an_answer_comes_with_what_the_server_counted(server: Server) -> None:
    assert writer(server).answer(chat("add 1"), Sampling(9)) == Generation(
        text="ADD 1", tokens=(), finish="stop", prompt_tokens=12, new_tokens=3, logprob_sum=None
    )


def test_a_request_says_how_to_draw_and_joins_the_pieces(server: Server) -> None:
    writer(server).answer(chat("add ", "two"), Sampling(9, 0.7, 0.9, seed=4))
    assert server.bodies == [
        {
            "model": "small",
            "messages": [{"role": "system", "content": "be short"}, {"role": "user", "content": "add two"}],
            "seed": 4,
            "max_tokens": 9,
            "temperature": 0.7,
            "top_p": 0.9,
        }
    ]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (said("cut off", "length"), ("cut off", "length", 12, 3, None)),
        (said("ended", "content_filter"), ("ended", "stop", 12, 3, None)),
        (said(None), ("", "stop", 12, 3, None)),
        ({"choices": [{"message": {"content": None, "refusal": "no"}}]}, ("no", "stop", None, None, None)),
    ],
)
def test_what_a_server_does_not_tell_is_none(server: Server, answer: Any, expected: tuple[Any, ...]) -> None:
    server.says = lambda _: answer
    found = writer(server).answer(chat("add"), Sampling(9))
    assert (found.text, found.finish, found.prompt_tokens, found.new_tokens, found.logprob_sum) == expected


@pytest.mark.parametrize("fault", [500, 429, b"<html>", b"\xff", {"choices": []}, {"error": "odd"}])
def test_a_server_that_fails_is_asked_again(server: Server, fault: Any) -> None:
    faults, waits = [fault, fault], []
    server.says = lambda _: faults.pop() if faults else said("at last")
    asked = Served(server.url, "small", wait=waits.append)
    assert asked.answer(chat("add"), Sampling(9)).text == "at last"
    assert len(waits) == 2
    assert (waits == [7.0, 7.0]) == (fault == 429)


def test_a_server_that_never_answers_is_an_error_that_says_so(server: Server) -> None:
    server.says = lambda _: 503
    with pytest.raises(LabError, match=f"no answer in {TRIES} tries: HTTP 503"):
        writer(server).answer(chat("add"), Sampling(9))
    assert len(server.bodies) == TRIES


@pytest.mark.parametrize("status", [400, 401, 404, 302])
def test_a_refusal_is_final_and_no_redirect_is_followed(server: Server, status: int) -> None:
    server.says = lambda _: status
    with pytest.raises(LabError, match=f"HTTP {status}"):
        writer(server).answer(chat("add"), Sampling(9))
    assert len(server.bodies) == 1


def test_an_open_answer_is_refused(server: Server) -> None:
    with pytest.raises(LabError, match="can't continue an answer"):
        writer(server).answer([Message("assistant", (Piece("code", "def"),))], Sampling(9))
    assert server.bodies == []


@pytest.mark.parametrize("url", ["ftp://here", "http://", "here"])
def test_what_names_no_server_is_wrong_usage(url: str) -> None:
    with pytest.raises(UsageError, match="not the URL of a chat server"):
        Served(url, "small")


def test_it_is_told_once_where_texts_go(server: Server) -> None:
    told: list[str] = []
    here = writer(server, tell=told.append)
    here.answer(chat("add"), Sampling(9))
    here.answer(chat("add"), Sampling(9))
    assert told == [f"tasks and answers go to {server.url}, {LOCAL_NOTICE}, to be answered by small"]


def test_secrets_do_not_leave_this_machine(server: Server) -> None:
    texts = chat("my key is ", SECRET)
    here, away = writer(server), writer(server)
    away.leaves = True
    here.answer(texts, Sampling(9))
    away.answer(texts, Sampling(9))
    assert [SECRET in json.dumps(body) for body in server.bodies] == [True, False]
    assert Served("https://models.example/v1", "small").leaves
