"""Terminal-Bench before Harbor (design/formats.md#terminal-bench): results of a trial and of its run, and how that
was configured."""

import posixpath
import re

from agentsignals.formats import Claim, Format
from agentsignals.formats.records import CUT, Head

_TRIAL = frozenset(("is_resolved", "failure_mode", "parser_results"))
_METADATA = frozenset(("run_id", "agent_name", "output_path"))
_LOCK = frozenset(("dataset", "agent", "run_config"))
_IN_RESULTS = re.compile(r'"is_resolved"\s{0,9}:')
_ID = re.compile(r'"id"\s{0,9}:\s{0,9}"([0-9a-f-]{36})"')


def claims(head: Head) -> Claim | None:
    """A run's results repeat those of its trials: a shared id brings the two together."""
    document = head.document
    folder = posixpath.dirname(head.path)
    keys = document.keys()
    if keys >= _TRIAL:
        own_id, task = document.get("id"), document.get("task_id")
        keys_of = [f"trial:{own_id}"] if isinstance(own_id, str) and own_id else []
        return Claim(keys=keys_of, root=folder, gathers=True, tells=[f"/{task}"] if isinstance(task, str) else [])
    if keys >= _METADATA or (keys >= _LOCK and isinstance(document.get("run_config"), dict)):
        return Claim(keys=[], lends=folder)
    results = document.get("results")
    if results is CUT:
        is_run = _IN_RESULTS.search(head.text) is not None and '"failure_mode"' in head.text
    else:
        is_run = isinstance(results, list) and any(isinstance(r, dict) and r.keys() >= _TRIAL for r in results)
    if is_run:
        ids = _ID.findall(head.text)
        return Claim(keys=[f"trial:{trial_id}" for trial_id in dict.fromkeys(ids)], root=folder)
    return None


FORMAT = Format(
    name="terminal-bench",
    marks=(b'"failure_mode"', b'"run_id"', b'"run_config"'),
    version=6,
    claims=claims,
    snapshots=False,
)
