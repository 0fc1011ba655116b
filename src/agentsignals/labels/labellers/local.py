"""A language model of the transformers library in this process, its answers held to the schema by llguidance's masks
(extra `local`). For machines without a server; one message at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from agentsignals.errors import LabelError
from agentsignals.labels.answers import Inquiry
from agentsignals.labels.in_process import TOO_LONG, Generation, Refused, messages, through
from agentsignals.labels.labellers import DEFAULT_WINDOW_TOKENS, Done, Kind
from agentsignals.labels.prompting import Question
from agentsignals.labels.task import Task, Verdict
from agentsignals.model import Absent


class LocalModel:
    """`local:MODEL`: an id of the Hub, or a local folder."""

    leaves = False
    keeps = True

    def __init__(self, named: str, *, window: int | None = None, **_: Any) -> None:
        self.model: str | None = named
        self.name = f"local:{named}"
        self._window = window

    @cached_property
    def _loaded(self) -> _Loaded:
        return _Loaded(str(self.model))

    def version(self, task: Task) -> str:
        return task.prompt_hash

    def window(self) -> int:
        return self._window or self._loaded.window or DEFAULT_WINDOW_TOKENS

    def run_figures(self) -> dict[str, Any]:
        return {"backend": "llguidance"}

    def read(self, question: Question, text: str) -> Verdict | Absent | str:
        return question.read(text)

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        through(questions, 1, self._generate, done)

    def _generate(self, batch: Sequence[Inquiry]) -> list[Generation | Refused]:
        return [self._loaded.generated(inquiry) for inquiry in batch]


class _Loaded:
    """The model with its tokenizer and the grammar engine's view of it."""

    def __init__(self, named: str) -> None:
        try:
            import llguidance.hf  # noqa: PLC0415  (seconds to load, only for who asks for it)
            import llguidance.torch  # noqa: PLC0415
            import torch  # noqa: PLC0415
            import transformers  # noqa: PLC0415
        except ImportError as problem:
            raise LabelError(
                f"A local model can't be loaded: {problem}.", 'Install it: pip install "agentsignals[local]".'
            ) from problem
        self._torch, self._guidance, self._transformers = torch, llguidance, transformers
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(named)
            self._model = transformers.AutoModelForCausalLM.from_pretrained(named)
        except (OSError, ValueError) as problem:
            raise LabelError(
                f"{named} can't be loaded: {str(problem).splitlines()[0]}", "Give a local folder with a model."
            ) from problem
        self._model.eval()
        self._view = llguidance.hf.from_tokenizer(self._tokenizer)
        positions = getattr(self._model.config, "max_position_embeddings", None)
        self.window: int | None = positions if isinstance(positions, int) else None

    def generated(self, inquiry: Inquiry) -> Generation | Refused:
        """One answer. It ends where the grammar does, or the tokens, or the model's window."""
        ids = self._prompt(inquiry)
        asked = int(ids.shape[1])
        # Beyond its positions a model raises on one machine and talks nonsense on another.
        room = inquiry.limit if self.window is None else min(inquiry.limit, self.window - asked)
        if room <= 0:
            return Refused(TOO_LONG, f"{asked:,} tokens, and the model reads {self.window:,}")
        grammar = self._guidance.LLMatcher.grammar_from_json_schema(
            json.dumps(inquiry.question.schema), defaults={"whitespace_flexible": False}
        )
        matcher = self._guidance.LLMatcher(self._view, grammar)
        warm = inquiry.temperature > 0
        with self._torch.inference_mode():
            made = self._model.generate(
                ids,
                attention_mask=self._torch.ones_like(ids),
                max_new_tokens=room,
                do_sample=warm,
                temperature=inquiry.temperature if warm else None,
                pad_token_id=self._view.eos_token,
                eos_token_id=self._view.eos_token,
                logits_processor=self._transformers.LogitsProcessorList([self._masks(matcher)]),
            )
        new = made[0, asked:].tolist()
        ended = bool(new) and new[-1] == self._view.eos_token
        text = self._tokenizer.decode(new, skip_special_tokens=True)
        return Generation(text, "stop" if ended else "length", asked, len(new))

    def _prompt(self, inquiry: Inquiry) -> Any:
        if self._tokenizer.chat_template is not None:
            text = self._tokenizer.apply_chat_template(messages(inquiry), tokenize=False, add_generation_prompt=True)
        else:
            text = f"{inquiry.question.instructions}\n\n{inquiry.question.shown}\n\nAnswer: "
        return self._tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids

    def _masks(self, matcher: Any) -> Any:
        torch, masks = self._torch, self._guidance.torch
        bits = masks.allocate_token_bitmask(1, self._view.vocab_size)
        begun = False

        def only_allowed(ids: Any, scores: Any) -> Any:
            nonlocal begun
            if begun:
                matcher.consume_token(int(ids[0, -1]))
            begun = True
            masks.fill_next_token_bitmask(matcher, bits, 0)
            # A model's vocabulary may be padded beyond its tokenizer's: nothing there is ever allowed.
            scores[:, self._view.vocab_size :] = -torch.inf
            masks.apply_token_bitmask_inplace(scores[:, : self._view.vocab_size], bits.to(scores.device))
            return scores

        return only_allowed


LABELLER = Kind(LocalModel, "MODEL")
