"""Files of Harbor's jobs and trials (design/formats.md#harbor-and-atif): results, configurations, reports of the
verifier, logs.

A trial and the job one folder up both have a `result.json` and a `config.json`; their content tells which is which.
"""

import posixpath

from agentsignals.formats import Claim, Format
from agentsignals.formats.columns import holds_conversations, may_hold
from agentsignals.formats.documents import inside
from agentsignals.formats.head import CUT, Head

_TRIAL = frozenset(("task_name", "trial_name"))
_TRIAL_ALSO = frozenset(("agent_info", "verifier_result", "agent_result", "task_checksum", "trial_uri", "config"))
_TRIAL_CONFIG = frozenset(("task", "trial_name", "agent"))
_TRIAL_LOCK = frozenset(("schema_version", "task", "agent", "verifier"))
_JOB = frozenset(("n_total_trials", "stats"))
_JOB_CONFIG_ALSO = frozenset(("jobs_dir", "agents", "datasets", "tasks"))
"""Newer ones leave out what is as it is by default."""
_COLLECTED = frozenset(("source", "destination", "type", "status"))


def claims(head: Head) -> Claim | None:
    """Recognise results and configurations by their keys, and reports of tests (CTRF) and rewards only next to a
    trial."""
    document = head.document
    if not document:
        return Claim(keys=[], companion=True) if head.items and head.items[0].keys() >= _COLLECTED else None
    if may_hold(document) and holds_conversations(head):
        return None  # an export of traces: rows that name their trial
    keys = document.keys()
    folder = posixpath.dirname(head.path)
    if keys >= _TRIAL and keys & _TRIAL_ALSO:
        own_id, task = document.get("id"), document["task_name"]
        keys_of = [f"trial:{own_id}"] if isinstance(own_id, str) and own_id else []
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


FORMAT = Format(name="harbor", version=7, claims=claims, snapshots=False)
