"""Read SWE-bench's reports, summaries, predictions, ratings and dataset rows as parts of attempts."""

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Raw, Struct, field, structs

from agentsignals.changes.patches import patched_files
from agentsignals.formats import ANSWERS, ASKS, Input, Reading
from agentsignals.formats.documents import each, is_list, saw_again, tally
from agentsignals.formats.instances import (
    TrialsBelow,
    canonical,
    evaluation_of,
    home_of_results,
    of_submission,
    of_summary,
    run_of,
    run_of_model,
)
from agentsignals.formats.records import decoded, decoder, document, lines, saw, skip, string
from agentsignals.formats.rows import Lost, is_packed, lose, packed_rows
from agentsignals.formats.swe_bench import is_beside
from agentsignals.model import Attempt, Verification
from agentsignals.model.prices import maker

MODEL = "model_id"
KNOBS = (("model", MODEL), ("agent", "agent_type"), ("dataset", "dataset"), ("split", "split"))
"""Facts about the candidate in folder names, with their knobs."""
INSTANCES_MAX = 100_000
"""Limit of instances in a dataset. The largest today have some 20,000."""
_PATCH_CHARS = 4 * 1024 * 1024
_LOOKED_AT = 65_536


def read(inputs: list[Input]) -> Reading:
    """Parts of attempts; no session is in these files."""
    reading = Reading()
    lists = [source for source in inputs if _reader_of(source) is submission_parts]
    runs = {s.folder: posixpath.basename(s.folder) for s in lists if home_of_results(s.artifact.path) == s.folder}
    handed: list[tuple[Input, list[Attempt]]] = []
    by_model: dict[str, dict[str, set[str]]] = {}
    reported: dict[str, set[str]] = {}
    for source in inputs:
        parts = _reader_of(source)
        if parts is _prediction_parts:
            handed.append((source, _prediction_parts(source, runs.get(source.folder))))
        elif parts not in (submission_parts, summary_parts):
            reading.attempts += (made := parts(source))
            if parts is _report_parts and len(made) > 1:
                reported.setdefault(source.folder, set()).update(p.task_id for p in made if p.task_id is not None)
    for part in (part for _, made in handed for part in made):
        if part.scope == "lent" and part.task_id is not None and MODEL in part.observed:
            by_model.setdefault(part.root, {}).setdefault(part.observed[MODEL], set()).add(part.task_id)
    # One report of many instances is about the only predictions in its folder that have all of these. Of several it is
    # about none, and stays apart from them.
    judged = set()
    for folder, tasks in list(reported.items()):
        models = [model for model, had in by_model.get(folder, {}).items() if tasks <= had]
        if len(models) != 1:
            del reported[folder]
        for part in reading.attempts if models else ():
            if part.root == folder and part.task_id in tasks and part.task_id is not None:
                part.goes_by = run_of_model(models[0] if len(models) == 1 else "report", part.task_id)
                part.root = _root_of(part)
                judged.add(part.goes_by)
    for source, made in handed:
        # Nobody evaluates an empty patch, and an evaluation may fail: no report tells of what was handed in then.
        reading.attempts += known_by_all(source, made, judged=judged)
    for source in _newest_of_each(source for source in inputs if _reader_of(source) is summary_parts):
        reading.attempts += summary_parts(source, by_model.get(source.folder, {}))
    handed_in: dict[str, list[str]] = {}
    for part in reading.attempts:
        if part.patch != [] and part.scope == "lent" and "patch" in part.kinds and part.task_id is not None:
            handed_in.setdefault(part.root, []).append(part.task_id)
    for source in lists:
        reading.attempts += submission_parts(source, handed_in)
    reading.attempts = at_home(reading.attempts)
    # Models as predictions write them: folders and summaries are named with `__` for a slash.
    predicted = [p.observed[MODEL] for p in reading.attempts if "patch" in p.kinds and MODEL in p.observed]
    written = {name.replace("/", "__"): name for name in predicted}
    for part in reading.attempts:
        model = part.observed.get(MODEL)
        if isinstance(model, str) and "patch" not in part.kinds:
            part.observed[MODEL] = written.get(model, model.replace("__", "/"))
    reading.keys = {f"run:{p.goes_by}" for p in reading.attempts if p.scope == "trial" and p.goes_by is not None}
    reading.keys |= {f"{ASKS}report:{source.folder}" for source, _ in handed}
    reading.keys |= {f"{ANSWERS}report:{folder}" for folder in reported}
    return reading


def _newest_of_each(summaries: Iterable[Input]) -> Iterator[Input]:
    """Leave out reports that another one goes on with: of the same instances, with each verdict that the first has. The
    service's client saves a report anew under a name with a number."""
    states: list[tuple[Input, Summary]] = []
    for source in sorted(summaries, key=lambda source: source.artifact.path, reverse=True):
        told = decoded(source.data, Summary) or Summary()
        judged = [told.resolved_ids, told.unresolved_ids]
        later = (
            source.folder == other.folder and bool(told.submitted_ids) and told.submitted_ids == after.submitted_ids
            and all(map(set.issuperset, map(set, (after.resolved_ids, after.unresolved_ids)), judged))
            for other, after in states
        )  # fmt: skip
        if any(later):
            source.artifact.records += 1
            saw_again(source.artifact)
        else:
            states.append((source, told))
    return (source for source, _ in reversed(states))


def _reader_of(source: Input) -> Callable[[Input], list[Attempt]]:
    begin = bytes(source.data[:_LOOKED_AT])
    if is_packed(begin):
        return row_parts
    if b'"patch_successfully_applied"' in bytes(source.data):
        return _report_parts
    return next((parts for mark, parts in _BY_MARK.items() if mark in begin), row_parts)


def known_by_all(
    source: Input, parts: list[Attempt], others: Collection[str] = frozenset(), judged: Collection[str] = frozenset()
) -> list[Attempt]:
    """Return the parts that lend to existing trials. If the file is read for itself, add trials for instances without
    any other file: an outcome must be known whatever it is. `others`: tasks whose trials here are another model's.
    `judged`: trials in a report beside it."""
    named = source.named_trials
    if named is None:
        return parts
    folder = posixpath.basename(source.folder)
    evaluated = {name.partition("/")[2] for name in named if name.count("/") == 2}
    made = []
    for part in parts:
        is_named = (
            part.goes_by in named
            or part.goes_by in judged
            or (part.task_id not in others and f"{folder}/{part.task_id}" in named)
        )
        if part.run_id is not None and part.goes_by in evaluated:
            is_named = f"{part.run_id}/{part.goes_by}" in named  # another run of the model is another trial
        if part.goes_by and not is_named:
            made.append(structs.replace(part, scope="trial", root=_root_of(part)))
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
        moved += [structs.replace(part, root=root) for root in roots] if roots else [part]
    return moved


def _entries(data: memoryview | bytes) -> list[Raw]:
    """The objects of one document: itself, a list, or by instance."""
    try:
        listed: list[Raw] = decoder(list[Raw]).decode(data)
    except msgspec.ValidationError:
        whole = decoder(dict[str, Raw]).decode(data)
    else:
        return listed
    return [Raw(bytes(data))] if not whole.keys().isdisjoint(("instance_id", "model_patch")) else list(whole.values())


def _n(tests: object) -> str:
    """Count test ids, which datasets write as a list or as the JSON string of one."""
    if isinstance(tests, str):
        tests = decoded(tests.encode("utf-8", "replace"), list[str])
    return str(sum(isinstance(t, str) for t in tests)) if isinstance(tests, list) else "unknown"


# -- the report of an evaluation


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
    infra_failure: object = None
    """The harness's word (swebench 5) that the environment failed; without it a reason is a suspicion."""
    infra_failure_reason: object = None
    tests_status: dict[str, Outcome | list[str]] | None = None


def _report_parts(source: Input) -> list[Attempt]:
    """Return an attempt for each instance of a SWE-bench evaluation report."""
    report = document(source.data, source.artifact, decoder(dict[str, Raw]).decode)
    if report is None:
        return []
    saw(source.artifact, "report")
    if "patch_successfully_applied" in report:
        report = {posixpath.basename(source.folder): Raw(bytes(source.data))}
    instances = each(list(report.values()), decoder(Instance).decode, source.artifact)
    tally(source.artifact, "instance", [None for instance in instances if instance is None])
    parts = []
    for task_id, instance in zip(report, instances, strict=True):
        if instance is None:
            continue
        verified, tried = verification(instance), evaluation_of(source.artifact.path, task_id)
        observed = {knob: tried[name] for name, knob in KNOBS if name in tried}
        text = f"applied {instance.patch_successfully_applied}, resolved {instance.resolved}, {counted_tests(verified)}"
        fields = ("verification", "reward", *(f"knobs.{knob}" for knob in observed))
        part = Attempt(
            root=source.folder, scope="trial", task_id=canonical(task_id), run_id=tried.get("run"), observed=observed,
            goes_by=run_of(source.artifact.path, task_id), verification=verified, kinds=["verifier_report"],
            statements=source.states(f"verifier report of {task_id}: {text}", fields),
        )  # fmt: skip
        part.reward = None if instance.resolved is None else float(instance.resolved)
        why = string(instance.infra_failure_reason) or "failure of the environment"
        if instance.infra_failure is True:
            part.ending, part.exception = "infrastructure", why
            part.statements += source.states(f"{task_id}: infrastructure: {why}", ["ending", "exception"])
        elif instance.infra_failure_reason is not None and not instance.resolved:
            part.reward_counts, part.exception = False, f"ambiguous: {why}"
            part.statements += source.states(f"{task_id}: ambiguous: {why}", ["reward_counts", "exception"])
        part.patch = [] if instance.patch_exists is False or instance.patch_is_None else None
        parts.append(part)
    return parts


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
            layout="B", patch_applies=applied, fixed=tests.get("FAIL_TO_PASS", []), unfixed=[],
            kept=tests.get("PASS_TO_PASS", []), broken=tests.get("PASS_TO_FAIL", []),
            still_failing=tests.get("FAIL_TO_FAIL", []),
        )  # fmt: skip
    by = {k: v for k, v in status.items() if isinstance(v, Outcome)}
    target, safe, hopeless = (by.get(k, Outcome()) for k in ("FAIL_TO_PASS", "PASS_TO_PASS", "FAIL_TO_FAIL"))
    return Verification(
        layout="A", patch_applies=applied, fixed=target.success, unfixed=target.failure, kept=safe.success,
        broken=safe.failure, still_failing=hopeless.failure,
    )  # fmt: skip


def counted_tests(verified: Verification) -> str:
    """Count the tests by what became of them, in words."""
    return ", ".join(f"{name} {_n(getattr(verified, name))}" for name in ("fixed", "unfixed", "kept", "broken"))


# -- predictions


class Prediction(Struct):
    instance_id: str
    model_name_or_path: str | None = None
    model_patch: str | None = None


def _prediction_parts(source: Input, run: str | None = None) -> list[Attempt]:
    """One prediction beside its trajectory; or those of a run, as lines or by instance. `run`: its name, where a list
    of its outcomes lies in the same folder."""
    data, artifact, decode = source.data, source.artifact, decoder(Prediction).decode
    # JSON Lines: so named, or a line of it is a prediction by itself, whichever of them is broken.
    is_lines = artifact.path.endswith(".jsonl")
    if is_lines or any(decoded(line, Prediction) is not None for line in bytes(data).split(b"\n")):
        predictions = [p for _, p in lines(data, artifact, decode)]
    else:
        entries = document(data, artifact, _entries)
        artifact.records += len(entries) - 1 if entries is not None else 0
        predictions = [p for p in each(entries or [], decode, artifact) if p is not None]
        for _ in range(len(entries or ()) - len(predictions)):
            skip(artifact, "bad_shape")
    saw(artifact, "prediction", given := len(predictions))
    # Of several for one instance the harness takes the last.
    predictions = list({(p.instance_id, p.model_name_or_path): p for p in predictions}.values())
    if given > len(predictions):
        saw(artifact, "repeated", given - len(predictions))
    tried, parts = of_submission(artifact.path) or ({"run": run} if run else {}), []
    for prediction in predictions:
        patch = (prediction.model_patch or "").replace("\r\n", "\n")
        files, model = patched_files(patch), prediction.model_name_or_path
        text = f"prediction for {prediction.instance_id}: {', '.join(f.path for f in files) or 'nothing'}"
        name = tried.get("run") or model  # within a published submission the submission's, else the model's
        part = Attempt(
            root=source.folder, scope="lent", task_id=canonical(prediction.instance_id), kinds=["patch"],
            run_id=tried.get("run"), statements=source.states(text, ("patch", f"knobs.{MODEL}")),
        )  # fmt: skip
        part.goes_by = run_of_model(name, prediction.instance_id) if name else None
        part.patch = files if files or not patch.strip() else None
        part.patch_text_bytes = len(patch.encode("utf-8", "replace")) if patch.strip() else 0
        part.observed = ({MODEL: model} if model else {}) | {k: tried[n] for n, k in KNOBS if n in tried}
        parts.append(part)
    if len(parts) == 1 and is_beside(artifact.path, predictions[0].instance_id):
        parts[0].scope, parts[0].goes_by = "trial", None
    return parts


# -- lists of instances: the harness's summary, and the results of a published submission


class Summary(Struct):
    """Outcomes of the instances of one evaluation."""

    empty_patch_ids: list[str] = field(default_factory=list)
    error_ids: list[str] = field(default_factory=list)
    submitted_ids: list[str] = field(default_factory=list)
    resolved_ids: list[str] = field(default_factory=list)
    unresolved_ids: list[str] = field(default_factory=list)
    completed_ids: list[str] = field(default_factory=list)
    infra_failure_ids: list[str] = field(default_factory=list)
    """Unresolved because of the environment (swebench 5)."""
    ambiguous_failure_ids: list[str] = field(default_factory=list)
    """Unresolved, perhaps because of the environment."""
    failure_reasons: dict[str, str] = field(default_factory=dict)


def summary_parts(source: Input, handed_in: Mapping[str, Collection[str]] = MappingProxyType({})) -> list[Attempt]:
    """Return the parts of an evaluation's summary.

    Only it knows instances without a patch and those whose evaluation failed. Trials of the run whose report is
    missing learn from it whether they resolved. `handed_in`: instances of the predictions beside it, by model; a
    summary that lies with those of one model is about that model, whatever its name.
    """
    summary = document(source.data, source.artifact, decoder(Summary).decode)
    if summary is None:
        return []
    saw(source.artifact, "summary")
    listed = {*summary.submitted_ids, *summary.completed_ids, *summary.resolved_ids, *summary.unresolved_ids,
              *summary.empty_patch_ids, *summary.error_ids}  # fmt: skip
    ids, below = set(map(canonical, listed)), TrialsBelow(source.trials_below)
    told = below.evaluation(source.artifact.path, listed)
    evaluation = told or of_summary(source.artifact.path)
    models = [model for model, tasks in handed_in.items() if ids.issubset(tasks)]
    if told is None and len(models) == 1 and evaluation.get("model") not in handed_in:
        evaluation = {**evaluation, "model": models[0]}
    # Where it lists every trial below, it is about these: its name is a guess, and makes no second attempt. If the name
    # begins with a model, trials that say another model are not among them.
    model = evaluation.get("model", "")
    begins = model.replace("__", "/") if "__" in model or maker(model) is not None else ""
    others = {task for task in below.tasks if begins and below.is_of_other(task, begins)}
    judged = below.tasks - others if told is None and below.tasks <= ids else set()

    def part(instance: str, became: str, reward: float | None, *fields: str) -> Attempt:
        made = Attempt(
            root=source.judges or source.folder, scope="lent", task_id=canonical(instance), reward=reward,
            statements=source.states(f"evaluation summary: {instance} {became}", fields),
        )  # fmt: skip
        # The harness writes a model's slash as `__`: such a name begins with the model.
        if "__" in model or (model and posixpath.basename(source.folder) == evaluation["run"]):
            made.observed = {MODEL: model.replace("__", "/")}
        if canonical(instance) not in judged:
            made.run_id = evaluation["run"]
            made.goes_by = run_of_model(evaluation.get("model") or evaluation["run"], instance)
            made.observed = {knob: evaluation[word] for word, knob in KNOBS if word in evaluation}
        return made

    alone: list[Attempt] = []
    for instance in summary.empty_patch_ids:
        empty = part(instance, "empty_patch", 0.0, "exit_status", f"knobs.{MODEL}", "patch", "reward")
        empty.exit_status, empty.patch = "empty_patch", []
        alone.append(empty)
    for instance in summary.error_ids:
        failed = part(instance, "evaluation_error", None, "exit_status", f"knobs.{MODEL}", "verification")
        failed.exit_status, failed.ending = "evaluation_error", "verifier"
        failed.verification = Verification(status="crashed", message="the evaluation ended in an error")
        alone.append(failed)
    for one in alone:
        named = source.named_trials
        if one.goes_by is not None and named is not None and f"{one.run_id}/{one.goes_by}" not in named:
            one.scope, one.root = "trial", _root_of(one)  # else the evaluation left a log: it is lent to that
    resolved = known_by_all(source, [part(i, "resolved", 1.0, "reward") for i in summary.resolved_ids], others)
    unresolved = known_by_all(source, [part(i, "unresolved", 0.0, "reward") for i in summary.unresolved_ids], others)
    environment = []
    for instance in (*summary.infra_failure_ids, *summary.ambiguous_failure_ids):
        why = summary.failure_reasons.get(instance, "failure of the environment")
        if instance in summary.infra_failure_ids:
            environment.append(part(instance, f"infrastructure: {why}", None, "ending", "exception"))
            environment[-1].ending, environment[-1].exception = "infrastructure", why
        else:
            environment.append(part(instance, f"ambiguous: {why}", None, "reward_counts", "exception"))
            environment[-1].reward_counts, environment[-1].exception = False, f"ambiguous: {why}"
    ended = {*summary.resolved_ids, *summary.unresolved_ids, *summary.empty_patch_ids, *summary.error_ids}
    pending = [part(i, "without a verdict", None) for i in summary.submitted_ids if i not in ended]
    return environment + alone + resolved + unresolved + known_by_all(source, pending, others)


class Submission(Struct):
    """Outcomes of the instances of a published submission (`results.json`). Older ones list all submitted instances in
    `generated`."""

    resolved: list[str] = field(default_factory=list)
    no_generation: list[str] = field(default_factory=list)
    no_logs: list[str] = field(default_factory=list)
    generated: list[str] | None = None


def submission_parts(source: Input, handed_in: Mapping[str, Collection[str]] = MappingProxyType({})) -> list[Attempt]:
    """Return the parts of a submission's results.

    Today's lists name nobody who failed. Failures are known if `generated`, or the predictions (`handed_in`, by the
    submission's folder), lists all instances. Otherwise only instances that no report can cover are taken, and none if
    the resolved have no other files: either list alone gives a false rate.
    """
    results = document(source.data, source.artifact, decoder(Submission).decode)
    if results is None:
        return []
    saw(source.artifact, "results")
    tried, home = of_submission(source.artifact.path), home_of_results(source.artifact.path)
    if not tried and home == source.folder:
        tried = {"run": posixpath.basename(home)}

    def part(instance: str, became: str, reward: float | None) -> Attempt:
        run = tried.get("run")
        return Attempt(
            root=home, scope="lent", task_id=canonical(instance), run_id=run, reward=reward,
            goes_by=run_of_model(run, instance) if run else None, ending="verifier" if reward is None else None,
            observed={k: tried[n] for n, k in KNOBS if n in tried},
            statements=source.states(f"results: {instance} {became}", ["reward"]),
        )  # fmt: skip

    parts = [part(i, "no logs", None) for i in results.no_logs]
    parts += [part(i, "not resolved", 0.0) for i in results.no_generation]
    lent = [part(i, "resolved", 1.0) for i in results.resolved]
    generated = results.generated if results.generated is not None else handed_in.get(home)
    if generated is None:
        has_trials = any(part.goes_by in (source.named_trials or ()) for part in lent)
        return (known_by_all(source, parts) if has_trials else parts) + lent
    others = {canonical(i) for i in (*results.resolved, *results.no_generation, *results.no_logs)}
    lent += [part(i, "not resolved", 0.0) for i in generated if canonical(i) not in others]
    return known_by_all(source, parts + lent)


# -- what people say of the attempts of a task


class Ratings(Struct):
    """Grades by attempt. An attempt goes by the beginning of its folder's name (`trace_01` for `trace_01_<model>`)."""

    rubrics_rating: dict[str, dict[str, object]] = field(default_factory=dict)
    overall_rating: dict[str, dict[str, object]] = field(default_factory=dict)
    """`rating`, 1 (worst) to 5, and `rationale`."""


def rating_parts(source: Input, ratings: Ratings) -> list[Attempt]:
    """A part for each attempt that was judged, lent to the trial in its folder."""
    parts = []
    for name in dict.fromkeys((*ratings.overall_rating, *ratings.rubrics_rating)):
        overall, rubrics = ratings.overall_rating.get(name), ratings.rubrics_rating.get(name)
        judged: dict[str, Any] = {}
        if overall is not None:
            judged |= {name: overall.get(name) for name in ("rating", "rationale")}
        if rubrics is not None:
            passed = sum(value == "PASS" for value in rubrics.values())
            judged |= {"rubrics": rubrics, "rubrics_passed": passed, "rubrics_total": len(rubrics)}
        listed = ", ".join(f"{k} {v}" for k, v in judged.items() if k != "rubrics")
        stated = source.states(f"rated by people: {listed}", ["ratings"])
        parts.append(Attempt(root=source.folder, scope="lent", only_below=name, ratings=judged, statements=stated))
    return parts


def _ratings_parts(source: Input) -> list[Attempt]:
    ratings = document(source.data, source.artifact, decoder(Ratings).decode)
    if ratings is None:
        return []
    saw(source.artifact, "ratings")
    return rating_parts(source, ratings)


# -- rows of the dataset: a row next to its trial, or the whole dataset as one file (JSON, JSON Lines, Parquet)

_AT_HAND = 2
"""Datasets that stay decoded, because a run lends one to each of its trials."""
_read: dict[tuple[str, str], list[Attempt]] = {}
"""Decoded datasets by path and content: a row lends below its own folder."""


class Row(Struct):
    instance_id: str
    patch: str | None = None
    test_patch: object = None
    FAIL_TO_PASS: object = None
    PASS_TO_PASS: object = None


def row_parts(source: Input) -> list[Attempt]:
    """Return what a row lends to the trials below its folder. The rows of a whole dataset lend to trials anywhere."""
    key = (source.artifact.path, source.artifact.sha256) if source.lent and source.artifact.sha256 else None
    parts = _read.pop(key, None) if key is not None else None
    if parts is None:
        parts, instances = [], set()
        for n, (line, row) in enumerate(_rows(source)):
            if n >= INSTANCES_MAX:
                skip(source.artifact, "too_many_rows")
                break
            if row is None:
                skip(source.artifact, "bad_shape")
                continue
            instances.add(row.instance_id)
            if row.patch:
                parts.append(_gold_part(source, line, row, row.patch))
            else:
                skip(source.artifact, "no_gold_patch")
        saw(source.artifact, "dataset_row", len(parts))
        for part in parts if len(instances) > 1 else ():
            part.root = ""
    if key is not None:
        _read[key] = parts
        for oldest in list(_read)[:-_AT_HAND]:
            del _read[oldest]
    return parts


def _rows(source: Input) -> Iterator[tuple[int, Row | None]]:
    data, artifact = source.data, source.artifact
    if is_packed(data):
        for line, values in packed_rows(data, Row.__struct_fields__, _PATCH_CHARS):
            if isinstance(values, Lost):
                artifact.records += values.rows
                lose(artifact, values)
                continue
            artifact.records += 1
            try:
                yield line, msgspec.convert(values, Row)
            except msgspec.ValidationError:
                yield line, None
    elif not is_list(data) and decoded(bytes(data[: data.find(b"\n") + 1]), Row) is not None:
        yield from lines(data, artifact, decoder(Row).decode)  # the first line is a row by itself
    else:
        raws = document(data, artifact, _entries) or []
        artifact.records += max(len(raws) - 1, 0)
        yield from enumerate(each(raws, decoder(Row).decode, artifact), 1)


def _gold_part(source: Input, line: int, row: Row, patch: str) -> Attempt:
    files = patched_files(patch)
    text = f"gold patch of {row.instance_id}: {', '.join(f.path for f in files)}"
    text += f"; tests to fix: {_n(row.FAIL_TO_PASS)}, to keep: {_n(row.PASS_TO_PASS)}"
    if isinstance(row.test_patch, str) and (tests := patched_files(row.test_patch)):
        text += f"; the tests' patch: {', '.join(f.path for f in tests)}"
    return Attempt(
        root=source.folder, scope="lent", task_id=canonical(row.instance_id), gold_patch=files, kinds=["gold_patch"],
        statements=source.states(text, ["gold_patch"], line),
    )  # fmt: skip


_BY_MARK: dict[bytes, Callable[[Input], list[Attempt]]] = {
    b'"model_name_or_path"': _prediction_parts,
    b'"resolved_instances"': summary_parts,
    b'"no_generation"': submission_parts,
    b'"rubrics_rating"': _ratings_parts,
    b'"overall_rating"': _ratings_parts,
}
"""Kinds of files by keys at their beginning."""
