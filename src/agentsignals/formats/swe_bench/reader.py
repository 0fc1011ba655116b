"""Read SWE-bench's reports, summaries, predictions, ratings and dataset rows as parts of attempts."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.patches import patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats import outcome_table as parquet
from agentsignals.formats.documents import each, is_list, tally
from agentsignals.formats.instances import canonical, evaluation_of, of_submission, of_summary, run_of, run_of_model
from agentsignals.formats.outcome_table import PARQUET
from agentsignals.formats.records import UNREADABLE, document, lines, saw, skip
from agentsignals.formats.swe_bench import is_beside
from agentsignals.model import Attempt, Statement, Verification


class Overall(Struct):
    """The grade of an attempt, 1 (worst) to 5, and why."""

    rating: object = None
    rationale: object = None


class Ratings(Struct):
    """Grades by attempt. An attempt goes by the beginning of its folder's name (`trace_01` for `trace_01_<model>`)."""

    rubrics_rating: dict[str, dict[str, object]] = field(default_factory=dict)
    overall_rating: dict[str, Overall] = field(default_factory=dict)


def rating_parts(source: Input, ratings: Ratings) -> list[Attempt]:
    """A part for each attempt that was judged, lent to the trial in its folder."""
    names = dict.fromkeys((*ratings.overall_rating, *ratings.rubrics_rating))
    return [_part(source, name, ratings) for name in names]


def _part(source: Input, name: str, ratings: Ratings) -> Attempt:
    overall, rubrics = ratings.overall_rating.get(name), ratings.rubrics_rating.get(name)
    judged: dict[str, Any] = {}
    if overall is not None:
        judged |= {"rating": overall.rating, "rationale": overall.rationale}
    if rubrics is not None:
        judged["rubrics"] = rubrics
        passed = sum(value == "PASS" for value in rubrics.values())
        judged |= {"rubrics_passed": passed, "rubrics_total": len(rubrics)}
    listed = ", ".join(f"{k} {v}" for k, v in judged.items() if k != "rubrics")
    return Attempt(
        root=posixpath.dirname(source.artifact.path),
        scope="lent",
        only_below=name,
        ratings=judged,
        statements=[
            Statement(
                text=f"rated by people: {listed}", artifact_id=source.artifact.artifact_id, line=1, fields=["ratings"]
            )
        ],
    )


# Lists of instances: the harness's summary, and the results of a published submission.

MODEL = "model_id"
KNOBS = (("model", MODEL), ("agent", "agent_type"), ("dataset", "dataset"), ("split", "split"))
"""Facts about the candidate in folder names, with their knobs."""


class Summary(Struct):
    """Outcomes of the instances of one evaluation."""

    empty_patch_ids: list[str] = field(default_factory=list)
    error_ids: list[str] = field(default_factory=list)
    resolved_ids: list[str] = field(default_factory=list)
    unresolved_ids: list[str] = field(default_factory=list)
    completed_ids: list[str] = field(default_factory=list)


class Submission(Struct):
    """Outcomes of the instances of a published submission (`results.json`). Older ones list all submitted instances in
    `generated`."""

    resolved: list[str] = field(default_factory=list)
    no_generation: list[str] = field(default_factory=list)
    no_logs: list[str] = field(default_factory=list)
    generated: list[str] | None = None


_decode_summary = msgspec.json.Decoder(Summary).decode
_decode_submission = msgspec.json.Decoder(Submission).decode


def summary_parts(source: Input) -> list[Attempt]:
    """Return the parts of an evaluation's summary.

    Only it knows instances without a patch and those whose evaluation failed. Trials of the run whose report is
    missing learn from it whether they resolved.
    """
    summary = document(source.data, source.artifact, _decode_summary)
    if summary is None:
        return []
    saw(source.artifact, "summary")
    parts: list[Attempt] = []
    parts += [_alone(source, i, "empty_patch") for i in summary.empty_patch_ids]
    parts += [_alone(source, i, "evaluation_error") for i in summary.error_ids]
    for ids, reward in ((summary.resolved_ids, 1.0), (summary.unresolved_ids, 0.0)):
        parts += known_by_all(source, [_of_summary(source, i, reward) for i in ids])
    return parts


def known_by_all(source: Input, parts: list[Attempt]) -> list[Attempt]:
    """Return the parts that lend to existing trials. If the file is read for itself, add trials for instances without
    any other file: an outcome must be known whatever it is."""
    named = source.named_trials
    if named is None:
        return parts
    folder = posixpath.basename(posixpath.dirname(source.artifact.path))
    evaluated = {name.partition("/")[2] for name in named if name.count("/") == 2}
    made = []
    for part in parts:
        is_named = part.goes_by in named or f"{folder}/{part.task_id}" in named
        if part.run_id is not None and part.goes_by in evaluated:
            is_named = f"{part.run_id}/{part.goes_by}" in named  # another run of the model is another trial
        if part.goes_by and not is_named:
            made.append(msgspec.structs.replace(part, scope="trial", root=_root_of(part)))
    return parts + made


def _root_of(part: Attempt) -> str:
    """Return a folder for a trial of an evaluation that has no files."""
    run = f"{part.run_id}/" if part.run_id and not (part.goes_by or "").startswith(f"{part.run_id}/") else ""
    return f"{part.root}/{run}{part.goes_by}"


def at_home(parts: list[Attempt]) -> list[Attempt]:
    """Move parts of predictions to the trials that the run's own list makes of the same instance. The two files may lie
    anywhere, and one file of predictions may have been evaluated several times."""
    homes: dict[str, dict[str, Attempt]] = {}
    for part in parts:
        if part.scope == "trial" and part.goes_by and part.run_id and not part.kinds:
            homes.setdefault(part.goes_by, {})[part.root] = part
    moved: list[Attempt] = []
    for part in parts:
        roots = homes.get(part.goes_by or "") if part.scope == "trial" and part.run_id is None else None
        moved += [msgspec.structs.replace(part, root=root) for root in roots] if roots else [part]
    return moved


def submission_parts(source: Input, handed_in: Mapping[str, Collection[str]] = MappingProxyType({})) -> list[Attempt]:
    """Return the parts of a submission's results.

    Today's lists name nobody who failed. Failures are known if `generated`, or the predictions (`handed_in`, by the
    submission's folder), lists all instances. Otherwise only instances that no report can cover are taken, since the
    resolved alone give no rate.
    """
    results = document(source.data, source.artifact, _decode_submission)
    if results is None:
        return []
    saw(source.artifact, "results")
    parts = [_of_submission(source, i, None) for i in results.no_logs]
    parts += [_of_submission(source, i, 0.0) for i in results.no_generation]
    lent = [_of_submission(source, i, 1.0) for i in results.resolved]
    home = posixpath.dirname(posixpath.dirname(source.artifact.path))
    generated = results.generated if results.generated is not None else handed_in.get(home)
    if generated is not None:
        others = {canonical(i) for i in (*results.resolved, *results.no_generation, *results.no_logs)}
        lent += [_of_submission(source, i, 0.0) for i in generated if canonical(i) not in others]
        return known_by_all(source, parts + lent)
    return known_by_all(source, parts) + lent


def _of_submission(source: Input, instance: str, reward: float | None) -> Attempt:
    became = {None: "no logs", 0.0: "not resolved", 1.0: "resolved"}[reward]
    tried = of_submission(source.artifact.path)
    return Attempt(
        root=posixpath.dirname(posixpath.dirname(source.artifact.path)),
        scope="lent",
        task_id=canonical(instance),
        goes_by=name_of(source, None, instance),
        run_id=tried.get("run"),
        observed={k: tried[n] for n, k in KNOBS if n in tried},
        reward=reward,
        ending="verifier" if reward is None else None,
        statements=[
            Statement(
                text=f"results: {instance} {became}", artifact_id=source.artifact.artifact_id, line=1, fields=["reward"]
            )
        ],
    )


def _alone(source: Input, instance: str, became: str) -> Attempt:
    part = _of_summary(source, instance, 0.0 if became == "empty_patch" else None)
    if source.named_trials is not None and f"{part.run_id}/{part.goes_by}" not in source.named_trials:
        part.scope, part.root = "trial", _root_of(part)  # else the evaluation left a log: it is lent to that
    part.exit_status, part.ending = became, "finished" if became == "empty_patch" else "verifier"
    fields = ["exit_status", f"knobs.{MODEL}"]
    if became == "empty_patch":
        part.patch = []
        fields += ["patch", "reward"]
    else:
        part.verification = Verification(status="crashed", message="the evaluation ended in an error")
        fields += ["verification"]
    part.statements = [
        Statement(
            text=f"evaluation summary: {instance} {became}",
            artifact_id=source.artifact.artifact_id,
            line=1,
            fields=fields,
        )
    ]
    return part


def _of_summary(source: Input, instance: str, reward: float | None) -> Attempt:
    evaluation = of_summary(source.artifact.path)
    name = evaluation.get("model") or evaluation["run"]
    text = f"evaluation summary: {instance} {'resolved' if reward else 'unresolved'}"
    return Attempt(
        root=posixpath.dirname(source.artifact.path),
        scope="lent",
        task_id=canonical(instance),
        goes_by=run_of_model(name, instance),
        run_id=evaluation["run"],
        observed={knob: evaluation[word] for word, knob in KNOBS if word in evaluation},
        reward=reward,
        statements=[Statement(text=text, artifact_id=source.artifact.artifact_id, line=1, fields=["reward"])],
    )


def name_of(source: Input, model: str | None, instance: str) -> str | None:
    """Return the name of a trial: within a published submission the submission's, else the model's."""
    name = of_submission(source.artifact.path).get("run") or model
    return run_of_model(name, instance) if name else None


# Rows of the dataset: a row next to its trial, or the whole dataset as one file (JSON, JSON Lines, Parquet).

INSTANCES_MAX = 100_000
"""Limit of instances in a dataset. The largest today have some 20,000."""
_PATCH_CHARS = 4 * 1024 * 1024
_AT_HAND = 2
"""Datasets that stay decoded, because a run lends one to each of its trials."""
_read: dict[tuple[str, str], list[Attempt]] = {}
"""Decoded datasets by path and content: a row lends below its own folder."""


class Row(Struct):
    """The row of an instance."""

    instance_id: str
    patch: str | None = None
    test_patch: object = None
    FAIL_TO_PASS: object = None
    PASS_TO_PASS: object = None


_decode_row = msgspec.json.Decoder(Row).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_tests = msgspec.json.Decoder(list[str]).decode


def row_parts(source: Input) -> list[Attempt]:
    """Return what a row lends to the trials below its folder. The rows of a whole dataset lend to trials anywhere."""
    if not source.lent or not source.artifact.sha256:
        return _parts(source)
    key = (source.artifact.path, source.artifact.sha256)
    earlier = _read.pop(key, None)
    parts = earlier if earlier is not None else _parts(source)
    _read[key] = parts
    for oldest in list(_read)[:-_AT_HAND]:
        del _read[oldest]
    return parts


def _parts(source: Input) -> list[Attempt]:
    parts, instances = [], set()
    for line, row in _rows(source):
        instances.add(row.instance_id)
        if row.patch:
            parts.append(_part_dataset(source, line, row))
        else:
            skip(source.artifact, "no_gold_patch")
    saw(source.artifact, "dataset_row", len(parts))
    for part in parts if len(instances) > 1 else ():
        part.root = ""
    return parts


def _rows(source: Input) -> Iterator[tuple[int, Row]]:
    """Yield at most `INSTANCES_MAX` rows with their numbers."""
    for n, (line, row) in enumerate(_every_row(source)):
        if n >= INSTANCES_MAX:
            skip(source.artifact, "too_many_rows")
            return
        if row is None:
            skip(source.artifact, "bad_shape")
        else:
            yield line, row


def _every_row(source: Input) -> Iterator[tuple[int, Row | None]]:
    data, artifact = source.data, source.artifact
    if bytes(data[: len(parquet.PARQUET)]) == parquet.PARQUET:
        for line, values in parquet.rows(data, Row.__struct_fields__, _PATCH_CHARS):
            artifact.records += 1
            if isinstance(values, str):
                skip(artifact, values)
            else:
                yield line, _of_values(values)
        return
    if not is_list(data) and _has_lines(data):
        yield from lines(data, artifact, _decode_row)
        return
    raws = document(data, artifact, _decode_entries) or []
    artifact.records += max(len(raws) - 1, 0)
    yield from enumerate(each(raws, _decode_row, artifact), 1)


def _has_lines(data: bytes) -> bool:
    """Return whether a file is JSON Lines: its first line is a row by itself."""
    try:
        _decode_row(bytes(data[: data.find(b"\n") + 1]))
    except UNREADABLE:
        return False
    return True


def _decode_entries(data: memoryview | bytes) -> list[Raw]:
    """The rows of one document: itself, a list, or by instance."""
    try:
        return _decode_list(data)
    except msgspec.ValidationError:
        whole = _decode_object(data)
    return [Raw(bytes(data))] if "instance_id" in whole else list(whole.values())


def _of_values(values: dict[str, Any]) -> Row | None:
    try:
        return msgspec.convert(values, Row)
    except msgspec.ValidationError:
        return None


def _part_dataset(source: Input, line: int, row: Row) -> Attempt:
    files = patched_files(row.patch or "")
    text = (
        f"gold patch of {row.instance_id}: {', '.join(f.path for f in files)}; tests to fix:"
        f" {_n(row.FAIL_TO_PASS)}, to keep: {_n(row.PASS_TO_PASS)}"
    )
    if isinstance(row.test_patch, str) and (tests := patched_files(row.test_patch)):
        text += f"; the tests' patch: {', '.join(f.path for f in tests)}"
    return Attempt(
        root=posixpath.dirname(source.artifact.path),
        scope="lent",
        task_id=canonical(row.instance_id),
        gold_patch=files,
        kinds=["gold_patch"],
        statements=[Statement(text=text, artifact_id=source.artifact.artifact_id, line=line, fields=["gold_patch"])],
    )


def _n(tests: object) -> str:
    """Count test ids, which datasets write as a list or as the JSON string of one."""
    if isinstance(tests, str):
        try:
            return str(len(_decode_tests(tests.encode("utf-8", "replace"))))
        except UNREADABLE:
            return "unknown"
    return str(sum(isinstance(t, str) for t in tests)) if isinstance(tests, list) else "unknown"


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


class Prediction(Struct):
    """The patch handed in for one instance."""

    instance_id: str
    model_name_or_path: str | None = None
    model_patch: str | None = None


_decode_instance = msgspec.json.Decoder(Instance).decode
_decode_ratings = msgspec.json.Decoder(Ratings).decode
_decode_prediction = msgspec.json.Decoder(Prediction).decode
_LOOKED_AT = 65_536


def read(inputs: list[Input]) -> Reading:
    """Parts of attempts; no session is in these files."""
    reading = Reading()
    lists = [source for source in inputs if _reader_of(source) is submission_parts]
    for source in inputs:
        if source not in lists:
            reading.attempts += _reader_of(source)(source)
    handed_in: dict[str, list[str]] = {}
    for part in reading.attempts:
        if part.patch != [] and part.scope == "lent" and "patch" in part.kinds and part.task_id is not None:
            handed_in.setdefault(part.root, []).append(part.task_id)
    for source in lists:
        reading.attempts += submission_parts(source, handed_in)
    reading.attempts = at_home(reading.attempts)
    _spell(reading.attempts)
    reading.keys = {f"run:{p.goes_by}" for p in reading.attempts if p.scope == "trial" and p.goes_by is not None}
    return reading


def _spell(parts: list[Attempt]) -> None:
    """Models as predictions write them: folders and summaries are named with `__` for a slash."""
    predicted = [p.observed[MODEL] for p in parts if "patch" in p.kinds and MODEL in p.observed]
    written = {name.replace("/", "__"): name for name in predicted}
    for part in parts:
        name = part.observed.get(MODEL)
        if isinstance(name, str) and "patch" not in part.kinds:
            part.observed[MODEL] = written.get(name, name.replace("__", "/"))


def _reader_of(source: Input) -> Callable[[Input], list[Attempt]]:
    begin = bytes(source.data[:_LOOKED_AT])
    if begin.startswith(PARQUET):
        return row_parts
    if b'"patch_successfully_applied"' in bytes(source.data):
        return _report_parts
    return next((parts for mark, parts in _BY_MARK.items() if mark in begin), row_parts)


def _ratings_parts(source: Input) -> list[Attempt]:
    ratings = document(source.data, source.artifact, _decode_ratings)
    if ratings is None:
        return []
    saw(source.artifact, "ratings")
    return rating_parts(source, ratings)


def _report_parts(source: Input) -> list[Attempt]:
    report = document(source.data, source.artifact, _decode_object)
    if report is None:
        return []
    saw(source.artifact, "report")
    instances = each(list(report.values()), _decode_instance, source.artifact)
    tally(source.artifact, "instance", [None for decoded in instances if decoded is None])
    pairs = zip(report, instances, strict=True)
    return [_report_part(source, task_id, instance) for task_id, instance in pairs if instance is not None]


def _report_part(source: Input, task_id: str, instance: Instance) -> Attempt:
    verified = verification(instance)
    tried = evaluation_of(source.artifact.path, task_id)
    text = (
        f"verifier report of {task_id}: applied {instance.patch_successfully_applied}, resolved {instance.resolved},"
        f" fixed {_n_files(verified.fixed)}, unfixed {_n_files(verified.unfixed)},"
        f" kept {_n_files(verified.kept)}, broken {_n_files(verified.broken)}"
    )
    observed = {knob: tried[name] for name, knob in KNOBS if name in tried}
    fields = ["verification", "reward", *(f"knobs.{knob}" for knob in observed)]
    return Attempt(
        root=posixpath.dirname(source.artifact.path),
        scope="trial",
        task_id=canonical(task_id),
        goes_by=run_of(source.artifact.path, task_id),
        verification=verified,
        reward=None if instance.resolved is None else float(instance.resolved),
        patch=[] if instance.patch_exists is False or instance.patch_is_None else None,
        kinds=["verifier_report"],
        run_id=tried.get("run"),
        observed=observed,
        statements=[Statement(text=text, artifact_id=source.artifact.artifact_id, line=1, fields=fields)],
    )


def _n_files(tests: list[str] | None) -> str:
    return "unknown" if tests is None else str(len(tests))


def verification(instance: Instance) -> Verification:
    """Return the results of the tests, from either layout of a report.

    In layout A, PASS_TO_FAIL and FAIL_TO_FAIL list tests that the gold patch breaks or leaves broken. Regressions
    are PASS_TO_PASS failures.
    """
    status, applied = instance.tests_status, instance.patch_successfully_applied
    if not status:
        return Verification(patch_applies=applied, status="ok")
    if all(isinstance(v, list) for v in status.values()):
        tests = {k: v for k, v in status.items() if isinstance(v, list)}
        return Verification(
            layout="B",
            patch_applies=applied,
            fixed=tests.get("FAIL_TO_PASS", []),
            unfixed=[],
            kept=tests.get("PASS_TO_PASS", []),
            broken=tests.get("PASS_TO_FAIL", []),
            still_failing=tests.get("FAIL_TO_FAIL", []),
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


def _prediction_parts(source: Input) -> list[Attempt]:
    """One prediction beside its trajectory; or those of a run, as lines or by instance."""
    predictions = _predictions(source)
    saw(source.artifact, "prediction", len(predictions))
    if len(predictions) == 1 and is_beside(source.artifact.path, predictions[0].instance_id):
        part = _prediction_part(source, predictions[0])
        part.scope, part.goes_by = "trial", None
        return [part]
    # Nobody evaluates an empty patch, and an evaluation may fail: no report tells of what was handed in then.
    return known_by_all(source, [_prediction_part(source, p) for p in predictions])


def _predictions(source: Input) -> list[Prediction]:
    # JSON Lines: so named, or a line of it is a prediction by itself, whichever of them is broken.
    if source.artifact.path.endswith(".jsonl") or any(map(_is_prediction, bytes(source.data).split(b"\n"))):
        return [p for _, p in lines(source.data, source.artifact, _decode_prediction)]
    entries = document(source.data, source.artifact, _decode_entries_files)
    if entries is None:
        return []
    source.artifact.records += len(entries) - 1
    predictions = [p for p in each(entries, _decode_prediction, source.artifact) if p is not None]
    for _ in range(len(entries) - len(predictions)):
        skip(source.artifact, "bad_shape")
    return predictions


def _is_prediction(line: bytes) -> bool:
    try:
        _decode_prediction(line)
    except UNREADABLE:
        return False
    return True


def _decode_entries_files(data: memoryview | bytes) -> list[Raw]:
    """The predictions of one document: itself, a list, or by instance."""
    try:
        return _decode_list(data)
    except msgspec.ValidationError:
        document = _decode_object(data)
    return [Raw(bytes(data))] if "model_patch" in document else list(document.values())


def _prediction_part(source: Input, prediction: Prediction) -> Attempt:
    patch = (prediction.model_patch or "").replace("\r\n", "\n")
    files = patched_files(patch)
    text = f"prediction for {prediction.instance_id}: {', '.join(f.path for f in files) or 'nothing'}"
    model = prediction.model_name_or_path
    tried = of_submission(source.artifact.path)
    return Attempt(
        root=posixpath.dirname(source.artifact.path),
        scope="lent",
        task_id=canonical(prediction.instance_id),
        goes_by=name_of(source, model, prediction.instance_id),
        patch=files if files or not patch.strip() else None,
        patch_text_bytes=len(patch.encode("utf-8", "replace")) if patch.strip() else 0,
        kinds=["patch"],
        run_id=tried.get("run"),
        observed=({MODEL: model} if model else {}) | {k: tried[n] for n, k in KNOBS if n in tried},
        statements=[
            Statement(text=text, artifact_id=source.artifact.artifact_id, line=1, fields=["patch", f"knobs.{MODEL}"])
        ],
    )


_BY_MARK: dict[bytes, Callable[[Input], list[Attempt]]] = {
    b'"model_name_or_path"': _prediction_parts,
    b'"submitted_instances"': summary_parts,
    b'"no_generation"': submission_parts,
    b'"rubrics_rating"': _ratings_parts,
    b'"overall_rating"': _ratings_parts,
}
"""Kinds of files by keys at their beginning."""
