"""Joins what the files of an eval run say: one session an attempt, with all that harness and verifier told of it."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator, Mapping

import msgspec

from agentsignals.ingest.identity import copies_of, is_own
from agentsignals.model import (
    MAIN,
    Artifact,
    Attempt,
    Edit,
    Event,
    Session,
    Statement,
    Step,
    ToolCall,
    Turn,
    Verification,
    copy_attempt,
    merge_attempts,
)
from agentsignals.views.failure import JUDGED, outcome_of

_UNSTARTED = 2**62
_VERDICT = (
    "reward", "rewards", "verification", "exit_status", "ending", "exception", "timed_out", "fault", "reward_counts",
)  # fmt: skip
_OF_ALL = (
    "wall_time_s", "agent_time_s", "input_tokens", "output_tokens", "cache_read_tokens", "cost_usd",
    "other_input_tokens", "other_output_tokens", "other_cost_usd", "summary",
)  # fmt: skip
_OF_FIRST = ("started_at",)
_OF_JUDGED = ("ended_at", "patch", "patch_text_bytes", "ratings", *_VERDICT)
"""Fields of a part about a whole trial that belong to all attempts, to the first, to the judged one."""


def attach_attempts(sessions: list[Session], parts: list[Attempt], artifacts: dict[str, Artifact]) -> list[Session]:
    """Return the group's sessions: those of trials in the eval context with their attempt, and one for each attempt
    without a conversation.

    `artifacts` by id: the place of a session's file tells which trial it is part of.
    """
    not_lent = _gather_parts([p for p in parts if p.scope != "lent"])
    if not not_lent:
        return sessions
    lent = [p for p in parts if p.scope == "lent"]
    of_steps = {folder for p in not_lent if p.scope == "step" for folder in _above(p.root)}
    not_lent = _assign_roots(not_lent)
    home_of = _copied(not_lent)
    for part in not_lent:
        part.root = home_of.get(part.root, part.root)
    source_of = _regraded(not_lent)
    for part in not_lent:  # a regrade has a copy of the conversation
        if part.session_artifact is not None:
            part.root = source_of.get(part.root, part.root)
    roots = {p.root for p in not_lent}
    assembled: list[Session] = []
    runs: dict[str, list[Session]] = {}
    root_of: dict[tuple[str, str | None], str] = {}
    for part in not_lent:  # a table has thousands of sessions and parts
        if part.session_artifact is not None:
            root_of.setdefault((part.session_artifact, part.session_id), part.root)
    for session in sessions:
        root = root_of.get((session.artifact_id, session.session_id)) or root_of.get((session.artifact_id, None))
        if root is None and (artifact := artifacts.get(session.artifact_id)) is not None:
            root = next((folder for folder in _above(artifact.path) if folder in roots or folder in home_of), None)
        if root is None:
            assembled.append(session)
        else:
            root = home_of.get(root, root)
            runs.setdefault(source_of.get(root, root), []).append(session)
    by_root: dict[str, list[Attempt]] = {}
    for part in not_lent:
        by_root.setdefault(part.root, []).append(part)
    lent_to: dict[str, list[Attempt]] = {"": [], **{p.task_id: [] for p in lent if p.task_id is not None}}
    for part in lent:  # a leaderboard has tens of thousands
        for task in lent_to if part.task_id is None else (part.task_id,):
            lent_to[task].append(part)
    trials: dict[str, list[Session]] = {}
    for root in sorted(roots):
        here = by_root[root]
        met = _without_conversions(runs.get(root, []), here, artifacts)
        if root in of_steps and len(met) > 1:
            conversations = {(s.artifact_id, s.session_id) for s in met if s.parent_session_id is None}
            met = _joined(met)
            for part in here:
                if (part.session_artifact, part.session_id) in conversations:
                    part.session_artifact, part.session_id = met[0].artifact_id, met[0].session_id
        trials[root] = _trials(root, here, met, lent, lent_to)
    for root in sorted(source_of):
        trial = trials[source_of[root]]
        if any(session.attempt is not None for session in trial):  # else the regrade stays an attempt by itself
            _add_verdicts(trial, trials.pop(root, []))
    return assembled + [session for made in trials.values() for session in made]


def _copied(parts: list[Attempt]) -> dict[str, str]:
    """Return the first folder with a trial's record, by the other folders that have a copy of it."""
    records: dict[str, set[tuple[str, str]]] = {}
    for part in parts:
        if part.record_id is not None:
            records.setdefault(part.root, set()).add((part.record_id, part.task_id or ""))
    first: dict[tuple[str, str], str] = {}
    homes = {root: first.setdefault(min(own), root) for root, own in sorted(records.items()) if len(own) == 1}
    return {root: home for root, home in homes.items() if root != home}


def _regraded(parts: list[Attempt]) -> dict[str, str]:
    """Return the folder of the trial whose work was judged again, by the folder of the regrade. A regrade whose trial
    is not here is an attempt by itself."""
    folders = {p.record_id: p.root for p in parts if p.record_id is not None}
    source_of = {p.root: folders[p.regrade_of] for p in parts if p.regrade_of in folders}
    found: dict[str, str] = {}
    for root in source_of:
        way = [root]
        while (above := source_of.get(way[-1])) is not None and above not in way:
            way.append(above)
        if above is None and len(way) > 1:
            found[root] = way[-1]
    return found


def _add_verdicts(trial: list[Session], regrade: list[Session]) -> None:
    """Add the verdict of a regrade to the attempt whose work it judges again. It holds where that had none; verdicts
    that differ are a conflict, and none is chosen."""
    attempts = [(s, s.attempt) for s in trial if s.attempt is not None]
    session, attempt = next((pair for pair in attempts if pair[1].is_handed_in), attempts[-1])
    for again in regrade:
        if (other := again.attempt) is None or (verdict := outcome_of(again)) is None:
            continue
        rewards, named = (
            one.rewards or ({"reward": one.reward} if one.reward is not None else {}) for one in (attempt, other)
        )
        before = outcome_of(session)
        is_judged = before is not None and before.name in JUDGED
        if verdict.name in JUDGED and not is_judged and "reward" not in attempt.conflicts:
            for statement in attempt.statements:
                statement.fields = [field for field in statement.fields if field not in _VERDICT]
            for name in _VERDICT:
                setattr(attempt, name, getattr(other, name))
        elif verdict.name in JUDGED and (verdict.name, other.reward) != (before and before.name, attempt.reward):
            attempt.conflicts += ["reward"] if "reward" not in attempt.conflicts else []
        attempt.rewards = {**rewards, **{f"{other.trial_id}.{name}": value for name, value in named.items()}} or None
        said = [s for s in other.statements if not set(_VERDICT).isdisjoint(s.fields) and s not in attempt.statements]
        attempt.statements += said
        _cite(session, said)


def _assign_roots(parts: list[Attempt]) -> list[Attempt]:
    """Move parts in folders below a trial (its verifier's, its agent's) to that trial, and what is known of its steps
    into one part of the trial."""
    roots, steps = {p.root for p in parts}, {p.root for p in parts if p.scope == "step"}
    kept: list[Attempt] = []
    of_steps: dict[str, list[Attempt]] = {step: [] for step in steps}
    for part in parts:
        step = next((f for f in (part.root, *_above(part.root)) if f in steps), None)
        outermost = next((f for f in reversed(list(_above(part.root))) if f in roots), part.root)
        if step is None:
            part.root = outermost
            kept.append(part)
        elif part.session_artifact is None:
            of_steps[step].append(part)
        else:  # its totals are of one step
            kept.append(msgspec.structs.replace(part, root=outermost, **dict.fromkeys(_OF_ALL)))
    trials: dict[str, list[str]] = {}
    for step in sorted(steps):
        trials.setdefault(next((f for f in _above(step) if f in roots and f not in steps), step), []).append(step)
    for trial, names in trials.items():
        kept.append(_of_steps(trial, {posixpath.basename(n): merge_attempts(of_steps[n]) for n in names}))
    return kept


def _of_steps(trial: str, steps: dict[str, Attempt]) -> Attempt:
    """Return the part of a trial that its steps tell, by their names: rewards and tests of each, under its name."""
    part = Attempt(root=trial, scope="trial")
    verified = Verification()
    started = {step.agent_started for step in steps.values()}
    part.agent_started = True if True in started else False if started == {False} else None
    for name, step in steps.items():
        alone = {} if step.reward is None or step.rewards else {f"{name}.reward": step.reward}
        part.rewards = {**(part.rewards or {}), **(step.rewards or alone)} or None
        part.fault = part.fault or step.fault
        if step.patch is not None:  # of the last one that left a patch
            part.patch, part.patch_text_bytes = step.patch, step.patch_text_bytes
        for statement in step.statements:
            statement.fields = ["rewards" if field == "reward" else field for field in statement.fields]
        part.statements += step.statements
        part.kinds += step.kinds
        if (tests := step.verification) is None:
            continue
        for kind in Verification.__struct_fields__:
            if isinstance(found := getattr(tests, kind), list):
                setattr(verified, kind, [*(getattr(verified, kind) or []), *(f"{name}/{test}" for test in found)])
        if verified.status == "ok":
            verified.status, verified.message = tests.status, tests.message
        part.verification = verified
    return part


def _joined(sessions: list[Session]) -> list[Session]:
    """Return the conversations of a trial's steps as one session, in their order; subagents' stay by themselves."""
    own = sorted((s for s in sessions if s.parent_session_id is None), key=_order)
    if len(own) < 2:
        return sessions
    whole = own[0]
    for later in own[1:]:
        seq, turn, step = len(whole.events), len(whole.turns), len(whole.steps)
        moved: list[Event | Turn | Step | ToolCall | Edit] = [
            *later.events, *later.turns, *later.steps, *later.tool_calls, *later.edits
        ]  # fmt: skip
        for row in moved:
            row.seq += seq
            row.turn = None if row.turn is None else row.turn + turn
            if not isinstance(row, Turn | Edit) and row.step is not None:
                row.step += step
            if isinstance(row, ToolCall) and row.result_seq is not None:
                row.result_seq += seq
            if isinstance(row, Step) and row.input_in_step is not None:
                row.input_in_step += step
        for name in ("events", "turns", "steps", "tool_calls", "edits", "checkpoints"):
            getattr(whole, name).extend(getattr(later, name))
        ends = [at for at in (whole.ended_at, later.ended_at) if at is not None]
        whole.ended_at = max(ends, default=None)
    return [whole, *(s for s in sessions if s.parent_session_id is not None)]


def _above(folder: str) -> Iterator[str]:
    while (folder := posixpath.dirname(folder)) and folder != posixpath.dirname(folder):
        yield folder


def _without_conversions(
    sessions: list[Session], parts: list[Attempt], artifacts: dict[str, Artifact]
) -> list[Session]:
    """Drop the harness's conversions of conversations whose own file is there too. A conversion that began while an
    agent's session ran is the same conversation; what it says of the attempt goes to that session."""
    kept: list[Session] = []
    agent_sessions = [s for s in sessions if is_own(s)]
    printed = dict(copies_of(sessions))
    for session in sessions:
        same = (
            next((o for o in agent_sessions if _is_same_conversation(o, session)), None)
            if not is_own(session)
            else None
        )
        same = same or printed.get(id(session))
        if same is None:
            kept.append(session)
        else:
            for part in [p for p in parts if _belongs_to(p, session)]:
                part.session_artifact, part.session_id = same.artifact_id, same.session_id or None
            artifacts[session.artifact_id].note = f"converted from {same.artifact_id}"
    return kept


def _is_same_conversation(session: Session, other: Session) -> bool:
    if session.session_id and session.session_id == other.session_id:
        return True
    start, at, end = session.started_at, other.started_at, session.ended_at
    return start is not None and at is not None and end is not None and start <= at <= end


def _gather_parts(parts: list[Attempt]) -> list[Attempt]:
    """Move the parts of a trial whose files are in several folders to one: to that of its session, else to a folder
    that is its alone. Where several qualify, none is moved."""
    parts = _named_as_one_run(parts)
    named = [p for p in parts if p.goes_by is not None]
    if len({p.root for p in named}) < 2:
        return parts
    names: dict[str, set[str]] = {}
    roots: dict[str, set[str]] = {}
    lived_in: dict[str, set[str]] = {}
    for part in named:
        names.setdefault(part.root, set()).add(part.goes_by or "")
        roots.setdefault(part.goes_by or "", set()).add(part.root)
        if part.session_artifact is not None:
            lived_in.setdefault(part.goes_by or "", set()).add(part.root)
    with_session = {p.root for p in parts if p.session_artifact is not None}
    moves: dict[tuple[str, str | None], str] = {}
    for name, holding in roots.items():
        homes = lived_in.get(name) or {r for r in holding if len(names[r]) == 1}
        if len(homes) == 1:
            home = next(iter(homes))
            moves |= {(r, name): home for r in holding if r not in with_session}
    # What lies in a trial's folder without a name of its own goes where the trial goes.
    moves |= {(r, None): home for (r, name), home in moves.items() if names[r] == {name}}
    return [
        msgspec.structs.replace(p, root=moves[p.root, p.goes_by]) if (p.root, p.goes_by) in moves else p for p in parts
    ]


def _named_as_one_run(parts: list[Attempt]) -> list[Attempt]:
    """Give verdicts the name of the conversation where a run keeps the two in folders side by side, by task, or the
    verdicts by model and task. Other folders that are named for models are of several candidates: there a verdict
    stays where it is."""
    told = {p.root: p for p in parts if p.session_artifact is not None and p.goes_by is not None}
    models_by_root: dict[str, set[str]] = {}
    for part in parts:
        named = (part.knobs.get("model_id"), part.observed.get("model_id"))
        models_by_root.setdefault(part.root, set()).update(_without_maker(m) for m in named if isinstance(m, str))
    of_sessions = {model for root in told for model in models_by_root[root]}
    conversations: dict[tuple[str, str, str], set[str]] = {}
    verdicts: dict[tuple[str, str, str], set[str]] = {}
    names_by_root: dict[tuple[str, str], str] = {}
    for part in parts:
        if part.goes_by is None:
            continue
        above, last = posixpath.split(part.root)
        task = (part.task_id or last).lower()
        model = _without_maker(posixpath.basename(above))
        if part.session_artifact is not None:  # `trajs/TASK/TASK.traj`, or `trajs/TASK.traj`
            place = posixpath.dirname(above) if last.lower() == task else above
            names_by_root[part.root, task] = part.goes_by
            for of in ("", *models_by_root[part.root]):
                conversations.setdefault((place, task, of), set()).add(part.root)
        elif last.lower() == task:
            place, of = (
                (posixpath.dirname(posixpath.dirname(above)), model)
                if model in of_sessions
                else (posixpath.dirname(above), "")
            )
            verdicts.setdefault((place, task, of), set()).add(part.root)
    names: dict[str, str] = {}
    for (place, task, of), roots in verdicts.items():
        homes = conversations.get((place, task, of), set())
        models = {m for root in (*homes, *roots) for m in models_by_root[root]}
        holders = {
            posixpath.basename(r if r.lower().rpartition("/")[2] != task else posixpath.dirname(r))
            for r in homes | roots
        }
        is_one_run = len(models) < 2 and not any(_without_maker(holder) in models for holder in holders)
        if place and len(homes) == len(roots) == 1 and homes != roots and (of or is_one_run):
            names[next(iter(roots))] = names_by_root[next(iter(homes)), task]
    return [
        msgspec.structs.replace(p, goes_by=names[p.root])
        if p.root in names and p.goes_by is not None and p.session_artifact is None
        else p
        for p in parts
    ]


def _without_maker(model: str) -> str:
    return model.replace("__", "/").rpartition("/")[2].lower()


def _belongs_to(part: Attempt, session: Session) -> bool:
    if part.session_artifact is None or part.session_artifact != session.artifact_id:
        return False
    return part.session_id is None or part.session_id == session.session_id


def _trials(
    root: str, parts: list[Attempt], sessions: list[Session], lent: list[Attempt], lent_to: Mapping[str, list[Attempt]]
) -> list[Session]:
    """Return the sessions of every trial in a folder: several where its parts name several tasks. `lent_to`: what may
    be lent to each task; to any other task what is under an empty name."""
    tied = [(s, [p for p in parts if _belongs_to(p, s)]) for s in sessions]
    loose = [p for p in parts if not any(p in session_parts for _, session_parts in tied)]
    tasks = list(dict.fromkeys(p.task_id for p in loose if p.task_id is not None))
    only = tasks[0] if len(tasks) == 1 else None
    trials: dict[str, list[tuple[Session | None, list[Attempt]]]] = {}
    for session, session_parts in tied:
        task = next((p.task_id for p in session_parts if p.task_id is not None), only)
        alone = task is None and not loose and len(tied) > 1
        name = f"#{session.artifact_id}#{session.session_id}" if alone else task or ""
        trials.setdefault(name, []).append((session, session_parts))
    for task in tasks:
        trials.setdefault(task, [])
    if not trials:
        trials[""] = []
    result: list[Session] = []
    for name in sorted(trials):
        task = name if name and not name.startswith("#") else None
        about = [p for p in loose if p.task_id in (None, task) or task is None]
        naming = [*(p for _, session_parts in trials[name] for p in session_parts), *about]
        given = lent if task is None else lent_to.get(task, lent_to[""])
        lent_parts = [p for p in given if _lends_to(p, root, task) and _is_about_trial(p, naming)]
        result += _attempts(_trial_id(root, name, naming, several=len(trials) > 1), trials[name], about, lent_parts)
    return result


def _is_about_trial(lent: Attempt, trial: list[Attempt]) -> bool:
    """True where a lent part is about this trial: by name, and by evaluation where both name one."""
    if lent.goes_by is None:
        return True
    runs = {p.run_id for p in trial if p.scope == "trial" and p.goes_by is not None and p.run_id is not None}
    of_table = lent.run_id is None and not lent.kinds  # it names the run by any folder above the trial
    by_run = (f"{run}/{p.task_id}" for p in trial for run in (p.run_id, *(p.root.split("/") if of_table else ())))
    named = any(p.goes_by == lent.goes_by for p in trial) or lent.goes_by in by_run
    return named and (lent.run_id is None or not runs or lent.run_id in runs)


def _lends_to(part: Attempt, root: str, task: str | None) -> bool:
    below = not part.root or root == part.root or root.startswith(part.root + "/")
    if part.only_below is not None and not root.startswith(f"{part.root}/{part.only_below}"):
        return False
    if part.task_id is None or part.task_id == task:
        return below
    # A trial that names no task gets what its own folder or one that is called like the task says.
    return below and task is None and (root == part.root or part.task_id in root[len(part.root) :].split("/"))


def _attempts(
    trial_id: str, tied: list[tuple[Session | None, list[Attempt]]], about: list[Attempt], lent: list[Attempt]
) -> list[Session]:
    """Return one session an attempt: attempts that say their index take it, other sessions follow by time."""
    singles = [p for p in about if p.scope == "attempt"]
    shared = [p for p in about if p.scope == "trial"] + lent
    by_index: dict[int, list[Attempt]] = {}
    for part in singles:
        by_index.setdefault(part.attempt_index or 0, []).append(part)
    taken: dict[int, tuple[Session | None, list[Attempt]]] = {}
    tied = sorted(tied, key=lambda pair: _order(pair[0]))
    for session, session_parts in tied:
        if not session_parts and not about and not lent:
            continue  # it lies beside the trial's sessions, and nothing speaks of it
        if session is not None and session.parent_session_id is not None and len(tied) > 1:
            continue
        index = next((p.attempt_index for p in session_parts if p.attempt_index is not None), None)
        if index is None or index in taken:
            index = next(n for n in range(len(tied) + len(by_index) + 1) if n not in taken)
        taken[index] = (session, session_parts)
    result = []
    indices = sorted({*taken, *by_index} or ({0} if about or lent else set()))
    told = {index: [*taken.get(index, (None, []))[1], *by_index.get(index, [])] for index in indices}
    judged = next((n for n, parts in told.items() if any(p.is_handed_in for p in parts)), indices[-1] if indices else 0)
    for index in indices:
        session, _ = taken.get(index, (None, []))
        last = index == indices[-1]
        parts = [copy_attempt(p) for p in (*told[index], *shared)]
        if not parts:
            continue  # no file describes this session; the trial's files describe other attempts
        if len(indices) > 1:
            parts = [
                _restrict_to_attempt(p, first=index == indices[0], judged=index == judged)
                if p.scope in ("trial", "lent")
                else p
                for p in parts
            ]
        result.append(_attempt_session(trial_id, index, last, session, parts))
    _divide_wall_time(result, shared)
    return result + [s for s, _ in tied if s is not None and s.attempt is None]


def _divide_wall_time(sessions: list[Session], shared: list[Attempt]) -> None:
    """Give each of several attempts its part of the trial's duration: from its start, as the harness dates it, to the
    next one's. Where a start is missing, or they lie outside of the duration, none has a part."""
    told = next((p.wall_time_s for p in shared if p.wall_time_s is not None), None)
    attempts = [s.attempt for s in sessions if s.attempt is not None]
    starts = [a.started_at for a in attempts if a.started_at is not None and a.wall_time_s is None]
    if told is None or len(attempts) < 2 or len(starts) < len(attempts):
        return
    ends = [*starts[1:], starts[0] + round(told * 1e6)]
    if any(end < start for start, end in zip(starts, ends, strict=True)):
        return
    for attempt, start, end in zip(attempts, starts, ends, strict=True):
        attempt.wall_time_s = (end - start) / 1e6
        for statement in attempt.saying("started_at") or attempt.saying("attempt_index"):
            statement.fields.append("wall_time_s")


def _restrict_to_attempt(part: Attempt, first: bool, judged: bool) -> Attempt:
    """Keep of a part about a whole trial what is true of one of its attempts: a verdict is of the one that was handed
    in, else the last, and totals are of none."""
    unsaid = [*_OF_ALL, *(() if first else _OF_FIRST), *(() if judged else _OF_JUDGED)]
    for statement in part.statements:
        statement.fields = [f for f in statement.fields if f not in unsaid]
    return msgspec.structs.replace(part, **dict.fromkeys(unsaid))


def _order(session: Session | None) -> tuple[int, str]:
    if session is None:
        return _UNSTARTED, ""
    return (session.started_at if session.started_at is not None else _UNSTARTED), session.session_id


def _attempt_session(trial_id: str, index: int, last: bool, session: Session | None, parts: list[Attempt]) -> Session:
    """Merge what files say of an attempt, and give it its session, or an empty one where no log was read."""
    attempt = merge_attempts(parts)
    attempt.trial_id, attempt.attempt_index, attempt.is_last = trial_id, index, last
    if session is None:
        artifact = next((s.artifact_id for s in attempt.statements), "")
        agent = attempt.knobs.get("agent_type")
        session = Session(
            session_id="",
            context="eval",
            format="",
            agent=agent if isinstance(agent, str) else "",
            artifact_id=artifact,
        )
        session.started_at, session.ended_at = attempt.started_at, attempt.ended_at
        model = attempt.knobs.get("model_id")
        session.model = model if isinstance(model, str) else None
        version = attempt.knobs.get("agent_version")
        session.agent_version = version if isinstance(version, str) else None
    else:
        attempt.kinds = list(dict.fromkeys(["session_jsonl", *attempt.kinds]))
    session.context = "eval"
    session.session_id = session.session_id or f"{trial_id}#{index}"
    session.attempt = attempt
    _cite(session, attempt.statements)
    return session


def _cite(session: Session, statements: list[Statement]) -> None:
    """Append statements of harness and verifier as events, for values to cite."""
    for statement in statements:
        seq = len(session.events)
        session.events.append(
            Event(
                seq=seq,
                turn=None,
                step=None,
                thread=MAIN,
                kind=statement.kind,
                text=statement.text,
                n_chars=len(statement.text),
                timestamp=statement.at,
                artifact_id=statement.artifact_id,
                line=statement.line,
            )
        )
        statement.seq = seq


def _trial_id(root: str, trial: str, parts: list[Attempt], several: bool) -> str:
    """Return the trial's own id, else its folder's name, its parent's, and a mark for folders of one name."""
    named = next((p.trial_id for p in parts if p.trial_id is not None), None)
    if named is not None and not several:
        return named
    mark = hashlib.blake2b(f"{root}|{trial if several else ''}".encode(), digest_size=3).hexdigest()
    above, name = posixpath.split(root)
    place = (
        f"{trial}@{name}" if several and trial and not trial.startswith("#") else f"{posixpath.basename(above)}/{name}"
    )
    return f"{place}~{mark}"
