"""Files of the SWE-bench harness and its users (design/formats.md#swe-bench): reports, summaries, predictions, ratings,
rows of the dataset."""

import posixpath
import re
from collections.abc import Mapping

from agentsignals.formats import Claim, Format
from agentsignals.formats.columns import columns_of, may_hold
from agentsignals.formats.instances import (
    canonical,
    home_of_results,
    is_bare_report,
    names_of,
    of_submission,
    of_summary,
    run_of_model,
)
from agentsignals.formats.outcome_table import is_of_json
from agentsignals.formats.records import CUT, Head
from agentsignals.formats.rows import is_packed, schema_of

_IN_REPORT = re.compile(r'"patch_successfully_applied"\s*:')
_ROW = frozenset(("instance_id", "base_commit", "patch", "test_patch", "problem_statement"))
_PREDICTED = frozenset(("model_patch", "model_name_or_path", "messages", "trajectory", "conversations"))
"""Columns that exist only once somebody has tried."""
_PREDICTION = frozenset(("instance_id", "model_patch", "model_name_or_path"))
_COUNTS = frozenset(("completed_instances", "resolved_instances"))
_VERDICTS = frozenset(("resolved_instances", "resolved_ids", "unresolved_ids"))
_AGAIN = re.compile(r"-\d+\.json\Z")
"""End of a name under which sb-cli saves a report that is there already."""
_RATINGS = frozenset(("rubrics_rating", "overall_rating"))
_SUBMISSION = "submission:"
_ALONE = frozenset(("all_preds", "preds", "predictions"))


def claims(head: Head) -> Claim | None:
    """Recognise each kind of file by keys that no other has."""
    if not head.looks_like_json:
        # A dataset is recognised by its columns alone, which stand at the end of the file.
        schema = schema_of(head.data) if is_packed(head.data) else None
        columns = [] if schema is None else [str(name) for name in schema.names]
        is_row = "instance_id" in columns and len(_ROW.intersection(columns)) >= 3
        is_dataset = (
            is_row and not may_hold(columns) and _PREDICTED.isdisjoint(columns) and columns_of(columns).lacks != ""
        )
        return Claim(keys=[], everywhere=True) if is_dataset else None
    document, folder = head.document, posixpath.dirname(head.path)
    if is_of_json(head):
        return None
    if _is_dataset(head):
        return Claim(keys=[], everywhere=True)
    if head.items and all(item.keys() >= _PREDICTION for item in head.items):
        return _of_predictions(head.path)
    if not document:
        return None
    if (run := _of_run(document, head)) is not None:
        return run
    # Rows of the dataset and ratings mean something where trials of the task lie below.
    ratings = [document[name] for name in _RATINGS if name in document]
    is_rated = bool(ratings) and all(isinstance(rating, dict) or rating is CUT for rating in ratings)
    return Claim(keys=[], lends=folder, companion=True) if is_dataset_row(document) or is_rated else None


def _of_run(document: dict[str, object], head: Head) -> Claim | None:
    """Reports, predictions and summaries."""
    folder, values = posixpath.dirname(head.path), list(document.values())
    if is_bare_report(document, head.path):
        return Claim(keys=names_of(head.path, posixpath.basename(folder)), root=folder)
    is_report = all(isinstance(v, dict) and "patch_successfully_applied" in v for v in values)
    if is_report or (values == [CUT] and _IN_REPORT.search(head.text) is not None):
        return Claim(keys=names_of(head.path, next(iter(document))) if len(document) == 1 else [], root=folder)
    if document.keys() >= _PREDICTION:
        # One prediction lies with its trajectory; many, a line each, serve the trials below.
        are_many = len(head.records) > 1 or (bool(head.records) and not head.complete)
        alone = not are_many and is_beside(head.path, document["instance_id"])
        return Claim(keys=[], root=folder) if alone else _of_predictions(head.path)
    whole = [v for v in values if v is not CUT]  # a file of predictions may be longer than what is seen of it
    begins = '"model_name_or_path"' in head.text[:4_096] and '"instance_id"' in head.text[:4_096]
    if all(isinstance(v, dict) and v.keys() >= _PREDICTION for v in whole) if whole else begins:
        return _of_predictions(head.path)
    is_counted = document.keys() >= _COUNTS and not document.keys().isdisjoint(("resolved_ids", "submitted_ids"))
    if is_counted or document.keys() >= _VERDICTS or (document.keys() >= _COUNTS and CUT in values):
        # Only the summary knows trials whose patch was empty, or whose evaluation failed.
        evaluation = of_summary(head.path)
        name = evaluation.get("model") or evaluation["run"]
        ids = [document.get(key) for key in ("empty_patch_ids", "error_ids")]
        named = [i for several in ids if isinstance(several, list) for i in several if isinstance(i, str)]
        again = f"summary:{_AGAIN.sub('.json', head.path)}"
        # It may lie in a folder of reports beside the trajectories.
        return Claim(
            keys=[again, *(f"run:{run_of_model(name, canonical(i))}" for i in named)], lends=folder, judges=folder
        )
    if "no_generation" in document and ("resolved" in document or CUT in values):
        home = home_of_results(head.path)
        return Claim(keys=[f"{_SUBMISSION}{home}"], root=folder, lends=home)
    return None


def _of_predictions(path: str) -> Claim:
    """Claim predictions, together with the submission that they belong to.

    A submission's results list only the resolved, so its predictions are needed to know the others. Elsewhere a
    folder may hold the predictions of a hundred models.
    """
    folder, name = posixpath.split(path)
    alone = of_submission(path) or name.partition(".")[0] in _ALONE
    return Claim(keys=[f"{_SUBMISSION}{folder}"] if alone else [], lends=folder, predicts=True)


def is_dataset_row(row: Mapping[str, object]) -> bool:
    """Return whether an object is an instance's row of its dataset."""
    is_row = isinstance(row.get("instance_id"), str) and len(_ROW & row.keys()) >= 3
    return is_row and _PREDICTED.isdisjoint(row)


def _is_dataset(head: Head) -> bool:
    """Return whether a file holds the rows of several instances, as lines, as a list or by instance."""
    by_instance = [row for row in head.document.values() if isinstance(row, dict)]
    for rows in (head.items, head.records, by_instance):
        if rows and all(map(is_dataset_row, rows)):
            return not head.complete or len({row["instance_id"] for row in rows}) > 1
    return False


def is_beside(path: str, instance: object) -> bool:
    """Return whether a prediction lies with its trajectory: its file or folder is named for the instance."""
    folder, name = posixpath.split(path)
    named = (posixpath.basename(folder).lower(), name.lower().partition(".pred")[0])
    return isinstance(instance, str) and instance.lower() in named


FORMAT = Format(name="swe-bench", version=12, claims=claims, of_json=None, snapshots=False)
