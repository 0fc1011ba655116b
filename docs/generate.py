"""Writes the pages that say what the code says: `python -m docs.generate`; `--check` only tells which are stale.

docs/catalog.md comes from the declared signals, docs/cli.md from the grammar of the command line, docs/columns.md from
the tables' structs, docs/what-leaves.md from the list of ways out, docs/validation.md from what `agentsignals
validate` measured, docs/pictures from what the program prints of the demo, parts of README.md and docs/formats.md from
these figures and from the formats' samples.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

from conformance import table

from agentsignals.cli import build_parser, doors_table
from agentsignals.labels.validation import never_validated
from agentsignals.questions.drivers.predictors import hindsight_of
from agentsignals.signals import Signal
from agentsignals.signals.catalog import catalogue, validation
from agentsignals.stats.validation import PLANTED_CAVEAT, figures, planted_recall, share_text
from docs import columns, partly, patterns, pictures

HERE = Path(__file__).parent
_MADE = "<!-- made by `python -m docs.generate`; do not edit -->"
TERMS = {
    "Tables": (
        "`turns`, `steps`, `events`, `tool_calls`, `edits`, `checkpoints`, `labels` and `attempts` of a store "
        "(docs/columns.md). `seq` orders everything in a session."
    ),
    "Main thread": (
        "Rows with thread `main`. Every signal counts these alone, unless it says otherwise. Other threads are "
        "subagents, but for `abandoned` and `replayed`."
    ),
    "Human turn, human message, prompt": (
        "A row of `turns`. Turn n is the one numbered n, from 0. Unspoken turns are of kind plan_handoff, "
        "attachment or scripted_prompt. Rows of other tables belong to a turn by their `turn`."
    ),
    "Response": (
        "The main thread's `events` with the turn's number, from the first to the last of kind text, thinking, "
        "tool_call or tool_result. Without such an event there is no response."
    ),
    "Model call, step": "A row of `steps`.",
    "Call": (
        "A row of `tool_calls`. Its fine class is `class`, with two exceptions. For shell it follows `shell_kind`: "
        "write is shell_write, build is build, vcs is vcs, others are shell. For task it is agent."
    ),
    "Reading, test run": (
        "A call of class read: by a tool, or by a command that prints files (`cat`, `head`, `sed -n`). A call of "
        "class test: a command that runs tests."
    ),
    "Status": "ok, error (failed), rejected (the person refused), cancelled, unknown, none (no result).",
    "Commit": (
        "A main-thread call whose command has `git` and `commit`, and whose result has a line that begins with "
        "`[branch sha]`."
    ),
    "File of the repository": (
        "A relative path that does not begin with `/`, `~`, `../` or a drive; any path where the session has no `cwd`."
    ),
    "Change, edit": (
        "A row of `edits`: what an edit tool changed with success, or what a shell command says it writes, also "
        "where it failed. The first change is the first main-thread call that changed a file of the repository."
    ),
    "Target file": (
        "The `path` of a call of class read, search or edit that does not end in `/` and is not `.` or `..`; of a "
        "search only if its last part has a dot behind its first character."
    ),
    "Tokens of a text": (
        "Runs of word characters (letters, digits, `_`) and single other characters that are no blanks. `n_tokens` "
        "of a turn counts these."
    ),
    "Cleaned text": (
        "The text without code blocks and inline code, links, quoted lines, and pasted logs, tables and diffs. Its "
        "head is the first 320 characters."
    ),
    "Pattern table": (
        "Phrases of people (corrections, failure reports, rejection, acceptance, revert_all, gives_up) or of agents "
        "(hedges, asked, assumptions, self_corrections), in English: docs/patterns.md has all."
    ),
    "Prose, another language": (
        "The main thread's text events without fenced and inline code, text between <think> tags, quoted lines and "
        "text between double quotation marks. The agent writes another language where the first 500 characters of "
        "all prose have one other than English by the rule of chat.prompt_language: such values are absent "
        "(not_computable)."
    ),
    "Closing question": (
        "In the prose of a response's last text event, the last sentence that ends in `?` and is of kind preference "
        "or none, if it ends within the last 300 characters (docs/patterns.md, questions)."
    ),
    "Named file": (
        "Words of a turn are runs of letters, digits, `.`, `_`, `-` and `/`. One with a dot in its last part names "
        "files of that name, and with a slash also the files of its folder: those whose folder is an ending of it "
        "(`a/b`, `b`). One with a slash but no such dot names a folder and all in it: an ending of its path is one "
        "of a folder above the file. A turn says where to work if it limits the work, or if a word, or its part "
        "behind the last `/`, is the path, name or stem (anticipation.scope_drift) of a file of the repository that "
        "a call or edit has, or an ending of a folder above one."
    ),
    "Request, answer": (
        "The request is the first turn not of kind slash_command or attachment that has four tokens; its first "
        "8,000 characters. An answer is the text events of a response, joined by line breaks; the last 8,000 "
        "characters. Fenced code and links are taken out of both before the cut."
    ),
    "Calibrated distance": (
        "(1 - cosine, rounded to 4 digits, - aligned) / (unrelated - aligned), cut to 0..1, of vectors by an "
        "embedder. The default `words` has aligned 0.56 and unrelated 0.96 and counts words: runs of letters and "
        "digits, split before a capital behind a small letter or digit, in lower case, of two characters or more, "
        "without stop words (docs/patterns.md), cut to six. A value's detail has both numbers. No distance where a "
        "text has no words."
    ),
    "Judge's label": (
        "`value` (or `number`) of the row of `labels` with the signal's task, for the session (`turn` is NULL) or a "
        "turn. Of several labellers the best kind counts, then the one with most labels, then the youngest. Absent "
        "without one (backend_disabled, judge), and for a session without a main-thread text event "
        "(not_applicable)."
    ),
    "Facts, knob, report of an attempt": (
        "The facts are `attempts.facts`, the knobs `attempts.knobs` (both JSON). A knob is absent where it is "
        "missing; a number also where it is 0, null or a word for no limit. What the harness counted is `summary` "
        "of the facts (turns, tool_calls, edit_calls, touched_files), the patch `patch`, the report `verification`."
    ),
    "Absent": "A value whose need is absent is absent, too (dependency_null), unless its text says otherwise.",
    "Ratio": "Absent (not_computable, zero_denominator) where the denominator is 0. `num` and `den` are in the detail.",
}
"""Words that the definitions of signals share."""
_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "|*<>[]"})


def catalog_page() -> str:
    """Every signal by family: how to name it, what it means, where it misleads."""
    signals = sorted(catalogue().values(), key=lambda s: s.path)
    marked = sum(s.high_value for s in signals)
    lines = [
        _MADE,
        "",
        "# Catalogue of signals",
        "",
        f"{len(signals)} signals, {marked} of them marked ★ as high value. A value that is missing says why.",
        "`agentsignals inventory` lists and filters them; `agentsignals explain SESSION SIGNAL` shows the evidence.",
    ]
    lines += ["", "## Terms", "", *(f"* **{term}**: {_text(meaning)}" for term, meaning in TERMS.items())]
    for family, found in groupby(signals, key=lambda s: s.path.split(".")[0]):
        lines += ["", f"## {family}"]
        for one in found:
            lines += _entry(one)
    return "\n".join(lines) + "\n"


def _entry(one: Signal) -> Iterator[str]:
    context = "product and eval" if one.context == "both" else one.context
    yield from ("", f"### `{one.path}`{' ★' if one.high_value else ''}", "", _text(one.description), "")
    if one.computation:
        yield from (f"Computed: {_text(one.computation)}", "")
    yield f"* `{one.type}`, {_text(one.unit)}; per {one.level}; {context}; version {one.version}"
    yield f"* From {_text(one.origin)}"
    if one.why_it_matters:
        yield f"* Why: {_text(one.why_it_matters)}"
    if one.pitfalls:
        yield f"* Pitfalls: {_text(one.pitfalls)}"
    if measured := validation(one):
        yield f"* Basis: {one.basis}; {_text(measured)}"
    if one.needs:
        yield "* Needs: " + ", ".join(f"`{catalogue()[need].path}`" for need in one.needs)
    if read := hindsight_of(one):
        yield f"* Hindsight: reads {read}, so it is not used to predict outcomes"


_DEEDS = {
    "chat.prompt_intent": "a judge's; the shipped classifier labels where no judge did. Its shares are means of"
    " calibrated probabilities, and labellers are never mixed in one figure",
    "chat.pushback_type": "a heuristic; counts of corrections and failures are lower bounds, told beside each rate",
    "corpus.sentiment_label": "a judge's; counts by rules are lower bounds and carry their class's figure",
}
"""What was done about classes that are named wrongly as often as rightly, or nearly so."""


def validation_page() -> str:
    """Every figure by signal, and what was done about the low ones."""
    lines = [
        _MADE,
        "",
        "# How often signals are right",
        "",
        "`agentsignals labels validate --gold FILES` holds every signal with planted cases or gold labels against them."
        " Its figures are these; a version of the signal's that they were measured with stands in `figures.json`. The"
        " same words stand beside the numbers in report, page, frame, `compare`, `explain` and `inventory`.",
        "",
        "* **Planted cases** are made-up sessions whose truth is as written (`stats/validation/planted/`). Who wrote"
        " them knew the rules: they show what a rule can't do, and no share among real sessions.",
        "* **Gold** is real messages as one language model read them, which is no gold of people's."
        " The author of the sentiment rules had read it, so their figures are optimistic.",
        "* **Human prompts**: of 281 gold messages whose session is at hand, 276 are read as words of the person (245"
        " prompts, 16 with a refusal, 15 queued); three of the others differ by what was masked, two lie behind the end"
        " of the copy. Gold holds people's messages alone, so it tells of recall; precision is that of the planted"
        " cases (`user.user_turn_count`).",
        "",
        "| signal | class | n | named | true | precision | recall | kappa | truth |",
        "| --- | --- | ---: | ---: | ---: | --- | --- | ---: | --- |",
    ]
    for one in figures():
        shares = (share_text(one.precision, one.precision_interval), share_text(one.recall, one.recall_interval))
        kappa = "–" if one.kappa is None else f"{one.kappa:.2f}"
        cells = (f"`{one.signal}`", one.value, one.n, one.named, one.true, *shares, kappa, one.truth)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    low = dict.fromkeys(one.signal for one in figures() if one.misleads)
    lines += ["", "## Named wrongly as often as rightly, and what was done", ""]
    lines += ["No figure of such a class is a headline of the report.", "", "| signal | classes | what was done |"]
    lines += ["| --- | --- | --- |"]
    for path in dict.fromkeys([*low, *_DEEDS]):
        classes = dict.fromkeys(one.value for one in figures() if one.signal == path and one.misleads)
        lines.append(f"| `{path}` | {', '.join(classes) or 'none below one half'} | {_text(_DEEDS[path])} |")
    never = ", ".join(f"`{path}`" for path in never_validated())
    lines += ["", "## Never validated", "", f"They claim a meaning, and say so wherever they stand: {never}.", ""]
    return "\n".join([*lines, *_planted_weaknesses()]) + "\n"


def _planted_weaknesses() -> Iterator[str]:
    """What the rules of `scan` find of planted weak code, by language."""
    measured = planted_recall()
    yield from (
        "## Rules of `scan` on planted weak code",
        "",
        f"Scanner `{measured.scanner}`, version {measured.version}.",
        "",
    )
    yield f"{PLANTED_CAVEAT} `python -m benchmarks.weaknesses --read` prints each that was missed or flagged."
    yield from ("", "| language | recall | precision | none found of |", "| --- | --- | --- | --- |")
    for one in measured.languages:
        yield f"| {one.language} | {one.recall} | {one.precision} | {', '.join(one.missed) or '–'} |"


def cli_page() -> str:
    """Every verb with its arguments."""
    parser = build_parser()
    lines = [_MADE, "", "# Command line", "", _text(parser.description or ""), "", _text(parser.epilog or ""), ""]
    for name, verb in _verbs(parser).items():
        usage = " ".join(verb.format_usage().removeprefix("usage:").split())
        lines += [f"## {name}", "", _text(verb.description or ""), "", "```", usage, "```", ""]
        lines += [f"* {_argument(a)}" for a in verb._actions if not isinstance(a, argparse._HelpAction)]
        lines += ["", f"{_example(verb.epilog)}", ""] if verb.epilog else [""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The verbs of a parser, and of verbs that have verbs, by the words to type."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, verb in action.choices.items():
                found[name] = verb
                found.update({f"{name} {inner}": one for inner, one in _verbs(verb).items()})
    return found


def _argument(action: argparse.Action) -> str:
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else None)
    shown = ", ".join(action.option_strings) or str(value or action.dest)
    if action.option_strings and action.nargs != 0:
        shown += f" {value or action.dest.upper()}"
    return f"`{shown}`: {_text((action.help or '') % {**vars(action), 'prog': 'agentsignals'})}"


def _example(epilog: str) -> str:
    before, colon, command = epilog.partition(": ")
    return f"{before}: `{command}`" if colon and "agentsignals" in command else _text(epilog)


def _text(words: str) -> str:
    """Words of a docstring as Markdown that shows them as they are; what stands in backticks is code already."""
    parts = words.split("`")
    return "`".join(part if n % 2 else part.translate(_MARKDOWN) for n, part in enumerate(parts))


def doors_page() -> str:
    """Every way out of the machine with what is masked there."""
    return "\n".join([_MADE, "", *_DOORS.strip().splitlines(), "", doors_table(), ""])


_DOORS = """
# What leaves, and what is masked

Files, uploads, prompts and answers that quote many sessions go through one redaction. Records, and
lists of records, are shown as they were read: your own terminal and your own page are no way out. Redirect them, and
they are yours to check. The page's findings, studies and search are masked, since they quote many sessions.

- **Masked**: keys, passwords, tokens, logins, private keys, mail addresses, telephone numbers, cards, accounts,
  public IP addresses and user names in home folders, in texts, names, paths, ids and JSON, in any of the encodings
  that are undone ([masks](labels.md#what-is-masked)).
- **Known once, masked everywhere**: a secret that one session gives away is masked wherever it stands bare, in each
  session, file name and encoding. It has eight characters or more, letters with digits or signs. `postgres` and
  `changeme` stay, since they are words.
- **What looks random** is masked in `export --to hub` and `share`, because a key of a kind that nobody knows has no
  name. Hashes, UUIDs, digests of lock files and ids of the session's records stay.
- **Ids, anchors and file names** are made of redacted values.
- **A server on this machine is a way out**: a proxy, a tunnel or a model in a cloud may listen there. It gets texts
  as they are, after a notice; `--dry-run` says so too, and `--redact` masks them.
- A secret that looks like prose passes. Look through what you hand on.

The first report, share, export of some sessions, prompt or answer over MCP looks through the whole store: 15 MB of
text take 3 s. Later ones look through what is new. `secret_rows.json` in the store says which rows give a secret
away, never the secret.
"""


PAGES: dict[str, Callable[[], str]] = {
    "catalog.md": catalog_page,
    "cli.md": cli_page,
    "columns.md": columns.page,
    "what-leaves.md": doors_page,
    "validation.md": validation_page,
    "patterns.md": patterns.page,
    "pictures/findings.svg": pictures.findings,
    "pictures/explain.svg": pictures.explained,
    "formats.md": partly.formats_page,
    "conformance.md": table.page,
    "../README.md": partly.readme,
}


def main() -> int:
    """0: everything is fresh, or was written; 1: `--check` found a stale page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is stale")
    check = options.parse_args().check
    stale = 0
    for name, page in PAGES.items():
        path, wanted = HERE / name, page()
        found = path.read_text("utf-8") if path.exists() else ""
        if found == wanted:
            continue
        stale += 1
        if check:
            changes = difflib.unified_diff(
                found.splitlines(), wanted.splitlines(), f"docs/{name}", "as the code says", n=0
            )
            print("\n".join(list(changes)[:20]))
        else:
            path.write_text(wanted, "utf-8")
            print(f"docs/{name} written")
    if check and stale:
        print("Stale pages: run `make docs` and commit the result.", file=sys.stderr)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
