"""OpenTelemetry's spans of models: a span of `chat` is a model call, with its tokens; one of `execute_tool` a call."""

from __future__ import annotations

import json
from typing import Any

from tests.oracles import Count


def _facts(span: dict[str, Any]) -> dict[str, Any]:
    pairs = (span.get("attributes") or ()) if isinstance(span, dict) else ()
    return {p["key"].removeprefix("gen_ai."): next(iter(p["value"].values()), None) for p in pairs}


def count(data: bytes) -> Count:
    text = data.decode()
    exports = [json.loads(text)] if text.startswith("{\n") else [json.loads(line) for line in text.splitlines()]
    spans = [
        _facts(span)
        for export in exports
        for resource in export["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    chats = [facts for facts in spans if facts.get("operation.name") == "chat"]
    cached = sum(int(c.get("usage.cache_read.input_tokens") or 0) for c in chats)
    return Count(
        api_calls=len(chats),
        input=sum(int(c.get("usage.input_tokens") or 0) for c in chats) - cached,
        output=sum(int(c.get("usage.output_tokens") or 0) for c in chats),
        cache_read=cached,
    )
