"""Swival: Claude Code's shape without tokens; a message may be written as a text."""

from __future__ import annotations

import json
from contextlib import suppress

from tests.oracles import Count, blocks, lines


def count(data: bytes) -> Count:
    done = Count(tool_calls=0)
    for row in lines(data):
        message = row.get("message")
        with suppress(ValueError):
            message = json.loads(message) if isinstance(message, str) else message
        if not isinstance(message, dict):
            continue
        for block in blocks(message.get("content")):
            done.tool_calls = (done.tool_calls or 0) + (block.get("type") == "tool_use")
            if block.get("type") == "tool_result" and block.get("is_error"):
                done.failed.add(block["tool_use_id"])
    return done
