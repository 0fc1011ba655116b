"""The pool of episodes: what is over comes out at once, first attempts are shared, a fault loses nothing done."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from agentsignals.errors import LabError

from agentsignals_lab import coding_tasks, retry_loop
from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.residual import Generation, Message, Sampling
from agentsignals_lab.retry_loop import AttemptRow, Episode, Plan, Work, episodes
from agentsignals_lab.retry_runs import run_loop
from agentsignals_lab.texts import Wording
from tests.test_retry import Scripted
from tests.test_trace import opened

TASK = coding_tasks.task("parse_duration")
PLAN = Plan(wording=Wording(), attempts=2)
SAME = Condition(name="same words")
CALM = Condition(name="calm words", tone="calm")


def key(done: Episode) -> tuple[str, int]:
    return done.episode.condition, done.episode.sample


class Crowd:
    """Answers nothing that is code, several calls at a time; the call of some seed waits to be let go or fails."""

    name = "crowd"

    def __init__(self, concurrency: int = 4, fault: BaseException | None = None) -> None:
        self.concurrency, self.fault = concurrency, fault
        self.go_on = threading.Event()
        self.seeds: list[int] = []
        self.most = 0
        self._inside = 0

    def answer(self, chat: Sequence[Message], sampling: Sampling) -> Generation:
        self.seeds.append(sampling.seed)
        self._inside += 1
        self.most = max(self.most, self._inside)
        if len(self.seeds) == 1 or sampling.seed == self.seeds[0]:
            self.go_on.wait(20)
            if self.fault is not None:
                raise self.fault
        self._inside -= 1
        return Generation(text="nothing", tokens=(1,), finish="stop", prompt_tokens=5)


def test_what_is_over_comes_out_while_another_answer_hangs() -> None:
    crowd, done = Crowd(), []
    for episode in episodes(crowd, PLAN, [Work(BASELINE, TASK, sample) for sample in range(6)]):
        done.append(key(episode))
        if len(done) == 5:
            assert ("baseline", 0) not in done, "the slow one holds nobody up"
            crowd.go_on.set()
    assert sorted(done) == [("baseline", sample) for sample in range(6)]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_so_many_calls_are_in_flight(concurrency: int) -> None:
    crowd = Crowd(concurrency)
    crowd.go_on.set()
    list(episodes(crowd, PLAN, [Work(BASELINE, TASK, sample) for sample in range(6)]))
    assert crowd.most <= concurrency
    assert len(crowd.seeds) == 12


def test_a_fault_ends_the_pool_after_what_was_answered_is_over() -> None:
    """With two calls in flight, of which one hangs, all the others of the work are answered before it fails."""
    crowd, done = Crowd(2, LabError("the server is gone", "")), []
    plan = Plan(wording=Wording(), attempts=1)

    def go_on() -> None:
        crowd.go_on.set()

    with pytest.raises(LabError, match="the server is gone"):
        for episode in episodes(crowd, plan, [Work(BASELINE, TASK, sample) for sample in range(4)]):
            done.append(key(episode))
            if len(done) == 1:
                threading.Timer(0.3, go_on).start()
    assert 1 <= len(done) <= 3
    assert ("baseline", 0) not in done


def test_after_a_fault_an_answer_under_way_is_awaited_for_a_while_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two calls one is refused at once; the other comes late, or never."""

    class Refusing(Crowd):
        def answer(self, chat: Sequence[Message], sampling: Sampling) -> Generation:
            if self.seeds:
                threading.Timer(0.1, self.go_on.set).start() if self.late else None
                raise LabError("refused", "")
            return super().answer(chat, sampling)

        late = True

    plan = Plan(wording=Wording(), attempts=1)
    for late, grace, kept in ((True, 10.0, 1), (False, 0.05, 0)):
        monkeypatch.setattr(retry_loop, "GRACE_S", grace)
        crowd, done = Refusing(2), []
        crowd.late = late
        with pytest.raises(LabError, match="refused"):
            for episode in episodes(crowd, plan, [Work(BASELINE, TASK, sample) for sample in range(4)]):
                done.append(key(episode))
        assert len(done) == kept
        crowd.go_on.set()


def test_conditions_that_do_nothing_before_feedback_share_their_first_attempt() -> None:
    writer = Scripted("nothing", "nothing")
    done = list(episodes(writer, PLAN, [Work(c, TASK, s) for s in range(2) for c in (BASELINE, SAME, CALM)]))
    assert len(done) == 6
    firsts = [chat for chat in writer.told if not any(m.speaker == "assistant" for m in chat)]
    assert len(firsts) == 4, "of two samples, in two tones"
    assert len(writer.told) - len(firsts) == 6, "second attempts are each condition's own"
    by_key = {key(d): d.attempts[0] for d in done}
    assert by_key["baseline", 1].seed == by_key["same words", 1].seed


def test_steering_before_feedback_shares_nothing() -> None:
    at_feedback = Condition(name="f", direction="d", dose=1.0, layers=(1,), where="feedback")
    at_all = Condition(name="a", direction="d", dose=1.0, layers=(1,), where="all")
    assert [c.acts_before_feedback for c in (BASELINE, CALM, at_feedback, at_all)] == [False, False, False, True]


def test_a_first_attempt_of_an_earlier_call_is_not_written_again(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        run_loop(run, Scripted("as it was", "nothing"), PLAN, [BASELINE], [TASK], 1)
        later = Scripted("as it is now", "nothing")
        run_loop(run, later, PLAN, [BASELINE, SAME], [TASK], 1)
        assert len(later.told) == 1
        rows = run.table("attempts", AttemptRow).rows
    assert [row.answer for row in rows if row.attempt == 0] == ["as it was", "as it was"]


@pytest.mark.parametrize(("backlog", "most"), [(0, 2), (100, 8)])
def test_answers_that_await_their_verdicts_hold_back_new_episodes(
    backlog: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first verdict waits until all are asked that are going to be."""
    judged, asked_enough = retry_loop.evaluate, threading.Event()
    begun: list[int] = []

    class Counting(Scripted):
        def answer(self, chat: Sequence[Message], sampling: Sampling) -> Generation:
            found = super().answer(chat, sampling)
            if len(self.told) == most:
                asked_enough.set()
            return found

    writer = Counting("nothing")

    def late(*of: object) -> object:
        asked_enough.wait(20)
        begun.append(len(writer.told))
        return judged(*of)  # type: ignore[arg-type]

    monkeypatch.setattr(retry_loop, "BACKLOG", backlog)
    monkeypatch.setattr(retry_loop, "evaluate", late)
    plan = Plan(wording=Wording(), attempts=1, evaluating=1)
    if backlog == 0:
        asked_enough.set()
    assert len(list(episodes(writer, plan, [Work(BASELINE, TASK, s) for s in range(8)]))) == 8
    assert (begun[0] == most) if backlog else (begun[0] <= most), begun


def test_verdicts_run_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two meet in a barrier, which with one at a time would break."""
    judged = retry_loop.evaluate
    meeting = threading.Barrier(2)

    def slowly(*of: object) -> object:
        meeting.wait(20)
        return judged(*of)  # type: ignore[arg-type]

    monkeypatch.setattr(retry_loop, "evaluate", slowly)
    plan = Plan(wording=Wording(), attempts=1, evaluating=2)
    work = [Work(BASELINE, TASK, sample) for sample in range(4)]
    assert len(list(episodes(Scripted("nothing"), plan, work))) == 4
