"""TRAIL: a span of kind LLM is a model call, with its tokens among the attributes, as words or as numbers. One
that is written twice is one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.oracles import Count


def _spans(spans: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for span in spans or ():
        if isinstance(span, dict):
            yield str(span.get("span_id")), span.get("span_attributes") or {}
            yield from _spans(span.get("child_spans"))


def count(data: bytes) -> Count:
    spans = dict(_spans(json.loads(data).get("spans"))).values()
    calls = [facts for facts in spans if facts.get("openinference.span.kind") == "LLM"]
    return Count(
        input=sum(int(a.get("llm.token_count.prompt") or 0) for a in calls),
        output=sum(int(a.get("llm.token_count.completion") or 0) for a in calls),
    )
