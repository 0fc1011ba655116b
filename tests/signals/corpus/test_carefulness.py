"""corpus.read_before_edit_rate and corpus.error_recovery_rate."""

from __future__ import annotations

import pytest

from agentsignals.signals.corpus.metrics import COMMANDS_LOOKED_AT
from tests.build import Part, call, event, user, view
from tests.signals.ask import absent, detail, lines, value

CARE = "corpus.read_before_edit_rate"
RECOVERY = "corpus.error_recovery_rate"

READ = call("Read", path="a.py")
EDIT = call("Edit", path="a.py")
CREATE = call("Write", path="new.py", creates=True)
BLOCKED = call("Edit", path="a.py", status="error", result="File has not been read yet. Read it first.")


def bash(command: str, ok: bool = True) -> Part:
    return call("Bash", command=command, status="ok" if ok else "error", result="ok" if ok else "Exit code 1")


@pytest.mark.parametrize(
    ("parts", "num", "den"),
    [
        ([READ, EDIT], 1, 1),
        ([EDIT], 0, 1),
        ([READ, EDIT, EDIT], 2, 2),
        ([EDIT, EDIT], 1, 2),
        ([bash("cat a.py"), EDIT], 1, 1),
        ([bash("cat b.py a.py"), EDIT], 1, 1),
        ([bash("cat b.py c.py"), EDIT], 0, 1),
        ([bash("sed -i s/x/y/ a.py"), EDIT], 1, 1),
        ([CREATE, call("Edit", path="new.py"), EDIT], 1, 2),
        ([call("Grep", path="a.py"), EDIT], 0, 1),
        ([call("Read", path="a.py", thread="agent-1"), EDIT], 0, 1),
        ([BLOCKED, READ, EDIT], 1, 2),
        ([call("Edit", path="a.py", status="rejected"), READ, EDIT], 1, 1),
        ([call("Write", path="a.py", status="error", result="File has not been read yet"), EDIT], 0, 2),
        ([call("Write", path="new.py", status="error", result="EACCES: permission denied"), READ, EDIT], 1, 1),
        ([call("Edit", path="gone.py", status="error", result="File does not exist."), READ, EDIT], 1, 1),
    ],
)
def test_an_edit_is_careful_when_the_agent_knew_the_file(parts: list[Part], num: int, den: int) -> None:
    found = detail(view(user("go"), *parts), CARE)
    assert (found["num"], found["den"]) == (num, den)


def test_careful_and_blind_edits_are_both_shown() -> None:
    one = view(user("go"), READ, EDIT, call("Edit", path="b.py"), BLOCKED)
    assert value(one, CARE) == pytest.approx(2 / 3)
    assert detail(one, CARE)["blocked"] == 1
    assert (lines(one, CARE), lines(one, CARE, "counter")) == ([3, 5], [4])


def test_what_was_read_before_a_compaction_still_counts_and_is_told() -> None:
    one = view(user("go"), READ, event("compaction", "{}"), EDIT, EDIT)
    assert value(one, CARE) == 1.0
    assert detail(one, CARE)["lost_by_compaction"] == 1


@pytest.mark.parametrize("parts", [[READ], [CREATE], [call("Edit", path="a.py", status="rejected")]])
def test_without_an_attempt_on_an_existing_file_the_rate_does_not_apply(parts: list[Part]) -> None:
    assert absent(view(user("go"), *parts), CARE) == ("not_applicable", "no_edit")


FAILED = call("Edit", path="a.py", status="error", result="String to replace not found")


@pytest.mark.parametrize(
    ("parts", "num", "den", "episodes"),
    [
        ([FAILED, EDIT], 1, 1, 1),
        ([FAILED, READ, READ, READ, READ, EDIT], 1, 1, 1),
        ([FAILED, READ, READ, READ, READ, READ, EDIT], 0, 1, 1),
        ([FAILED, call("Edit", path="b.py")], 0, 1, 1),
        ([FAILED, call("Write", path="a.py")], 0, 1, 1),
        ([FAILED, user("try again"), EDIT], 0, 1, 1),
        ([FAILED, FAILED, EDIT], 2, 2, 1),
        ([FAILED, bash("ls x", ok=False), FAILED, EDIT], 2, 3, 3),
        ([bash("npm test", ok=False), bash("npm run lint")], 1, 1, 1),
        ([bash("cd web && npm test", ok=False), bash("CI=1 npm test")], 1, 1, 1),
        ([bash("npm test", ok=False), bash("git status")], 0, 1, 1),
        ([call("Read", path="a.py", status="error", result="Sibling tool call errored"), FAILED, EDIT], 1, 1, 1),
        ([call("Edit", path="a.py", status="rejected"), FAILED, EDIT], 1, 1, 1),
    ],
)
def test_an_error_is_made_good_by_the_same_tool_on_the_same_target_soon(
    parts: list[Part], num: int, den: int, episodes: int
) -> None:
    found = detail(view(user("go"), *parts), RECOVERY)
    assert (found["num"], found["den"], found["episodes"]) == (num, den, episodes)


def test_recovered_errors_are_the_evidence_out_of_all_errors() -> None:
    one = view(user("go"), FAILED, EDIT, bash("make", ok=False))
    assert value(one, RECOVERY) == 0.5
    assert (lines(one, RECOVERY), lines(one, RECOVERY, "denominator")) == ([2], [2, 4])


def test_without_errors_recovery_does_not_apply() -> None:
    assert absent(view(user("go"), READ), RECOVERY) == ("not_applicable", "no_errors")


@pytest.mark.parametrize(("later", "num"), [(COMMANDS_LOOKED_AT - 1, 1), (COMMANDS_LOOKED_AT, 0)])
def test_a_command_that_read_several_files_is_remembered_for_so_many_more(later: int, num: int) -> None:
    session = view(user("go"), bash("cat b.py a.py"), *[bash("cat c.py d.py")] * later, EDIT)
    assert detail(session, CARE)["num"] == num
