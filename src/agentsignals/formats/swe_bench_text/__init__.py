"""Files of evaluations that are not JSON (design/formats.md#swe-bench): a submission's metadata; next to a trial also
test output, the harness's log and a form of ratings."""

import posixpath
import re

from agentsignals.formats import Claim, Format
from agentsignals.formats.instances import evaluation_of, names_of
from agentsignals.formats.records import Head

_TESTS_RAN = re.compile(
    r"^(?:\+* ?source /opt/miniconda3/bin/activate|\+\+ _CONDA_ROOT=|>>>>> (?:Start Test Output|Applied Patch))",
    re.MULTILINE,
)
_LOG = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - (?:INFO|ERROR|WARNING) - ", re.MULTILINE)
_OF_HARNESS = ("Creating container for ", "Container for ", "Intermediate patch for ", "Evaluating ", "Git diff before")
_METADATA = frozenset(("info", "tags", "name", "model", "models", "os_model", "os_system", "oss", "agent"))
_RUN_BATCH = "run_batch.config.yaml"
STATUSES = "instances_by_exit_status:"
_KEY = re.compile(r"^([a-z_]{2,20}):", re.MULTILINE)
_FORM = "Evaluation Form"
_FIRST = 2_048


def claims(head: Head) -> Claim | None:
    """Recognise a file by its first lines."""
    folder, name = posixpath.split(head.path)
    if name in ("metadata.yaml", "metadata.yml") and head.complete and len(_METADATA & {*_KEY.findall(head.text)}) > 1:
        return Claim(keys=[f"submission:{folder}"], lends=folder)
    if "exit_statuses" in name and head.text.lstrip().startswith(STATUSES):
        return Claim(keys=[f"submission:{folder}"], lends=folder)
    if name == _RUN_BATCH and "instances" in head.text:
        return Claim(keys=[], lends=folder, companion=True)
    begin = head.text[:_FIRST].lstrip()
    if begin.startswith(_FORM) and "\nOverall rating" in head.text:
        return Claim(keys=[], lends=posixpath.dirname(head.path), companion=True)
    is_log = _LOG.match(begin) is not None and any(words in begin for words in _OF_HARNESS)
    if is_log and "model" in evaluation_of(head.path, posixpath.basename(folder)):
        return Claim(keys=names_of(head.path, posixpath.basename(folder)), root=folder)
    return Claim(keys=[], companion=True) if is_log or _TESTS_RAN.search(begin) else None


FORMAT = Format(name="swe-bench-text", version=6, claims=claims, of_json=False, snapshots=False)
