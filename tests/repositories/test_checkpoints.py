"""Which commit a checkpoint was taken for, and why another has none."""

from __future__ import annotations

from agentsignals.changes.git import Commit
from agentsignals.repositories.working_trees import Recorded, links, unlinked

A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"


def commit(sha: str, at: int, *ids: str, subject: str = "", parents: int = 1, authored: int | None = None) -> Commit:
    when = at * 1_000_000
    return Commit(
        sha=sha,
        parents=("p",) * parents,
        authored_at=when if authored is None else authored * 1_000_000,
        committed_at=when,
        author="me",
        subject=subject or sha,
        checkpoint_ids=ids,
    )


def taken(checkpoint_id: str, at: int, branch: str | None = "main") -> Recorded:
    return Recorded(checkpoint_id, "s", at * 1_000_000, branch, None)


def relations(commits: list[Commit], *rows: Recorded) -> dict[tuple[str, str], str]:
    return {(link.checkpoint_id, link.sha): link.relation for link in links(commits, rows)}


def test_the_commit_of_that_moment_is_the_original() -> None:
    assert relations([commit("c1", 1_000, A)], taken(A, 1_060)) == {(A, "c1"): "original"}


def test_two_minutes_later_it_is_a_rewritten_one() -> None:
    assert relations([commit("c1", 1_000, A)], taken(A, 1_121)) == {(A, "c1"): "rewritten"}


def test_of_several_the_nearest_in_time_is_the_one_and_the_same_change_again_a_copy() -> None:
    same = {"subject": "fix", "authored": 900}
    found = relations([commit("c1", 5_000, A, **same), commit("c2", 1_001, A, **same)], taken(A, 1_000))  # type: ignore[arg-type]
    assert found == {(A, "c2"): "original", (A, "c1"): "copy"}


def test_another_change_under_the_same_name_is_a_further_one() -> None:
    found = relations([commit("c1", 1_000, A), commit("c2", 1_030, A)], taken(A, 1_000))
    assert found == {(A, "c1"): "original", (A, "c2"): "further"}


def test_a_squash_stands_for_all_it_joins() -> None:
    assert set(relations([commit("c1", 1_000, A, B)], taken(A, 1_000), taken(B, 1_000))) == {(A, "c1"), (B, "c1")}


def test_merges_are_nobodys_commit() -> None:
    assert relations([commit("m", 1_000, A, parents=2)], taken(A, 1_000)) == {}


def test_every_checkpoint_without_a_commit_has_a_reason() -> None:
    commits = [commit("m", 1_000, A, parents=2), commit("c", 5_000)]
    rows = [taken(A, 1_000), taken(B, 5_060), taken("c" * 12, 9_000, "gone"), taken("d" * 12, 9_000)]
    reasons = unlinked(commits, rows, links(commits, rows), {"main"})
    assert reasons == {
        A: "named_by_merges_only",
        B: "commit_without_trailer",
        "c" * 12: "branch_not_in_clone",
        "d" * 12: "commit_not_in_history",
    }
    assert len(reasons) == 4
