"""Files of Harbor's jobs and trials (design/formats.md#harbor-and-atif): results, configurations, reports of the
verifier, logs.

A trial and the job one folder up both have a `result.json` and a `config.json`; their content tells which is which.

Plain text in the folders of a trial (the reward, the verifier's output, what ended the trial, the agent's log and
terminal), also of Terminal-Bench, means nothing outside one. Inside, it shows whether the agent and the verifier ran,
and which tests ended how.
"""

import posixpath
import re

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats.columns import holds_conversations, may_hold
from agentsignals.formats.records import CUT, Head, inside

_TRIAL = frozenset(("task_name", "trial_name"))
_TRIAL_ALSO = frozenset(("agent_info", "verifier_result", "agent_result", "task_checksum", "trial_uri", "config"))
_TRIAL_CONFIG = frozenset(("task", "trial_name", "agent"))
_TRIAL_LOCK = frozenset(("schema_version", "task", "agent", "verifier"))
_JOB = frozenset(("n_total_trials", "stats"))
_JOB_CONFIG_ALSO = frozenset(("jobs_dir", "agents", "datasets", "tasks"))
"""Newer ones leave out what is as it is by default."""
_COLLECTED = frozenset(("source", "destination", "type", "status"))


def claims(head: Head) -> Claim | None:
    """Recognise results and configurations by keys, and reports of tests (CTRF) and rewards only next to a trial."""
    document = head.document
    if not document:
        return Claim(keys=[], companion=True) if head.items and head.items[0].keys() >= _COLLECTED else None
    if may_hold(document) and holds_conversations(head):
        return None  # an export of traces: rows that name their trial
    keys = document.keys()
    folder = posixpath.dirname(head.path)
    if keys >= _TRIAL and keys & _TRIAL_ALSO:
        task, judged_again = document["task_name"], inside(document, "config", "source_trial", "trial_id")
        ids = [known for known in (document.get("id"), judged_again) if isinstance(known, str) and known]
        keys_of = [f"trial:{known}" for known in ids]
        return Claim(keys=keys_of, root=folder, gathers=True, tells=[f"/{task}"] if isinstance(task, str) else [])
    if keys >= _TRIAL_CONFIG or (keys >= _TRIAL_LOCK and isinstance(inside(document, "task", "digest"), str)):
        return Claim(keys=[], root=folder, gathers=True)
    if (
        keys >= _JOB
        or ("job_name" in keys and keys & _JOB_CONFIG_ALSO)
        or (isinstance(document.get("harbor"), dict) and "trials" in document)
    ):
        return Claim(keys=[], lends=folder)
    results = document.get("results")
    is_report = results is CUT and document.get("reportFormat") == "CTRF"
    if isinstance(results, dict):
        is_report = isinstance(results.get("tests"), list) and isinstance(results.get("tool"), dict)
    in_place = head.path.endswith("verifier/reward.json") and posixpath.basename(folder) == "verifier"
    is_reward = in_place and all(isinstance(v, int | float) for v in document.values())
    return Claim(keys=[], companion=True) if is_report or is_reward else None


FORMAT = Format(name="harbor", version=9, claims=claims, snapshots=False)


_FOLDERS = frozenset(("agent", "verifier", "panes", "sessions"))
_ENDINGS = (".txt", ".log", ".stdout", ".stderr")
TERMINALS = frozenset(("panes", "sessions"))
EXCEPTION = "exception.txt"
_JUNIT = re.compile(r"<testsuites?\b")


def claims_of_logs(head: Head) -> Claim | None:
    """Claim a log by its path: it has no form of its own. Diffs and other harnesses' logs have their own readers."""
    folder, name = posixpath.split(head.path)
    if is_recording(head):
        return Claim(keys=[], companion=True)
    if head.looks_like_json and (head.records or posixpath.basename(folder) not in TERMINALS):
        return None  # a stream or a document, which has its own reader
    if name.endswith(".xml"):
        return Claim(keys=[], companion=True) if _JUNIT.search(head.text[:2_048]) else None
    inner, above = posixpath.basename(folder), posixpath.basename(posixpath.dirname(folder))
    in_place = (inner in _FOLDERS or above == "agent") and name.endswith(_ENDINGS)
    if not in_place and name != EXCEPTION:
        return None
    from agentsignals.formats import patch, subq_eval, swe_bench_text  # noqa: PLC0415  (for such logs only)

    others = (patch.claims, subq_eval.claims_of_output, swe_bench_text.claims)
    if any(claim(head) is not None for claim in others):
        return None
    return Claim(keys=[], companion=True)


def is_recording(head: Head) -> bool:
    """Return whether a file is a recording of asciinema: a header with the size of the screen, then events as lists."""
    header = next(iter(head.records), {})
    size = header.get("term") if header.get("version") == 3 else header
    is_sized = isinstance(size, dict) and (size.keys() >= {"width", "height"} or size.keys() >= {"cols", "rows"})
    return is_sized and header.get("version") in (2, 3)


HARBOR_LOG_FORMAT = Format(
    name="harbor-log",
    version=3,
    claims=claims_of_logs,
    read=read_by("harbor.reader", "read_logs"),
    of_json=None,
    snapshots=False,
)
