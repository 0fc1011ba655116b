"""What became of lines, as tables and charts: of written lines by mode and repository, of committed ones by age."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from agentsignals.analysis.behind import Closed
from agentsignals.analysis.charts import bars, dots
from agentsignals.analysis.clusters import Part, placed_share
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.grouped import INTERVAL_NOTE, bar, chart, table
from agentsignals.analysis.modes import NAMES, OF_ROAD, ROADS, by_session
from agentsignals.analysis.study import Chart, Row, Table

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
    behind = []
    for road in ROADS:
        mode_of = by_session(modes, road)
        for mode in OF_ROAD[road]:
            group = [row for row in sessions if mode_of.get(row["session_id"]) == mode]
            if group:
                shown.append([f"{NAMES[mode]}, {road}", *_figures(group, places)])
                behind.append(group)
    if sessions:
        shown.insert(0, ["all", *_figures(sessions, places)])
        behind.insert(0, sessions)
    fates = " | ".join(f"{key} {words}:share" for key, words in FATES.items() if key != "committed")
    return table(
        "survival.by_mode",
        "What became of the lines that agents wrote, by mode",
        "mode | n sessions:count | produced lines written:count | efficiency efficiency (Eq 2):share | ends:share"
        f" | rate survival (Eq 3):share | {fates}",
        shown,
        n=len(sessions),
        of="sessions whose calls wrote lines",
        behind=behind,
        note="SWE-chat (v1, modes as recorded, sessions that map cleanly; all, collaborative, vibe): Eq 2 44.3, 38.2,"
        " 59.0%; Eq 3 50.3, 44.1, 64.6%; overwritten by the agent itself 9.3, 10.1, 7.1%; deleted by people 42.2, 46.9,"
        " 30.9%.",
    )


def _figures(rows: list[Row], places: dict[str, str]) -> list[Any]:
    fates = _fates(rows)
    made = fates["produced"]
    efficiency, rate = (
        placed_share([(r["session_id"], min(r["committed"], n), n) for r in rows if (n := whole(r)) > 0], places)
        for whole in (written, left_standing)
    )
    shares = [fates[key] / made if made else None for key in FATES if key != "committed"]
    return [len(rows), int(made), efficiency.value, *efficiency.ends, rate.value, *shares]


def _told_apart(repos: list[str]) -> list[str]:
    """The last parts of addresses or folders, as few as tell all of them apart."""
    parts = [repo.rstrip("/").split("/") for repo in repos]
    most = max(map(len, parts), default=0)
    shown = [["/".join(segments[-n:]) for segments in parts] for n in range(1, most + 1)]
    return next((names for names in shown if len({*names}) == len(names)), repos)


def by_repo(sessions: list[Row], commits: list[Row], lines: list[Row]) -> Table:
    """Each repository: from what was written to what is there today."""
    shown: list[list[Any]] = []
    behind = []
    repos = sorted({row["repo"] for row in [*commits, *lines]})
    for repo, name in zip(repos, _told_apart(repos), strict=True):
        linked = {session_id for row in commits if row["repo"] == repo for session_id in row["session_ids"]}
        behind.append(linked)
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
    header = " | ".join(f"{key} {words}:count" for key, words in FATES.items() if key != "rest")
    return table(
        "survival.by_repository",
        "Lines of agents, by repository",
        f"repo repository:code | sessions:count | produced lines written:count | {header} | commits:count"
        " | strict kept by commit, in its files:share | agent agents' lines in the head's history:count | alive:share"
        " | other other lines:count | other_alive alive of them:share",
        shown,
        n=len(shown),
        of="repositories",
        behind=behind,
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
            estimate = placed_share(living(rows), repos, "commits")
            row += [int(estimate.n), estimate.value, *estimate.ends]
        shown.append(row)
    sides = " | ".join(
        f"{side}_n {words}:count | {side}_alive alive:share | {side}_low 95% from:share | {side}_high to:share"
        for side, words in (("agent", "agents' lines"), ("other", "other lines"))
    )
    return table(
        "survival.by_age",
        "Committed lines that are still there, by age",
        f"age age of the commit | commits:count | {sides}",
        shown,
        n=sum(row["known"] for row in lines),
        of="lines in commits of the head's history",
        behind=Closed("It counts lines of commits: the page Code has them."),
        note="Age is counted back from the newest commit of the repository.",
    )


def fates_chart(sessions: list[Row]) -> Chart | None:
    fates, of_sessions = _fates(sessions), [(row["session_id"], _fates([row])) for row in sessions]
    made = fates.pop("produced")
    rows = [
        bar(
            words,
            fates[key] / made,
            f"{words}: {fates[key]:,.0f} of {made:,.0f} lines",
            behind=[(session_id, of[key], of["produced"]) for session_id, of in of_sessions],
        )
        for key, words in FATES.items()
        if fates[key]
    ]
    title, spec = "What became of the lines that agents wrote", bars(rows, "share of lines", "share")
    return chart("survival.fates", title, rows if made else [], spec, n=made, of="lines")


def age_chart(lines: list[Row], repos: dict[str, str]) -> Chart | None:
    rows: list[Row] = []
    for name, agents, _ in _aged([row for row in lines if row["known"]]):
        estimate = placed_share(living(agents), repos, "commits")
        if estimate.n:
            tip = f"{name}: {formatted(estimate.value, 'share')} of {estimate.n:,.0f} lines"
            rows.append(estimate.mark(f"{name} ({estimate.n:,.0f})", tip))
    return chart(
        "survival.age",
        "Agents' committed lines that are still there, by age of the commit",
        rows,
        dots(rows, "share of lines"),
        n=sum(row["known"] for row in lines if row["is_agents"]),
        of="lines",
        note=f"lines in brackets; {INTERVAL_NOTE}",
        fewest=2,
    )
