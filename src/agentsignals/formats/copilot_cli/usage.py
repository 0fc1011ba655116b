"""Tokens of a Copilot CLI session: output is logged with each message, the rest only as totals at shutdown.

The totals of a model with one call are that call's. Of a model with more calls nothing says how they were shared out:
what is not yet counted becomes one closing step with `stop_reason` "session_total", so that the session's sums are
right and no call is given a context size it did not have. A session without shutdown (a crash, one still running) has
no such step, and its input stays unknown. A resumed session shuts down again, with totals that begin at zero.
"""

from __future__ import annotations

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.copilot_cli.records import Metric, Shutdown, Usage
from agentsignals.formats.figures import count
from agentsignals.model import MAIN, Step

TOTAL = "session_total"
_MAIN_AGENT = "main"


class Totals:
    """The steps since the last shutdown, and what the next one says of them."""

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._steps: list[Step] = []

    def add(self, step: Step) -> None:
        self._steps.append(step)

    def close(self, shutdown: Shutdown, at: int | None) -> None:
        """A shutdown: its totals, by agent where it tells them apart."""
        data = shutdown.data
        if data.agentMetrics:
            for agent, metrics in data.agentMetrics.items():
                self._agent(metrics.modelMetrics, MAIN if agent == _MAIN_AGENT else agent, at)
        else:
            self._agent(data.modelMetrics, None, at)
        self._steps.clear()

    def _agent(self, metrics: dict[str, Metric], thread: str | None, at: int | None) -> None:
        for model, metric in metrics.items():
            steps = [s for s in self._steps if s.model == model and (thread is None or s.thread == thread)]
            usage, requests = metric.usage, metric.requests
            if usage is None:
                continue
            counted = sum(step.output_tokens or 0 for step in steps)
            output = count(usage.outputTokens) or 0
            if len(steps) == 1 and requests is not None and requests.count == 1:
                _charge(steps[0], usage, output or None)
            elif usage.inputTokens or not output <= counted:
                threads = {step.thread for step in steps}
                where = thread or (threads.pop() if len(threads) == 1 else MAIN)
                _charge(self._closing(model, where, at), usage, max(output - counted, 0) or None)

    def _closing(self, model: str, thread: str, at: int | None) -> Step:
        step = self._builder.step(None, model, at, thread)
        step.stop_reason = TOTAL
        self._builder.event("meta", f"session totals of {model}", at, step, thread)
        return step


def _charge(step: Step, usage: Usage, output: int | None) -> None:
    """Input of 0 is input not reported: no call goes without."""
    step.output_tokens = output if output is not None else step.output_tokens
    if usage.inputTokens:
        read, written = count(usage.cacheReadTokens) or 0, count(usage.cacheWriteTokens) or 0
        step.input_tokens = max((count(usage.inputTokens) or 0) - read - written, 0)
        step.cache_read_tokens, step.cache_write_tokens = read, written
        step.reasoning_tokens = count(usage.reasoningTokens)
