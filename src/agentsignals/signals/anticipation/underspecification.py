"""What the person asked for: how precisely, and whether the work stayed with it."""

from __future__ import annotations

import math
import re

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent, Turn
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.language import language_of
from agentsignals.words.lexicon import clean
from agentsignals.words.text import count_tokens, lowered

SHORT_CHARS = 20
"""A shorter text has no language (design/signals.md#language)."""
LONG_TOKENS, TOKENS_SPAN = 40, 35
"""A prompt of 40 tokens is no longer vague for its length, one of 5 as vague as can be
(design/signals.md#underspecification)."""
_WEIGHTS = (0.40, 0.30, 0.30)
_SEARCHED = 4000
"""Characters of a prompt that are looked through; who writes more says what it is about in them."""

_REFERENCES = (
    ("`", r"```|`[^`\n]{1,200}`"),
    ("://", r"\bhttps?://\S"),
    ("/", r"(?<![\w/.-])[\w.-]{0,80}/[\w./-]{1,200}\.\w{1,8}\b"),
    (
        ".",
        r"(?<![\w.-])[\w-]{1,60}(?:\.[\w-]{1,30}){0,3}"
        r"\.(?:[a-z]{1,4}|[a-z]{2}\d|jsonl?|json5|ipynb|swift|scala|astro|svelte|proto)\b(?!\.\w)",
    ),
    ("", r"\b[a-z]{1,40}(?:[A-Z][a-z0-9]{1,40}){1,8}\b|\b(?:[A-Z][a-z0-9]{1,40}){2,8}\b"),
    ("_", r"\b[A-Za-z0-9]{1,40}(?:_[A-Za-z0-9]{1,40}){1,8}\b"),
    ("()", r"\b\w{2,60}\(\)"),
    ("--", r"(?<![\w-])--[a-z][\w-]{1,40}"),
    ("#", r"(?<![\w&])#\d{1,6}\b"),
    ("-", r"\b(?!UTF|SHA|GPT|ISO|MP)[A-Z]{2,10}-\d{1,6}\b"),
    (
        "",
        r"\b(?:[Pp][Rr]|[Ii]ssue|[Bb]ranch|[Cc]ommit|[Tt]icket) "
        r"#?(?:\d{1,6}\b|[0-9a-f]{7,40}\b|[\w.-]{1,60}/[\w.-])",
    ),
    ("", r"\b(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}\b"),
    ("[", r"\[(?:Image|Pasted|File)[^\]\n]{0,80}\]"),
    ("@", r"(?<!\w)@[\w./-]{2,}"),
    ("Traceback (", r"Traceback \("),
    ("at ", r"\n\s{1,20}at \w"),
)
"""Something concrete (a path, code, an identifier, a call, a flag, a link, a number of an issue, an attachment), each
behind a part that it can't do without."""
_LIKE_IDENTIFIERS = (
    "GitHub GitLab JavaScript TypeScript OpenAI PostgreSQL MySQL GraphQL DevOps LaTeX YouTube LinkedIn WordPress"
    " MongoDB SQLite DuckDB PyTorch TensorFlow NumPy FastAPI NextJS NodeJS VSCode DeepSeek ChatGPT PowerShell macOS"
    " MacOS iOS iPhone iPad e.g i.e etc.and Node.js Next.js Vue.js"
)
_NAMES = frozenset(_LIKE_IDENTIFIERS.split())
"""Names of products, and abbreviations, that look like identifiers and refer to nothing in the work."""
_OUTCOME = re.compile(
    r"\b(?:should(?:n't)?|must|expect(?:s|ed)?|so that|instead of|returns?|outputs?|shows?|prints?|fails? with|until"
    r"|such that|acceptance|wants? (?:it|the|this|to|that)|needs? to|ensure|make sure|without|errors?|results?)\b"
    r"|\bwhen\b[^.\n]{1,80}\bthen\b"
)
"""How the person will know that it is done."""


@signal(
    "anticipation.prompt_underspecification",
    type="float",
    unit="score",
    origin="Agent Signals",
    source="derived",
    priority="P1",
    why="What goes wrong after a vague prompt says little about the agent.",
    pitfalls="1 is vague; its source's word on a low score means `prompt_quality`. “Review the branch” scores high"
    " and is clear in its place: no verdict by itself.",
)
def prompt_underspecification(
    view: SessionView, why: Evidence, first_message_pattern: str | Absent
) -> Measured | Absent:
    """How vague the first prompt is, 0..1: 0.4 for shortness, 0.3 for naming nothing concrete, 0.3 for no outcome."""
    if not view.turns:
        return Absent("not_applicable", "no_turns")
    first = view.turns[0]
    if first.kind in ("slash_command", "plan_handoff", "attachment"):
        return Absent("not_applicable", first.kind)
    if isinstance(first_message_pattern, Absent):
        return first_message_pattern
    if first_message_pattern in ("greeting", "attachment_only"):
        return Absent("not_applicable", first_message_pattern)
    text = clean(first.text)[:_SEARCHED]
    language = language_of(text)
    if language not in (None, "en"):
        return Absent("not_computable", f"language: {language}")
    return _vagueness(first, text, why)


def _reference(text: str) -> str | None:
    """The first words found that name something concrete."""
    for sign, pattern in _REFERENCES:
        if sign in text:
            for match in re.finditer(pattern, text):  # compiled when first needed, and kept
                if match[0] not in _NAMES:
                    return match[0]
    return None


def _vagueness(first: Turn, text: str, why: Evidence) -> Measured:
    n_tokens = count_tokens(text)
    short = min(max((LONG_TOKENS - n_tokens) / TOKENS_SPAN, 0.0), 1.0)
    reference = _reference(first.text[:_SEARCHED])
    outcome = _OUTCOME.search(lowered(text))
    is_question = text.rstrip().endswith("?")
    no_outcome = 0.0 if outcome else 0.5 if is_question else 1.0
    parts = (short, 0.0 if reference else 1.0, no_outcome)
    score = math.fsum(weight * part for weight, part in zip(_WEIGHTS, parts, strict=True))
    why.support([first], f"{n_tokens} tokens:")
    if reference:
        why.match(first, "reference", reference)
    if outcome:
        why.match(first, "outcome", text[outcome.start() : outcome.end()])
    why.rule("0.40 shortness (40 tokens: 0, 5: 1) + 0.30 no reference + 0.30 no outcome (half for a question)")
    detail = {"L": short, "R": parts[1], "O": no_outcome, "is_question": is_question, "prompt_quality": 1 - score}
    return Measured(score, detail)


@signal(
    "chat.prompt_language",
    type="str",
    unit="ISO 639-1",
    level="turn",
    origin="swe-chat",
    source="derived",
    priority="P2",
    why="Patterns of words here are English: in another language they say nothing.",
    pitfalls="By script and small words, 20 languages: of real prompts 94 in 100 get one. A short prompt full of code"
    " speaks for none.",
)
def prompt_language(view: SessionView, why: Evidence) -> list[str | Absent]:
    """The language of the turn's own words, without code, links and pasted text."""
    why.support(view.turns)
    return [_language(t) for t in view.turns]


def _language(turn: Turn) -> str | Absent:
    text = clean(turn.text)
    if len(text) < SHORT_CHARS:
        return Absent("not_applicable", "under_20_characters")
    return language_of(text) or Absent("not_computable", "n_too_small")


_NOT_WRITTEN_BY_HAND = re.compile(
    r"(?:^|/)(?:node_modules|dist|vendor|__generated__|__snapshots__|tmp|\.venv|__pycache__)/"
    r"|(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml|npm-shrinkwrap\.json|go\.sum|bun\.lockb|packages\.lock\.json)$"
    r"|\.lock$|\.min\.(?:js|css)$|\.(?:pb\.go|g\.dart|designer\.cs|snap|log|tmp|bak|orig|map)$|_pb2(?:_grpc)?\.py$"
    r"|\.generated\.\w+$|_generated\.\w+$|(?:^|/)(?:scratch|tmp|temp)[^/]*$"
)
"""Lock files, generated files and scratch: nobody would ask for them."""
_IN_PATHS = bytes(n if chr(n).isalnum() or chr(n) in "._-/" else ord(" ") for n in range(128)).ljust(256)
_FILE = re.compile(r"[\w-][\w.-]*\.[a-z][a-z0-9]{0,7}")
_NAMING = re.compile(r"[_-]|[a-z][A-Z]|\d")
"""A stem with one of these is a name, not a word that happens to be one ("main", "index")."""


@signal(
    "anticipation.scope_drift",
    type="float",
    unit="ratio",
    origin="Agent Signals",
    priority="P1",
    why="Work that grows past the request looks like thoroughness.",
    pitfalls="Method mention counts as asked for only what a turn names, so it says too much: call it drift above 2"
    " only with 3 or more unrequested files. Half of the sessions name no file.",
)
def scope_drift(view: SessionView, why: Evidence, touched_files: list[str]) -> Measured | Absent:
    """Files changed (generated, lock and scratch files left out) / those of them that a human turn names."""
    touched = [p for p in touched_files if view.in_repo(p) and not _NOT_WRITTEN_BY_HAND.search(p)]
    why.denominator(view.turns)
    if not touched:
        return Measured(0.0, {"num": 0, "den": 0, "method": "mention"})
    words = _path_words(view.turns)
    named = [p for p in touched if _is_named(p, words)]
    if not named:
        speaks_of_files = any(_FILE.fullmatch(word) for word in words)
        return Absent("not_computable", "zero_denominator" if speaks_of_files else "no_reference")
    asked_for = set(named)
    why.support((e for e in view.repo_edits if e.path in asked_for), "named by a turn:")
    why.counter((e for e in view.repo_edits if e.path not in asked_for), "named by none:")
    return ratio(len(touched), len(named), unrequested=len(touched) - len(named), method="mention")


def _path_words(turns: list[Turn]) -> frozenset[str]:
    """The words of the turns as names of files have them, each also without its folders."""
    text = "\n".join([t.text for t in turns])
    words = frozenset(text.encode("ascii", "replace").translate(_IN_PATHS).decode().split())
    plain = {w.strip("./") for w in words if "." in w or "/" in w}
    return words | plain | {w.rpartition("/")[2] for w in plain}


def _is_named(path: str, words: frozenset[str]) -> bool:
    """Whether its path, its name, or its name without the extension is among the words."""
    name = path.rpartition("/")[2]
    stem = name.partition(".")[0]
    return path in words or name in words or (len(stem) > 3 and _NAMING.search(stem) is not None and stem in words)
