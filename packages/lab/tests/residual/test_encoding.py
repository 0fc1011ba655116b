"""Which token of a chat is whose: spans under chat templates and tokenizers of several kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

import transformers  # noqa: E402  (after the check that it can be loaded)
from agentsignals.errors import LabError  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers, processors  # noqa: E402

from agentsignals_lab.residual import Message, Piece, Prompt  # noqa: E402
from agentsignals_lab.residual.encoding import encode_chat, encode_pieces, read  # noqa: E402
from tests.residual import small  # noqa: E402

pytestmark = pytest.mark.torch

TRIMS = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] | trim }} [/]{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}{% endfor %}"
)
DROPS_THOUGHTS = "{% for m in messages %}<|begin|>{{ m['content'].split('</think>')[-1] }}<|end|>{% endfor %}"
SYSTEM_LAST = (
    "{% for m in messages[1:] %}[{{ m['role'] }}]{% if loop.last %}{{ messages[0]['content'] }}\n\n{% endif %}"
    "{{ m['content'] }}{% endfor %}"
)
SAYS_TWICE = "{% for m in messages %}{{ m['content'] }}|{{ m['content'] }}\n{% endfor %}"


def tokenizer(template: str | None = small.TEMPLATE) -> Any:
    made = small.tokenizer().__class__(tokenizer_object=small.tokenizer().backend_tokenizer)
    made.chat_template = template
    made.add_special_tokens({"bos_token": "<s>"})
    return made


class Slow:
    """The same tokens from a tokenizer that tells no offsets, as slow ones and Mistral's do."""

    is_fast = False
    chat_template = small.TEMPLATE

    def __init__(self) -> None:
        self._fast = tokenizer()
        self.decoded = 0

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return [0] * add_special_tokens + list(self._fast.encode(text, add_special_tokens=False))

    def decode(self, tokens: list[int], **how: Any) -> str:
        self.decoded += len(tokens)
        return str(self._fast.decode(tokens, **how))

    def apply_chat_template(self, *told: Any, **how: Any) -> Any:
        return self._fast.apply_chat_template(*told, **how)


def chat(*turns: tuple[str, str, str]) -> list[Message]:
    """Turns of (speaker, role, text)."""
    return [Message(speaker, (Piece(role, text),)) for speaker, role, text in turns]  # type: ignore[arg-type]  (literals)


def told(prompt: Prompt, by: Any) -> list[tuple[str, str]]:
    """Roles and texts of the spans that are not the template's."""
    return [(s.role, by.decode(prompt.tokens[s.start : s.end])) for s in prompt.spans if s.role != "template"]


def is_a_partition(prompt: Prompt) -> bool:
    edges = [0, *(edge for span in prompt.spans for edge in (span.start, span.end)), len(prompt.tokens)]
    return all(a == b for a, b in zip(edges[::2], edges[1::2], strict=True)) and all(
        s.start < s.end for s in prompt.spans
    )


@pytest.fixture(params=["fast", "slow"])
def by(request: pytest.FixtureRequest) -> Any:
    return tokenizer() if request.param == "fast" else Slow()


def test_a_chat_is_what_its_template_says_and_every_token_has_its_role(by: Any) -> None:
    pieces = (Piece("task", "write a function\n"), Piece("tests", "add(1, 2) is 3\n", "visible"), Piece("text", ""))
    turns = [
        Message("system", (Piece("system", "be short"),)),
        Message("user", pieces),
        Message("assistant", (Piece("code", "def add(a, b):\n    return a\n", "0"),)),
        Message("user", (Piece("feedback", "failed again", "0"),)),
    ]
    prompt = encode_chat(by, turns)
    plain = [{"role": m.speaker, "content": "".join(p.text for p in m.pieces)} for m in turns]
    assert prompt.text == by.apply_chat_template(plain, tokenize=False, add_generation_prompt=True)
    assert list(prompt.tokens) == by.apply_chat_template(
        plain, tokenize=True, add_generation_prompt=True, return_dict=False
    )
    assert told(prompt, by) == [
        ("system", "be short"),
        ("task", "write a function\n"),
        ("tests", "add(1, 2) is 3\n"),
        ("code", "def add(a, b):\n    return a\n"),
        ("feedback", "failed again"),
    ]
    assert [s.label for s in prompt.spans if s.role in ("tests", "code", "feedback")] == ["visible", "0", "0"]
    assert is_a_partition(prompt)
    assert prompt.spans[-1].role == "template"


@pytest.mark.parametrize("text", ["user", "assistant\n", "system", "<|end|>", "mark0q", "{{ bos_token }}{% x %}"])
def test_words_of_the_template_in_a_message_do_not_move_its_span(text: str) -> None:
    by = tokenizer()
    prompt = encode_chat(by, chat(("user", "task", text), ("assistant", "code", text), ("user", "feedback", text)))
    assert told(prompt, by) == [("task", text), ("code", text), ("feedback", text)]


def test_a_template_that_trims_shifts_no_span() -> None:
    by = tokenizer(TRIMS)
    pieces = (Piece("text", "\n \n"), Piece("task", "  add two "), Piece("feedback", "numbers"), Piece("text", " \n"))
    prompt = encode_chat(by, [Message("user", pieces)])
    assert [(role, text.strip()) for role, text in told(prompt, by)] == [("task", "add two"), ("feedback", "numbers")]
    assert is_a_partition(prompt)


def test_a_piece_that_is_trimmed_away_has_no_tokens() -> None:
    by = tokenizer(TRIMS)
    prompt = encode_chat(by, chat(("user", "task", " \n "), ("assistant", "code", "def")))
    assert [role for role, _ in told(prompt, by)] == ["code"]


def test_an_assistants_last_message_stays_open() -> None:
    by = tokenizer()
    prompt = encode_chat(by, chat(("user", "task", "add"), ("assistant", "code", "def add(")))
    assert prompt.text.endswith("<|begin|>assistant\ndef add(")
    assert prompt.spans[-1].role == "code"


def test_tokens_of_one_character_are_together(by: Any) -> None:
    prompt = encode_chat(by, chat(("user", "task", "añ日"), ("assistant", "code", "🙂é"), ("user", "feedback", "x")))
    assert told(prompt, by) == [("task", "añ日"), ("code", "🙂é"), ("feedback", "x")]


def test_broken_bytes_end_no_encoding_without_offsets() -> None:
    slow = Slow()
    prompt = encode_pieces(slow, [Piece("task", "a\ufffdb" * 30), Piece("code", "end")])
    assert told(prompt, slow)[-1] == ("code", "end")


def test_decoding_token_by_token_takes_time_in_proportion() -> None:
    slow = Slow()
    prompt = encode_pieces(slow, [Piece("task", "def add(a, b): " * 2000)])
    assert slow.decoded < 8 * len(prompt.tokens)


def test_a_token_that_two_pieces_share_is_where_its_word_begins(by: Any) -> None:
    prompt = encode_pieces(by, [Piece("task", "write re"), Piece("feedback", "turn again")])
    assert told(prompt, by) == [("task", "write return"), ("feedback", " again")]
    prompt = encode_pieces(by, [Piece("task", "write "), Piece("feedback", "return"), Piece("task", "\n\n")])
    assert told(prompt, by) == [("task", "write"), ("feedback", " return"), ("task", "\n\n")]


def test_plain_text_has_the_tokenizers_beginning_and_no_end() -> None:
    inner = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "add": 2, "two": 3, "?": 4}, unk_token="?"))  # noqa: S106
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    by = transformers.PreTrainedTokenizerFast(tokenizer_object=inner)
    prompt = encode_pieces(by, [Piece("task", "add "), Piece("code", "two")])
    assert prompt.tokens == (0, 2, 3)
    assert [(s.role, s.start, s.end) for s in prompt.spans] == [("template", 0, 1), ("task", 1, 2), ("code", 2, 3)]
    assert encode_pieces(Slow(), [Piece("task", "add")]).spans[0].role == "template"


def test_a_single_message_without_a_template_is_plain_text_and_more_are_refused() -> None:
    by = tokenizer(None)
    assert encode_chat(by, chat(("user", "task", "add"))).spans[0].role == "task"
    with pytest.raises(LabError, match="no chat template"):
        encode_chat(by, chat(("system", "system", "be short"), ("user", "task", "add")))
    with pytest.raises(LabError, match="no chat template"):
        encode_chat(by, chat(("assistant", "code", "add")))


def test_a_template_that_refuses_a_chat_says_why() -> None:
    with pytest.raises(LabError, match="refuses this chat: no system"):
        encode_chat(tokenizer(NO_SYSTEM), chat(("system", "system", "be short"), ("user", "task", "add")))


def test_a_template_that_drops_part_of_a_message_is_an_error_and_no_wrong_span() -> None:
    by = tokenizer(DROPS_THOUGHTS)
    assert told(encode_chat(by, chat(("user", "task", "add"))), by) == [("task", "add")]
    with pytest.raises(LabError, match="does not keep a message"):
        encode_chat(by, chat(("user", "task", "add"), ("assistant", "code", "so</think>done"), ("user", "text", "x")))


def test_a_template_that_says_a_message_twice_marks_it_once() -> None:
    by = tokenizer(SAYS_TWICE)
    prompt = encode_chat(by, chat(("user", "task", "add"), ("assistant", "code", "def")))
    assert told(prompt, by) == [("task", "add"), ("code", "def")]


def test_a_template_that_moves_the_system_message_moves_its_span() -> None:
    by = tokenizer(SYSTEM_LAST)
    turns = chat(
        ("system", "system", "add"), ("user", "task", "add"), ("assistant", "code", "a"), ("user", "feedback", "add")
    )
    assert told(encode_chat(by, turns), by) == [("task", "add"), ("code", "a"), ("system", "add"), ("feedback", "add")]


def test_mistrals_own_tokenizer_writes_the_chat_that_devstral_knows() -> None:
    """Its special tokens come from the chat alone: their names in a text stay text."""
    own = pytest.importorskip("mistral_common", reason="mistral_common is not installed")
    by = transformers.MistralCommonBackend(tokenizer_path=str(Path(own.__file__).parent / "data/tekken_240911.json"))
    turns = [
        Message("system", (Piece("system", "be short"),)),
        Message("user", (Piece("task", "write añ日🙂\n"), Piece("tests", "add(1, 2) == [INST]"))),
        Message("assistant", (Piece("code", "def add():\n    return 1\n"),)),
        Message("user", (Piece("feedback", "failed", "0"),)),
    ]
    prompt = encode_chat(by, turns)
    assert told(prompt, by) == [
        ("task", "write añ日🙂\n"),
        ("tests", "add(1, 2) == [INST]"),
        ("code", "def add():\n    return 1\n"),
        ("system", "be short"),
        ("feedback", "failed"),
    ]
    opens = by.convert_tokens_to_ids("[INST]")
    assert prompt.tokens.count(opens) == 2
    assert is_a_partition(prompt)
    assert encode_chat(by, turns[1:3]).spans[-1].role == "code"
    assert encode_pieces(by, [Piece("task", "add "), Piece("code", "two")]).spans[0].role == "template"
    assert read(by, prompt.tokens).startswith("write añ日🙂\nadd")


def test_an_empty_chat_is_an_error() -> None:
    with pytest.raises(LabError, match="no message"):
        encode_chat(tokenizer(), [])
