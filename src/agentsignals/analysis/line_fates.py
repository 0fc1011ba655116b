"""What became of lines, as tables and charts: of written lines by mode and repository, of committed ones by age."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from agentsignals.analysis.charts import bars, dots
from agentsignals.analysis.clusters import Estimate, Part
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.modes import NAMES, OF_ROAD, ROADS, by_session
from agentsignals.analysis.study import Chart, Column, Row, Table

ENOUGH_LINES = 5
"""Commits whose sessions wrote fewer lines are left out of figures over commits (design/attribution.md#survival)."""
FATES = {
    "committed": "in a commit",
    "overwritten_by_self": "overwritten by the same session",
    "overwritten_by_other_session": "overwritten by another session",
    "taken": "taken away by others before the commit",
    "standing": "in no commit yet",
    "rest": "not known",
}
_WEEK_S = 7 * 86_400
_AGES = (1, 2, 4, 8, 16, 32)
"""Upper ends of classes of age, in weeks; the last class is open."""


def living(rows: Iterable[Row]) -> list[Part]:
    """Of each commit whose lines can be looked for: how many are still there, of how many."""
    return [(row["commit_sha"], row["alive"], row["known"]) for row in rows if row["known"]]


def written(row: Row) -> float:
    """The lines that the calls of a session wrote (Eq 2)."""
    made: float = row["produced"]
    return made


def left_standing(row: Row) -> float:
    """Of those, the ones that the session did not overwrite itself (Eq 3)."""
    return written(row) - float(row["overwritten_by_self"])


def _fates(rows: Iterable[Row]) -> dict[str, float]:
    """Lines by what became of them."""
    counted = dict.fromkeys(FATES, 0.0)
    made = 0.0
    for row in rows:
        made += row["produced"]
        for fate in FATES:
            counted[fate] += row.get(fate) or 0
    counted["rest"] = max(made - sum(counted.values()), 0)
    return {"produced": made, **counted}


def by_mode(sessions: list[Row], modes: list[Row], places: dict[str, str]) -> Table:
    """The paper's Table 3, by modes of both roads."""
    shown: list[list[Any]] = []
    for road in ROADS:
        mode_of = by_session(modes, road)
        for mode in OF_ROAD[road]:
            group = [row for row in sessions if mode_of.get(row["session_id"]) == mode]
            shown += [[f"{NAMES[mode]}, {road}", *_figures(group, places)]] if group else []
    if sessions:
        shown.insert(0, ["all", *_figures(sessions, places)])
    return Table(
        id="survival.by_mode",
        title="What became of the lines that agents wrote, by mode",
        columns=(
            Column("mode", "mode"),
            Column("n", "sessions", "count"),
            Column("produced", "lines written", "count"),
            Column("efficiency", "efficiency (Eq 2)", "share"),
            Column("low", "95% from", "share"),
            Column("high", "to", "share"),
            Column("rate", "survival (Eq 3)", "share"),
            *(Column(key, words, "share") for key, words in FATES.items() if key != "committed"),
        ),
        rows=shown,
        n=len(sessions),
        of="sessions whose calls wrote lines",
        note="SWE-chat (v1, modes as recorded, sessions that map cleanly; all, collaborative, vibe): Eq 2 44.3, 38.2,"
        " 59.0%; Eq 3 50.3, 44.1, 64.6%; overwritten by the agent itself 9.3, 10.1, 7.1%; deleted by people 42.2, 46.9,"
        " 30.9%.",
    )


def _figures(rows: list[Row], places: dict[str, str]) -> list[Any]:
    fates = _fates(rows)
    made = fates["produced"]
    efficiency, rate = (
        Estimate([(r["session_id"], min(r["committed"], n), n) for r in rows if (n := whole(r)) > 0], places)
        for whole in (written, left_standing)
    )
    shares = [fates[key] / made if made else None for key in FATES if key != "committed"]
    return [len(rows), int(made), efficiency.value, *(efficiency.interval or (None, None)), rate.value, *shares]


def _told_apart(repos: list[str]) -> list[str]:
    """The last parts of addresses or folders, as few as tell all of them apart."""
    parts = [repo.rstrip("/").split("/") for repo in repos]
    most = max(map(len, parts), default=0)
    shown = [["/".join(segments[-n:]) for segments in parts] for n in range(1, most + 1)]
    return next((names for names in shown if len({*names}) == len(names)), repos)


def by_repo(sessions: list[Row], commits: list[Row], lines: list[Row]) -> Table:
    """Each repository: from what was written to what is there today."""
    shown: list[list[Any]] = []
    repos = sorted({row["repo"] for row in [*commits, *lines]})
    for repo, name in zip(repos, _told_apart(repos), strict=True):
        linked = {session_id for row in commits if row["repo"] == repo for session_id in row["session_ids"]}
        fates = _fates(row for row in sessions if row["session_id"] in linked)
        repo_lines = [row for row in lines if row["repo"] == repo]
        by_author = {who: living(row for row in repo_lines if row["is_agents"] == who) for who in (True, False)}
        alive = [(sum(k for _, k, _ in rows), sum(n for _, _, n in rows)) for rows in by_author.values()]
        slices = [row for row in commits if row["repo"] == repo and row["written_in_files"] >= ENOUGH_LINES]
        made = sum(row["written_in_files"] for row in slices)
        kept = sum(row["kept"] for row in slices)
        shown.append(
            [
                *(name, len(linked), int(fates["produced"])),
                *(int(fates[key]) for key in FATES if key != "rest"),
                *(len(slices), min(kept / made, 1.0) if made else None),
                *(figure for k, n in alive for figure in (int(n), k / n if n else None)),
            ]
        )
    return Table(
        id="survival.by_repository",
        title="Lines of agents, by repository",
        columns=(
            Column("repo", "repository", "code"),
            Column("sessions", "sessions", "count"),
            Column("produced", "lines written", "count"),
            *(Column(key, words, "count") for key, words in FATES.items() if key != "rest"),
            Column("commits", "commits", "count"),
            Column("strict", "kept by commit, in its files", "share"),
            Column("agent", "agents' lines in the head's history", "count"),
            Column("alive", "alive", "share"),
            Column("other", "other lines", "count"),
            Column("other_alive", "alive of them", "share"),
        ),
        rows=shown,
        n=len(shown),
        of="repositories",
        note="Sessions are those that its commits are linked to.",
    )


def _aged(lines: list[Row]) -> list[tuple[str, list[Row], list[Row]]]:
    """Agents' and other lines by the age of their commit, counted back from the newest of its repository."""
    newest: dict[str, float] = defaultdict(float)
    for row in lines:
        newest[row["repo"]] = max(newest[row["repo"]], row["newest"])
    classes: dict[int, list[Row]] = defaultdict(list)
    for row in lines:
        weeks = (newest[row["repo"]] - row["committed"]) / _WEEK_S
        classes[sum(weeks > end for end in _AGES)].append(row)
    aged = []
    for n, rows in sorted(classes.items()):
        begin = 0 if n == 0 else _AGES[n - 1]
        name = f"over {begin} weeks" if n == len(_AGES) else f"{begin} to {_AGES[n]} weeks"
        aged.append((name, [r for r in rows if r["is_agents"]], [r for r in rows if not r["is_agents"]]))
    return aged


def by_age(lines: list[Row], repos: dict[str, str]) -> Table:
    shown: list[list[Any]] = []
    for name, agents, others in _aged([row for row in lines if row["known"]]):
        row: list[Any] = [name, len({r["commit_sha"] for r in [*agents, *others]})]
        for rows in (agents, others):
            estimate = Estimate(living(rows), repos, "commits")
            row += [int(estimate.n), estimate.value, *(estimate.interval or (None, None))]
        shown.append(row)
    sides = (("agent", "agents' lines"), ("other", "other lines"))
    return Table(
        id="survival.by_age",
        title="Committed lines that are still there, by age",
        columns=(
            Column("age", "age of the commit"),
            Column("commits", "commits", "count"),
            *(
                column
                for side, words in sides
                for column in (
                    Column(f"{side}_n", words, "count"),
                    Column(f"{side}_alive", "alive", "share"),
                    Column(f"{side}_low", "95% from", "share"),
                    Column(f"{side}_high", "to", "share"),
                )
            ),
        ),
        rows=shown,
        n=sum(row["known"] for row in lines),
        of="lines in commits of the head's history",
        note="Age is counted back from the newest commit of the repository.",
    )


def fates_chart(sessions: list[Row]) -> Chart | None:
    fates = _fates(sessions)
    made = fates.pop("produced")
    if not made:
        return None
    rows: list[Row] = [
        {"name": words, "value": fates[key] / made, "tip": f"{words}: {fates[key]:,.0f} of {made:,.0f} lines"}
        for key, words in FATES.items()
        if fates[key]
    ]
    return Chart(
        id="survival.fates",
        title="What became of the lines that agents wrote",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "share of lines", "share"),
        n=int(made),
        of="lines",
    )


def age_chart(lines: list[Row], repos: dict[str, str]) -> Chart | None:
    rows: list[Row] = []
    for name, agents, _ in _aged([row for row in lines if row["known"]]):
        estimate = Estimate(living(agents), repos, "commits")
        if estimate.value is None:
            continue
        low, high = estimate.interval or (None, None)
        tip = f"{name}: {formatted(estimate.value, 'share')} of {estimate.n:,.0f} lines"
        rows.append(
            {"name": f"{name} ({estimate.n:,.0f})", "value": estimate.value, "low": low, "high": high, "tip": tip}
        )
    if len(rows) < 2:
        return None
    return Chart(
        id="survival.age",
        title="Agents' committed lines that are still there, by age of the commit",
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, "share of lines"),
        n=sum(row["known"] for row in lines if row["is_agents"]),
        of="lines",
        note="lines in brackets; the line is the 95% interval",
    )
