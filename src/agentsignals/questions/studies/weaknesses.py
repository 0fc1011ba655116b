"""Which weaknesses came with commits, per 1 000 added lines (SWE-chat, Table 4, Figures 26 and 27)."""

from __future__ import annotations

from collections import Counter

from agentsignals.questions.charts import bars
from agentsignals.questions.estimates import Estimate, bar, chart, table
from agentsignals.questions.question import Chart, Finding, Inputs, NoSessions, Outcome, Study, Table
from agentsignals.questions.written_lines import ALL, Rate, rates

_NONE = "No repository was scanned: agentsignals scan REPO does it."
_EXACT = "the interval takes findings as independent"
_SHOWN = 15
_OF_COMMITS = NoSessions("It counts lines of commits: the page Code has them.")
_NAMES = {"human_only": "human only", "collaborative": "collaborative", "vibe": "vibe coding", "unknown": "unknown"}
_LIMITS = [
    "Findings of a static scanner are not confirmed weaknesses, and rates of different rule sets don't compare: the"
    " published ones are of an unnamed set.",
    "Intervals are exact for independent findings; those of one commit are not, so they are too narrow where few"
    " commits have most.",
    "The order of modes can turn with the attribution, which each rate names.",
]


def _outcome(inputs: Inputs) -> Outcome:
    if not inputs.rows["scans"]:
        return Outcome(limits=[_NONE])
    commits = Counter(row["scanner"] for row in inputs.rows["scans"])
    scanner = min(commits, key=lambda name: (-commits[name], name))
    findings = [row for row in inputs.rows["findings"] if row["scanner"] == scanner]
    weakness_rates = rates([row for row in inputs.rows["scans"] if row["scanner"] == scanner], findings)
    new = [row for row in findings if row["change"] == "introduced"]
    reported = [
        _finding(rate, scanner) for rate in weakness_rates if rate.files == ALL and rate.lines and _is_told(rate)
    ]
    charts = [
        _chart("rules", "Introduced findings by rule", Counter(row["rule"] for row in new)),
        _chart("cwes", "Introduced findings by weakness", Counter(cwe for row in new for cwe in row["cwe"])),
    ]
    return Outcome(reported, [_table(weakness_rates, scanner)], charts, _LIMITS)


def _is_told(rate: Rate) -> bool:
    return rate.by == "all" or (rate.attribution == "replayed" and rate.group != "nobody")


def _finding(rate: Rate, scanner: str) -> Finding:
    words = "all" if rate.by == "all" else f"{rate.by} {_NAMES.get(rate.group, rate.group)}, {rate.attribution}"
    low, high = rate.introduced_low, rate.introduced_high
    interval = None if low is None or high is None else (low, high)
    return Estimate(
        value=rate.introduced_rate, n=rate.lines, kind="number", interval=interval, note=_EXACT, counted=_OF_COMMITS
    ).finding(
        "weaknesses.introduced" if rate.by == "all" else f"weaknesses.{rate.by}.{rate.group}",
        f"Introduced findings per 1 000 added lines ({words})",
        "added lines of scanned files",
        f"scanner {scanner}; {rate.introduced} in {rate.commits_with} commits, {rate.largest_commit} in one",
        unit="findings per 1 000 lines",
    )


def _table(weakness_rates: list[Rate], scanner: str) -> Table:
    return table(
        "weaknesses.rates",
        "Findings per 1 000 added lines",
        "attribution | by | group | files | lines added lines:count | introduced:count"
        " | introduced_rate per 1 000:number | low from:number | high to:number | fixed:count"
        " | fixed_rate per 1 000:number",
        [
            [
                *(r.attribution, r.by, r.group, r.files, r.lines, r.introduced, r.introduced_rate, r.introduced_low),
                *(r.introduced_high, r.fixed, r.fixed_rate),
            ]
            for r in weakness_rates
        ],
        n=weakness_rates[0].commits,
        of="commits that added lines",
        evidence=_OF_COMMITS,
        note=f"scanner {scanner}",
    )


def _chart(name: str, title: str, counted: Counter[str]) -> Chart | None:
    rows = [bar(key, n, f"{key}: {n:,}", evidence=_OF_COMMITS) for key, n in counted.most_common(_SHOWN)]
    spec, n, of = bars(rows, "findings"), counted.total(), "introduced findings"
    return chart(f"weaknesses.{name}", title, rows, spec, n=n, of=of)


STUDY = Study(
    name="weaknesses",
    order=230,
    title="Weaknesses",
    question="Which weaknesses came with commits, and with whose lines?",
    queries={
        "scans": "SELECT scans.*, commits.mode, commits.recorded_mode FROM scans JOIN commits USING (repo, commit_sha)"
        " ORDER BY repo, commit_sha, scanner, place",
        "findings": "SELECT repo, commit_sha, scanner, change, rule, cwe, place, owner, tag FROM weaknesses"
        " WHERE change IN ('introduced', 'fixed') ORDER BY ALL",
    },
    function=_outcome,
    context="product",
)
