"""The plain text in a Harbor trial's folders: the reward, the verifier's output, what ended the trial, the agent's log.

It means nothing outside a trial, and says little inside: the reward and the exception; the logs are accounted for.
"""

from __future__ import annotations

import posixpath
import re
from math import inf

from agentsignals.formats import Card, Claim, Format, Input, Material, Reading, patch, subq_eval_log, swe_bench_text
from agentsignals.formats.head import Head
from agentsignals.formats.records import saw, skip
from agentsignals.model import Attempt

_FOLDERS = frozenset(("agent", "verifier"))
_ENDINGS = (".txt", ".log", ".stdout", ".stderr")
_EXCEPTION = "exception.txt"
_REWARD = "reward.txt"
_MOST_OF_REWARD = 64
_END = 4_000
_RAISED = re.compile(r"^([A-Za-z_][\w.]{0,200}(?:Error|Exception|Exit|Interrupt|Timeout))(?::|$)", re.MULTILINE)


def claims(head: Head) -> Claim | None:
    """Claim a log by its path: it has no form of its own. Diffs and other harnesses' logs have their own readers."""
    folder, name = posixpath.split(head.path)
    in_place = posixpath.basename(folder) in _FOLDERS and name.endswith(_ENDINGS)
    if not in_place and name != _EXCEPTION:
        return None
    if any(other.claims(head) is not None for other in (patch, subq_eval_log, swe_bench_text)):
        return None
    return Claim(keys=[], companion=True)


def read(inputs: list[Input]) -> Reading:
    """Read a part of the trial from each file that says something of it."""
    reading = Reading()
    for source in inputs:
        artifact, data = source.artifact, source.data
        artifact.records += 1
        part = Attempt(root=source.folder, scope="trial", kinds=["attempt_log"])
        name = posixpath.basename(artifact.path)
        if name == _REWARD:
            try:
                reward = float(bytes(data[:_MOST_OF_REWARD]).decode("utf-8", "replace").strip())
            except ValueError:
                reward = inf
            if not abs(reward) < inf:
                skip(artifact, "no_number")
                continue
            saw(artifact, "reward")
            part.reward, part.statements = reward, source.states(f"verifier's reward: {reward}", ["reward"])
        elif name == _EXCEPTION:
            saw(artifact, "exception")
            # A traceback ends in the name of the exception and its message.
            start = max(len(data) - _END, 0)
            text = bytes(data[start:]).decode("utf-8", "replace")
            if raised := list(_RAISED.finditer(text)):
                last = raised[-1]
                part.exception = last[1].rpartition(".")[2]
                line = bytes(source.data[:start]).count(b"\n") + text.count("\n", 0, last.start()) + 1
                part.statements = source.states(text[last.start() :].split("\n", 1)[0], ["exception"], line)
        else:
            saw(artifact, "log")
        reading.attempts.append(part)
    return reading


CARD = Card(
    material=(Material("real", "the logs of one trial"),),
    limits=("They are for people: what they say is taken where it is printed in a form of its own.",),
)
FORMAT = Format(name="harbor-log", version=1, claims=claims, read=read, of_json=False, snapshots=False, card=CARD)
