"""What becomes of the lines that agents write: on the way to a commit, in the commits, and at the head of the
repository today (SWE-chat, Table 3; Equations 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from agentsignals.questions.estimates import clustered_share, share_of
from agentsignals.questions.question import Finding, Inputs, Outcome, Row, Study
from agentsignals.questions.written_lines import (
    FATES,
    MODES,
    NO_REPLAY,
    age_chart,
    by_age,
    by_mode,
    by_repo,
    fates_chart,
    kept_by_session,
    surviving_lines,
    written,
)


class _Definition(NamedTuple):
    """A definition of survival: which lines are divided by which."""

    key: str
    title: str
    kept: Callable[[Row], float]
    made: Callable[[Row], float]
    note: str


_BY_SESSION = (
    _Definition(
        "efficiency",
        "Lines of agents that reached a commit, of all they wrote (Eq 2)",
        lambda row: row["committed"],
        written,
        "a line counts when any commit has it, however much later; SWE-chat: 44.3% (v1; its abstract calls this"
        " survival), 59% (abstract of v2)",
    ),
    _Definition(
        "rate",
        "Lines of agents that reached a commit, of those not overwritten by the same session (Eq 3)",
        lambda row: row["committed"],
        kept_by_session,
        "SWE-chat: 50.3% (v1)",
    ),
)
_BY_COMMIT = (
    _Definition(
        "strict",
        "The same by commit, in the files it changed (Eq 2)",
        lambda row: row["kept"],
        lambda row: row["written_in_files"],
        "of what was written since the linked commit before",
    ),
    _Definition(
        "strict.rate",
        "The same by commit, in the files it changed (Eq 3)",
        lambda row: row["kept"],
        lambda row: row["written_in_files"] - row["rewritten_in_files"],
        "of what was written since the linked commit before",
    ),
    _Definition(
        "window",
        "The same by commit, in all files (Eq 2)",
        lambda row: row["kept"],
        lambda row: row["written"],
        "of what was written since the linked commit before: what is committed later counts as lost",
    ),
    _Definition(
        "window.rate",
        "The same by commit, in all files (Eq 3)",
        lambda row: row["kept"],
        lambda row: row["written"] - row["rewritten"],
        "of what was written since the linked commit before: what is committed later counts as lost",
    ),
)


def _outcome(inputs: Inputs) -> Outcome:
    sessions, commits, lines = inputs.rows["fates"], inputs.rows["commits"], inputs.rows["lines"]
    if not (sessions or commits):
        return Outcome(limits=[NO_REPLAY])
    places = inputs.places
    repos = {row["commit_sha"]: row["repo"] for row in [*commits, *lines]}
    agents = [row for row in lines if row["is_agents"]]
    others = [row for row in lines if not row["is_agents"]]
    met = share_of(inputs.rows["met"], places, lambda row: row["n"] > 0).finding(
        "survival.met",
        "Sessions that replaced lines of an earlier session, or wrote beside them",
        "sessions whose calls wrote lines",
        "lines followed through every commit of a working tree",
        unit="share of sessions",
    )
    findings = [
        *(_finding(definition, [(r["session_id"], r) for r in sessions], places) for definition in _BY_SESSION),
        *(_finding(definition, [(r["commit_sha"], r) for r in commits], repos) for definition in _BY_COMMIT),
        _alive("alive", "Lines of agents in commits that are still there today", agents, repos),
        _alive("alive.others", "Other lines in those commits that are still there today", others, repos),
        met,
    ]
    return Outcome(
        [f for f in findings if f.n],
        [by_mode(sessions, inputs.rows["modes"], places), by_repo(sessions, commits, lines), by_age(lines, repos)],
        [fates_chart(sessions), age_chart(lines, repos)],
        [
            "Survival goes by several definitions that differ by more than what they measure; each figure names its"
            " own. A line that came back after it was overwritten counts as both.",
            "What is alive is what git blame still finds under the commit's name: a line that was only indented anew is"
            " not. Commits that the head does not descend from are left out.",
        ],
    )


def _finding(definition: _Definition, rows: list[tuple[str, Row]], places: dict[str, str]) -> Finding:
    """A share of lines. Lines of a commit that come back from before may make more than were written."""
    drawn_anew = "sessions" if definition in _BY_SESSION else "commits"
    parts = [
        (key, min(definition.kept(row), definition.made(row)), definition.made(row))
        for key, row in rows
        if definition.made(row) > 0
    ]
    note = f"{definition.note}; over {len(parts):,} {drawn_anew}"
    estimate = clustered_share(parts, places, drawn_anew)
    return estimate.finding(f"survival.{definition.key}", definition.title, "lines", note)


def _alive(name: str, title: str, rows: list[Row], repos: dict[str, str]) -> Finding:
    parts = surviving_lines(rows)
    of, note = "lines in commits of the head's history", f"in {len(parts):,} commits, by git blame at the head"
    estimate = clustered_share(parts, repos, "commits")
    return estimate.finding(f"survival.{name}", title, of, note, unit="share of lines")


def _detail(*names: str) -> str:
    return ", ".join(f"CAST(coalesce(detail->>'{name}', '0') AS DOUBLE) AS {name}" for name in names)


STUDY = Study(
    name="survival",
    order=210,
    title="Survival of code",
    question="What becomes of the lines that agents write?",
    queries={
        "modes": MODES,
        "fates": f"SELECT session_id, {_detail('produced', *(key for key in FATES if key != 'rest'))} FROM labels"
        " JOIN sessions USING (session_id) WHERE task = 'code_survival' AND labeller = 'attribution'"
        " ORDER BY session_id",
        "commits": "SELECT repo, commit_sha, session_ids, written, rewritten, written_in_files, rewritten_in_files,"
        " kept FROM commits WHERE written IS NOT NULL ORDER BY repo, commit_sha",
        "lines": "SELECT repo, commit_sha, starts_with(tag, 'agent_') AS is_agents, epoch(any_value(committed_at)) AS"
        " committed, epoch(any_value(newest)) AS newest, CAST(count(alive) AS BIGINT) AS known, CAST(count(*) FILTER"
        " (alive) AS BIGINT) AS alive FROM line_attribution JOIN (SELECT repo, commit_sha, committed_at,"
        " max(committed_at) OVER (PARTITION BY repo) AS newest FROM commits) USING (repo, commit_sha)"
        " GROUP BY repo, commit_sha, is_agents ORDER BY repo, commit_sha, is_agents",
        "met": "SELECT session_id, number AS n FROM labels JOIN sessions USING (session_id)"
        " WHERE task = 'earlier_on_same_lines' AND labeller = 'attribution' ORDER BY session_id",
    },
    function=_outcome,
    context="product",
)
