"""The plain text beside a trial, each file accounted for, with what it says of the attempt."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from agentsignals.formats import Input, Reading
from agentsignals.formats.records import UNREADABLE, saw, skip
from agentsignals.formats.swe_bench.columns import is_table
from agentsignals.formats.swe_bench.metadata import metadata_parts
from agentsignals.formats.swe_bench.ratings import Ratings, rating_parts
from agentsignals.formats.swe_bench.tables import table_parts
from agentsignals.model.attempt import Attempt, Statement

_RUBRICS = "Rubrics rating"
_OVERALL = "Overall rating"
_SUMMARY = re.compile(r"^[^\n]{0,80}\b\d{1,7} (?:passed|failed|errors?|skipped)\b[^\n]{0,200}$", re.MULTILINE)
_END = 8_000
_decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def read(inputs: list[Input]) -> Reading:
    reading = Reading()
    for source in inputs:
        if is_table(source.data):
            reading.attempts += table_parts(source)
            continue
        if posixpath.basename(source.artifact.path).endswith((".yaml", ".yml")):
            reading.attempts += metadata_parts(source)
            continue
        text = bytes(source.data).decode("utf-8", "replace")
        source.artifact.records += 1
        reading.attempts += _form(source, text) if _OVERALL in text else [_log(source, text)]
    return reading


def _log(source: Input, text: str) -> Attempt:
    """A log: that it is there, and the last summary of a test runner in it."""
    saw(source.artifact, "log")
    shown = [m[0].strip() for m in _SUMMARY.finditer(text[-_END:])]
    name = posixpath.basename(source.artifact.path)
    statement = Statement(
        text=f"{name}: {shown[-1] if shown else 'no summary'}",
        artifact_id=source.artifact.artifact_id,
        line=text.count("\n"),
        fields=[],
    )
    root = posixpath.dirname(source.artifact.path)
    return Attempt(root=root, scope="trial", kinds=["attempt_log"], statements=[statement])


def _form(source: Input, text: str) -> list[Attempt]:
    """A filled-in form: under its headings `Rubrics rating` and `Overall rating` stand JSON objects by attempt."""
    form: dict[str, Any] = {}
    for heading, name in ((_RUBRICS, "rubrics_rating"), (_OVERALL, "overall_rating")):
        rated = next(_objects_under(text, heading), None)
        if rated is not None:
            form[name] = rated
    try:
        ratings = msgspec.convert(form, Ratings)
    except UNREADABLE:
        ratings = Ratings()
    parts = rating_parts(source, ratings)
    if parts:
        saw(source.artifact, "rating_form")
    else:
        skip(source.artifact, "no_ratings")
    return parts


def _objects_under(text: str, heading: str) -> Iterator[Any]:
    """The first JSON object below a line that begins with the heading."""
    at = text.find(f"\n{heading}")
    begin = text.find("\n{", at) if at >= 0 else -1
    if begin >= 0:
        try:
            yield _decoder.raw_decode(text, begin + 1)[0]
        except (ValueError, RecursionError):
            return
