"""Tools of the agents whose runs TRAIL holds."""

import posixpath
import re

from agentsignals.formats import Claim, Format
from agentsignals.formats.profile import ASIDE, NO_SHELL, READ, SEARCH, SHELL, WEB, Profile, named
from agentsignals.formats.records import CUT, Head

INTERPRETER = "python_interpreter"
PROFILE = Profile(
    tools=named(
        (NO_SHELL, INTERPRETER),
        (WEB, "web_search visit_webpage page_up page_down wikipedia_search"),
        (READ, "inspect_file_as_text read_file visualizer"),
        (SEARCH, "find_on_page_ctrl_f find_next"),
        (SHELL, "bash shell"),
        (ASIDE, "final_answer"),
    )
)


_SPAN = re.compile(r'"(?:child_spans|span_attributes|parent_span_id)"\s*:')
_SCORE = re.compile(r'"(?:reliability_score|plan_opt_score|instruction_adherence_score)"\s*:')
_ERROR_KEYS = frozenset(("category", "location", "impact"))


def claims(head: Head) -> Claim | None:
    """`trace_id` with a tree of `spans`; or lists of `errors` and `scores`, as TRAIL's annotators gave them."""
    document = head.document
    trace_id = document.get("trace_id")
    spans = document.get("spans")
    are_spans = isinstance(spans, list) and all(isinstance(span, dict) and "span_id" in span for span in spans[:1])
    is_trace = _SPAN.search(head.text) is not None if spans is CUT else are_spans
    if isinstance(trace_id, str) and trace_id and is_trace:
        return Claim(keys=[f"trace:{trace_id}"])
    errors, scores = document.get("errors"), document.get("scores")
    if not isinstance(errors, list) or not (scores is CUT or isinstance(scores, list)):
        return None
    is_marked = any(isinstance(error, dict) and len(_ERROR_KEYS & error.keys()) > 1 for error in errors[:1])
    is_annotation = is_marked or _SCORE.search(head.text) is not None
    return Claim(keys=[f"trace:{trace_id_of(trace_id, head.path)}"]) if is_annotation else None


def trace_id_of(stated_id: object, path: str) -> str:
    """The trace an annotation file is about; one that does not say is named for it."""
    return stated_id if isinstance(stated_id, str) and stated_id else posixpath.basename(path).partition(".")[0]


FORMAT = Format(name="trail", marks=(b'"trace_id"', b'"errors"'), version=3, claims=claims, profile=PROFILE)
