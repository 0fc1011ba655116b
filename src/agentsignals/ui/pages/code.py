"""Code that came of sessions: commits with whose lines they added, what is still there, what scanners found, and places
that were changed again and again. What nobody can be told of stands beside every figure."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from agentsignals.ui.page import NotFound, Page, Query, Route, Where, part_of, sql
from agentsignals.ui.snapshot import Snapshot

SIZE = 40
MOST_FINDINGS, MOST_PLACES, MOST_FILES = 100, 40, 300
REGION_LINES = 20
"""Lines that count as one place of a file (this project's choice: a screen shows two of them)."""
FEWEST_TOUCHES = 3
"""Changes from which a place is one that was changed again and again."""


class Owner(NamedTuple):
    """Whose lines: its name, and the columns of `commits` (and tags of `line_attribution`) that are his."""

    key: str
    name: str
    tags: tuple[str, ...]


OWNERS = (
    Owner("agent", "an agent’s", ("agent_exact", "agent_ws", "agent_other_session")),
    Owner("shell", "left by an agent’s command", ("agent_shell",)),
    Owner("human", "a person’s, as seen", ("human_observed",)),
    Owner("unknown", "unknown", ("unknown",)),
    Owner("nobody", "moved, generated or older", ("preexisting", "moved", "generated")),
)
_LINES = {owner.key: " + ".join(f"coalesce({tag}, 0)" for tag in owner.tags) for owner in OWNERS}
_SUMS = ", ".join(f"CAST(coalesce(sum({lines}), 0) AS BIGINT) AS {key}" for key, lines in _LINES.items())
_COLUMNS = ", ".join(f"({lines}) AS {key}" for key, lines in _LINES.items())
_OF_TAG = (
    f"CASE {' '.join(f'''WHEN tag IN ({', '.join(map(repr, owner.tags))}) THEN '{owner.key}' ''' for owner in OWNERS)}"
    " ELSE 'unknown' END"
)


def page(snapshot: Snapshot, query: Query) -> Page:
    """The code of all repositories, or of one (`repo`)."""
    repos = snapshot.kept("code:repos", lambda: snapshot.rows(sql("code.repositories", sums=_SUMS)))
    repo = query.choice("repo", [row["repo"] for row in repos])
    shown = [row for row in repos if not repo or row["repo"] == repo]
    context = query.choice("context", ("product", "eval"), snapshot.main_context)
    where = Where()
    where.choose("repo = $repo", repo=repo)
    where.choose("mode = $mode", mode=query.text("mode"))
    where.add("relation IS NOT NULL")
    total = snapshot.rows(sql("code.count", where=where.text()), where.values)[0]["n"]
    part = part_of(query, SIZE, total)
    newest = f"{where.text()} ORDER BY committed_at DESC, commit_sha LIMIT $size OFFSET $start"
    asked = sql("code.commits", lines=_COLUMNS, where=newest)
    # Stretches of files that many calls changed; a line's number is the one it had right after the call.
    places = sql("code.places", region_lines=REGION_LINES, in_repository=sql("code.in_repository") if repo else "")
    bounds = {"fewest": FEWEST_TOUCHES, "most": MOST_PLACES} | ({"repo": repo} if repo else {})
    # Lines by owner: how many of those whose fate is known are still there.
    of_owners = snapshot.kept("code:alive", lambda: snapshot.rows(sql("code.alive", owner=_OF_TAG)))
    alive = []
    for owner in OWNERS:
        of = [row for row in of_owners if row["owner"] == owner.key and (not repo or row["repo"] == repo)]
        if known := sum(row["known"] for row in of):
            alive.append({"owner": owner, "known": known, "alive": sum(row["alive"] for row in of)})
    filled = {
        "repos": repos,
        "shown": shown,
        "whole": {key: sum(row[key] for row in shown) for key in _SUMMED},
        "repo": repo,
        "owners": OWNERS,
        "commits": snapshot.rows(asked, {**where.values, "size": SIZE, "start": part.start}),
        "part": part,
        "alive": alive,
        "modes": [row["mode"] for row in snapshot.rows(sql("code.modes"))],
        "mode": query.text("mode"),
        "findings": _weaknesses(snapshot, repo),
        "places": snapshot.rows(places, bounds, context if snapshot.contexts - {context} else ""),
        "context": context,
        "others": sorted(snapshot.contexts - {context}),
        "region_lines": REGION_LINES,
        "most_findings": MOST_FINDINGS,
    }
    return Page("code.html.j2", "Code", filled)


_SUMMED = ("commits", "attributed", "added", "written", "kept", "written_in_files", *(owner.key for owner in OWNERS))


def _weaknesses(snapshot: Snapshot, repo: str) -> dict[str, Any]:
    where = Where()
    where.choose("repo = $repo", repo=repo)
    scans = snapshot.rows(sql("code.scans", where=where.text()), where.values)
    where.add("change IN ('introduced', 'present')")
    counted = snapshot.rows(sql("code.rules", where=where.text()), where.values)
    rows = snapshot.rows(sql("code.worst_weaknesses", where=where.text()), {**where.values, "most": MOST_FINDINGS})
    total = sum(row["n"] for row in counted)
    unknown = sum(row["n"] for row in counted if row["owner"] in (None, "unknown"))
    by_rule: Counter[str] = Counter()
    for row in counted:
        by_rule[row["rule"]] += row["n"]
    rules = sorted(by_rule.items(), key=lambda item: (-item[1], item[0]))
    return {"scans": scans, "rows": rows, "total": total, "unknown": unknown, "rules": rules}


def commit(snapshot: Snapshot, query: Query, repo: str, sha: str) -> Page:
    """One commit: its files, and who wrote their lines in which call."""
    matching = snapshot.rows(
        sql("code.commits", lines=_COLUMNS, where="WHERE repo = $repo AND commit_sha = $sha"),
        {"repo": repo, "sha": sha},
    )
    if not matching:
        raise NotFound(f"The store has no commit {sha[:60]!r} of {repo[:120]!r}.", "The Code page lists all commits.")
    rows = snapshot.rows(sql("commit.lines", owner=_OF_TAG), {"repo": repo, "sha": sha})
    files: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        files.setdefault(row["path"], []).append(row)
    listed = sorted(files.items(), key=lambda item: (-sum(row["n"] for row in item[1]), item[0]))
    findings = snapshot.rows(
        sql("commit.weaknesses", where="WHERE repo = $repo AND commit_sha = $sha AND change = 'introduced'"),
        {"repo": repo, "sha": sha},
    )
    filled = {
        "one": matching[0],
        "owners": OWNERS,
        "files": [
            (path, {o.key: sum(r["n"] for r in of if r["owner"] == o.key) for o in OWNERS}, of)
            for path, of in listed[:MOST_FILES]
        ],
        "more": max(len(listed) - MOST_FILES, 0),
        "findings": findings,
    }
    return Page("commit.html.j2", matching[0]["subject"] or sha[:12], filled)


PAGES = (
    Route(("code",), page, "Code", 40, holds=lambda snapshot: snapshot.holds("commits")),
    Route(("code", "*", "*"), commit, below="/code"),
)
