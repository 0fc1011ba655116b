"""SWE-bench reports, summaries, predictions, ratings and dataset rows as parts of attempts."""

from __future__ import annotations

import posixpath

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.edits.unified_diff import patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.instances import canonical, run_of, run_of_model
from agentsignals.formats.one_document import each, tally
from agentsignals.formats.records import UNREADABLE, document, lines, saw, skip
from agentsignals.formats.swe_bench import model_of
from agentsignals.formats.swe_bench.ratings import Ratings, rating_parts
from agentsignals.model.attempt import Attempt, Said, Verification


class Outcome(Struct):
    """Tests under what the gold patch does to them."""

    success: list[str] = field(default_factory=list)
    failure: list[str] = field(default_factory=list)


class Instance(Struct):
    """The report of one instance."""

    patch_is_None: bool | None = None
    patch_exists: bool | None = None
    patch_successfully_applied: bool | None = None
    resolved: bool | None = None
    tests_status: dict[str, Outcome | list[str]] | None = None


class Row(Struct):
    """The row of an instance in its dataset."""

    instance_id: str
    patch: str | None = None
    FAIL_TO_PASS: object = None
    PASS_TO_PASS: object = None


class Summary(Struct):
    """What became of the instances of one evaluation."""

    empty_patch_ids: list[str] = field(default_factory=list)
    error_ids: list[str] = field(default_factory=list)
    resolved_ids: list[str] = field(default_factory=list)
    unresolved_ids: list[str] = field(default_factory=list)
    completed_ids: list[str] = field(default_factory=list)


class Prediction(Struct):
    """The patch handed in for one instance."""

    instance_id: str
    model_name_or_path: str | None = None
    model_patch: str | None = None


_decode_instance = msgspec.json.Decoder(Instance).decode
_decode_row = msgspec.json.Decoder(Row).decode
_decode_summary = msgspec.json.Decoder(Summary).decode
_decode_ratings = msgspec.json.Decoder(Ratings).decode
_decode_prediction = msgspec.json.Decoder(Prediction).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_tests = msgspec.json.Decoder(list[str]).decode
_LOOKED_AT = 65_536


def read(inputs: list[Input]) -> Reading:
    """Parts of attempts; no session is in these files."""
    reading = Reading()
    for given in inputs:
        reading.attempts += _parts(given)
    return reading


def _parts(given: Input) -> list[Attempt]:
    begin = bytes(given.data[:_LOOKED_AT])
    if b'"patch_successfully_applied"' in bytes(given.data):
        return _report_parts(given)
    if b'"model_name_or_path"' in begin:
        return _prediction_parts(given)
    if b'"submitted_instances"' in begin:
        return _summary_parts(given)
    if b'"rubrics_rating"' in begin or b'"overall_rating"' in begin:
        ratings = document(given.data, given.artifact, _decode_ratings)
        if ratings is None:
            return []
        saw(given.artifact, "ratings")
        return rating_parts(given, ratings)
    return _row_part(given)


# -- reports and summaries -------------------------------------------------------------------------------------------


def _report_parts(given: Input) -> list[Attempt]:
    report = document(given.data, given.artifact, _decode_object)
    if report is None:
        return []
    saw(given.artifact, "report")
    instances = each(list(report.values()), _decode_instance, given.artifact)
    tally(given.artifact, "instance", [None for one in instances if one is None])
    found = zip(report, instances, strict=True)
    return [_report_part(given, task_id, instance) for task_id, instance in found if instance is not None]


def _report_part(given: Input, task_id: str, instance: Instance) -> Attempt:
    found = verification(instance)
    told = (
        f"verifier report of {task_id}: applied {instance.patch_successfully_applied}, resolved {instance.resolved},"
        f" fixed {_n(found.fixed)}, unfixed {_n(found.unfixed)}, kept {_n(found.kept)}, broken {_n(found.broken)}"
    )
    return Attempt(
        root=posixpath.dirname(given.artifact.path),
        scope="trial",
        task_id=canonical(task_id),
        goes_by=run_of(given.artifact.path, task_id),
        verification=found,
        reward=None if instance.resolved is None else float(instance.resolved),
        patch=[] if instance.patch_exists is False or instance.patch_is_None else None,
        kinds=["verifier_report"],
        said=[Said(text=told, artifact_id=given.artifact.artifact_id, line=1, fields=["verification", "reward"])],
    )


def _n(tests: list[str] | None) -> str:
    return "unknown" if tests is None else str(len(tests))


def verification(instance: Instance) -> Verification:
    """What the report says of the tests, in either of its layouts. The names PASS_TO_FAIL and FAIL_TO_FAIL of layout A
    hold what the gold patch breaks or leaves broken: never the regressions, which are PASS_TO_PASS failures."""
    status, applied = instance.tests_status, instance.patch_successfully_applied
    if not status:
        return Verification(patch_applies=applied, status="ok")
    if all(isinstance(v, list) for v in status.values()):
        told = {k: v for k, v in status.items() if isinstance(v, list)}
        return Verification(
            layout="B",
            patch_applies=applied,
            fixed=told.get("FAIL_TO_PASS", []),
            unfixed=[],
            kept=told.get("PASS_TO_PASS", []),
            broken=told.get("PASS_TO_FAIL", []),
            still_failing=told.get("FAIL_TO_FAIL", []),
        )
    by = {k: v for k, v in status.items() if isinstance(v, Outcome)}
    target, safe, hard = (by.get(k, Outcome()) for k in ("FAIL_TO_PASS", "PASS_TO_PASS", "FAIL_TO_FAIL"))
    return Verification(
        layout="A",
        patch_applies=applied,
        fixed=target.success,
        unfixed=target.failure,
        kept=safe.success,
        broken=safe.failure,
        still_failing=hard.failure,
    )


def _summary_parts(given: Input) -> list[Attempt]:
    """Instances without a patch, or whose evaluation failed, have no report: the summary alone knows them. Of the
    others it says whether they were resolved, to trials of that run whose report is not there."""
    summary = document(given.data, given.artifact, _decode_summary)
    if summary is None:
        return []
    saw(given.artifact, "summary")
    parts: list[Attempt] = []
    if not given.lent:
        parts += [_alone(given, i, "empty_patch") for i in summary.empty_patch_ids]
        parts += [_alone(given, i, "evaluation_error") for i in summary.error_ids]
    for ids, reward in ((summary.resolved_ids, 1.0), (summary.unresolved_ids, 0.0)):
        parts += [_of_summary(given, i, reward) for i in ids]
    return parts


def _alone(given: Input, instance: str, became: str) -> Attempt:
    part = _of_summary(given, instance, 0.0 if became == "empty_patch" else None)
    part.scope, part.root = "trial", given.artifact.path.removesuffix(".json")
    part.exit_status = became
    fields = ["exit_status"]
    if became == "empty_patch":
        part.patch = []
        fields += ["patch", "reward"]
    else:
        part.verification = Verification(status="crashed", message="the evaluation ended in an error")
        fields += ["verification"]
    part.said = [
        Said(
            text=f"evaluation summary: {instance} {became}",
            artifact_id=given.artifact.artifact_id,
            line=1,
            fields=fields,
        )
    ]
    return part


def _of_summary(given: Input, instance: str, reward: float | None) -> Attempt:
    told = f"evaluation summary: {instance} {'resolved' if reward else 'unresolved'}"
    return Attempt(
        root=posixpath.dirname(given.artifact.path),
        scope="lent",
        task_id=canonical(instance),
        goes_by=run_of_model(model_of(given.artifact.path), instance),
        reward=reward,
        said=[Said(text=told, artifact_id=given.artifact.artifact_id, line=1, fields=["reward"])],
    )


# -- what was handed in ----------------------------------------------------------------------------------------------


def _prediction_parts(given: Input) -> list[Attempt]:
    """One prediction beside its trajectory; or those of a run, as lines or by instance."""
    found = _predictions(given)
    saw(given.artifact, "prediction", len(found))
    if len(found) == 1:
        part = _prediction_part(given, found[0])
        part.scope, part.goes_by = "trial", None
        return [part]
    return [_prediction_part(given, p) for p in found]


def _predictions(given: Input) -> list[Prediction]:
    if _is_lines(given):
        return [p for _, p in lines(given.data, given.artifact, _decode_prediction)]
    entries = document(given.data, given.artifact, _decode_entries)
    if entries is None:
        return []
    given.artifact.records += len(entries) - 1
    found = [p for p in each(entries, _decode_prediction, given.artifact) if p is not None]
    for _ in range(len(entries) - len(found)):
        skip(given.artifact, "bad_shape")
    return found


def _is_lines(given: Input) -> bool:
    """JSON Lines: so named, or a line of it is a prediction by itself, whichever of them is broken."""
    return given.artifact.path.endswith(".jsonl") or any(map(_is_prediction, bytes(given.data).split(b"\n")))


def _is_prediction(line: bytes) -> bool:
    try:
        _decode_prediction(line)
    except UNREADABLE:
        return False
    return True


def _decode_entries(data: memoryview | bytes) -> list[Raw]:
    """The predictions of one document: itself, a list, or by instance."""
    try:
        return _decode_list(data)
    except msgspec.ValidationError:
        found = _decode_object(data)
    return [Raw(bytes(data))] if "model_patch" in found else list(found.values())


def _prediction_part(given: Input, prediction: Prediction) -> Attempt:
    patch = (prediction.model_patch or "").replace("\r\n", "\n")
    files = patched_files(patch)
    told = f"prediction for {prediction.instance_id}: {', '.join(f.path for f in files) or 'nothing'}"
    model = prediction.model_name_or_path
    return Attempt(
        root=posixpath.dirname(given.artifact.path),
        scope="lent",
        task_id=canonical(prediction.instance_id),
        goes_by=run_of_model(model, prediction.instance_id) if model else None,
        patch=files if files or not patch.strip() else None,
        patch_text_bytes=len(patch.encode("utf-8", "replace")),
        kinds=["patch"],
        said=[Said(text=told, artifact_id=given.artifact.artifact_id, line=1, fields=["patch"])],
    )


def _row_part(given: Input) -> list[Attempt]:
    row = document(given.data, given.artifact, _decode_row)
    if row is None:
        return []
    if not row.patch:
        skip(given.artifact, "no_gold_patch")
        return []
    saw(given.artifact, "dataset_row")
    files = patched_files(row.patch)
    told = (
        f"gold patch of {row.instance_id}: {', '.join(f.path for f in files)}; tests to fix:"
        f" {_n(_tests(row.FAIL_TO_PASS))}, to keep: {_n(_tests(row.PASS_TO_PASS))}"
    )
    return [
        Attempt(
            root=posixpath.dirname(given.artifact.path),
            scope="lent",
            task_id=canonical(row.instance_id),
            gold_patch=files,
            kinds=["gold_patch"],
            said=[Said(text=told, artifact_id=given.artifact.artifact_id, line=1, fields=["gold_patch"])],
        )
    ]


def _tests(value: object) -> list[str] | None:
    """A list of test ids; datasets write it as a list or as a JSON string of one."""
    if isinstance(value, str):
        try:
            return _decode_tests(value.encode("utf-8", "replace"))
        except UNREADABLE:
            return None
    return [t for t in value if isinstance(t, str)] if isinstance(value, list) else None
