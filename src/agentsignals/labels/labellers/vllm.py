"""A model under vLLM in this process, for many messages at once on a GPU (extra `vllm`).

Answers are held to the schema by the `guidance` backend with blanks outside strings switched off: xgrammar lets control
characters through in bounded strings, and a model may fill its budget with blanks (design/labels.md#answers-by-schema).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from agentsignals.errors import LabelError
from agentsignals.labels.answers import Inquiry
from agentsignals.labels.in_process import TOO_LONG, Generation, Refused, messages, through
from agentsignals.labels.labellers import Done, Kind
from agentsignals.labels.prompting import Question
from agentsignals.labels.task import Task, Verdict
from agentsignals.model import Absent

BATCH = 256
STRUCTURED = {"backend": "guidance", "disable_any_whitespace": True}


class VllmBatch:
    """`vllm:MODEL`: an id of the Hub, or a local folder."""

    leaves = False
    keeps = True

    def __init__(self, named: str, *, window: int | None = None, **_: Any) -> None:
        self.model: str | None = named
        self.name = f"vllm:{named}"
        self._window = window

    @cached_property
    def _vllm(self) -> Any:
        # Its log goes to stdout unless told otherwise, and there a JSON document may be all that is wanted.
        os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
        try:
            import vllm  # noqa: PLC0415  (seconds and gigabytes, only for who asks for it)
            import vllm.exceptions  # noqa: PLC0415  (the package alone loads neither of them)
            import vllm.sampling_params  # noqa: PLC0415
        except ImportError as problem:
            raise LabelError(
                f"vLLM can't be loaded: {problem}.", 'Install it: pip install "agentsignals[vllm]"; it wants a GPU.'
            ) from problem
        return vllm

    @cached_property
    def _llm(self) -> Any:
        length = {} if self._window is None else {"max_model_len": self._window}
        try:
            return self._vllm.LLM(model=self.model, structured_outputs_config=STRUCTURED, **length)
        except (OSError, ValueError, RuntimeError) as problem:
            raise LabelError(
                f"vLLM can't load {self.model}: {problem}", "Name a model it knows, or a local folder."
            ) from problem

    def version(self, task: Task) -> str:
        return task.prompt_hash

    def window(self) -> int:
        return int(self._window or self._llm.llm_engine.model_config.max_model_len)

    def run_figures(self) -> dict[str, Any]:
        return {"backend": STRUCTURED["backend"]}

    def read(self, question: Question, text: str) -> Verdict | Absent | str:
        return question.read(text)

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        through(questions, BATCH, self._generate, done)

    def _generate(self, batch: Sequence[Inquiry]) -> list[Generation | Refused]:
        """One bad question makes vLLM refuse its whole batch: halves are asked until it stands alone."""
        try:
            return self._asked(batch)
        except (ValueError, self._vllm.exceptions.VLLMClientError) as problem:
            if len(batch) == 1:
                too_long = getattr(problem, "parameter", None) == "input_tokens"
                return [Refused(TOO_LONG if too_long else "refused", str(problem))]
        middle = len(batch) // 2
        return self._generate(batch[:middle]) + self._generate(batch[middle:])

    def _asked(self, batch: Sequence[Inquiry]) -> list[Generation | Refused]:
        sampling = self._vllm.sampling_params
        settings = [
            self._vllm.SamplingParams(
                temperature=inquiry.temperature,
                max_tokens=inquiry.limit,
                structured_outputs=sampling.StructuredOutputsParams(json=inquiry.question.schema),
            )
            for inquiry in batch
        ]
        answers = self._llm.chat([messages(inquiry) for inquiry in batch], settings, use_tqdm=False)
        return [
            Generation(
                answer.outputs[0].text,
                answer.outputs[0].finish_reason,
                len(answer.prompt_token_ids or ()),
                len(answer.outputs[0].token_ids),
            )
            for answer in answers
        ]


LABELLER = Kind(VllmBatch, "MODEL")
