"""OpenTelemetry traces of model calls, tools and agents: OTLP JSON by the `gen_ai.*` conventions.

One document, or a line for every batch. No real file was at hand: this is after the conventions 1.28 to 1.41.
"""

import re

from agentsignals.formats import Claim, Format, pieces_by
from agentsignals.formats.records import CUT, Head

_BATCHES = ("resourceSpans", "resourceLogs")
_GENAI = re.compile(r'"key"\s*:\s*"gen_ai\.|"gen_ai\.(?:user|system|assistant|tool|choice|client)')
_TRACE = re.compile(r'"traceId"\s*:\s*"([0-9A-Za-z+/=]{8,64})"')
_CONVERSATION = re.compile(r'"gen_ai\.conversation\.id"\s*,\s*"value"\s*:\s*\{\s*"stringValue"\s*:\s*"([^"\\]{1,200})"')


def claims(head: Head) -> Claim | None:
    """A batch of spans or logs that speaks of generative AI. Keys: the conversations and traces at its beginning."""
    document = head.document
    batch = next((document[k] for k in _BATCHES if k in document), None)
    if not (batch is CUT or isinstance(batch, list)) or _GENAI.search(head.text) is None:
        return None
    conversations = [f"otel:{c}" for c in _CONVERSATION.findall(head.text)]
    return Claim(keys=list(dict.fromkeys(conversations + [f"otel:{t}" for t in _TRACE.findall(head.text)])))


FORMAT = Format(
    name="otel-genai", marks=(b'"gen_ai.',), version=4, claims=claims, pieces=pieces_by("otel_genai.reader")
)
