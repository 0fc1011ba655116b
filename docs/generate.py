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
        "The store has the tables `turns`, `steps`, `events`, `tool_calls`, `edits`, `checkpoints`, `labels` and "
        "`attempts` (docs/columns.md). The column `seq` orders the rows of one session across these tables."
    ),
    "Main thread": (
        "The main thread is the rows whose column `thread` is `main`. Every signal counts only the main thread, "
        "unless its description says otherwise. Any other thread is a subagent, except `abandoned` and `replayed`."
    ),
    "Human turn, human message, prompt": (
        "Each of these three words means a row of `turns`. Turn n is the row whose `turn` is n, counted from 0. A "
        "turn of kind plan_handoff, attachment or scripted_prompt is called unspoken, because the person did not "
        "write it in the chat. A row of another table belongs to the turn that its column `turn` names."
    ),
    "Response": (
        "The response to a turn is the main thread's `events` with the turn's number, from the first to the last of "
        "kind text, thinking, tool_call or tool_result. A turn without events of these kinds has no response."
    ),
    "Model call, step": (
        "Both words mean a row of the table `steps`, which has one row for each request to the language model."
    ),
    "Call": (
        "A call is a tool call: a row of `tool_calls`. The fine class of a call is its column `class`, with two "
        "exceptions. A call of class shell is divided by `shell_kind`: write becomes shell_write, build becomes "
        "build, vcs becomes vcs, and every other kind stays shell. A call of class task has the fine class agent."
    ),
    "Reading, test run": (
        "A reading is a call of class read: a tool that reads files, or a command that prints files (`cat`, `head`, "
        "`sed -n`). A test run is a call of class test: a command that runs tests."
    ),
    "Status": (
        "The status of a call is ok, error (the call failed), rejected (the person refused the call), cancelled, "
        "unknown, or none (the call has no result)."
    ),
    "Commit": (
        "A commit is a main-thread call whose command contains `git` and `commit`, and whose result has a line that "
        "begins with `[branch sha]`."
    ),
    "File of the repository": (
        "A file of the repository is a relative path that does not begin with `/`, `~`, `../` or a drive letter. In "
        "a session without a `cwd`, every path is a file of the repository."
    ),
    "Change, edit": (
        "Both words mean a row of `edits`: a successful change by an edit tool, or a file that a shell command says "
        "it writes, also if the command failed. The first change is the first main-thread call that changed a file "
        "of the repository."
    ),
    "Target file": (
        "The target file is the `path` of a call of class read, search or edit. A path that ends in `/`, or is `.` "
        "or `..`, is no target file. The path of a search is a target file only if its last part has a dot after the "
        "first character."
    ),
    "Tokens of a text": (
        "A token of a text is a run of word characters (letters, digits, `_`) or one other character that is not "
        "white space. The column `n_tokens` of a turn counts these tokens, not the tokens of a language model."
    ),
    "Cleaned text": (
        "Cleaned text is a text without code blocks, inline code, links, quoted lines, and pasted logs, tables and "
        "diffs. The head of a turn is the first 320 characters of the turn's cleaned text."
    ),
    "Pattern table": (
        "A pattern table lists English phrases of people (corrections, failure reports, rejection, acceptance, "
        "revert_all, gives_up) or of agents (hedges, asked, assumptions, self_corrections). docs/patterns.md has "
        "every table."
    ),
    "Prose, another language": (
        "Prose is the main thread's text events without code, text between <think> tags, quoted lines and text "
        "between double quotation marks. If the rule of chat.prompt_language finds another language than English in "
        "the first 500 characters of a session's prose, signals that need English prose are absent (not_computable)."
    ),
    "Closing question": (
        "The closing question of a response is a sentence in the prose of the response's last text event: the last one "
        "that ends in `?`, is of kind preference or none (docs/patterns.md, questions), and ends within the last 300 "
        "characters."
    ),
    "Named file": (
        "Words of a turn are runs of letters, digits, `.`, `_`, `-` and `/`. A word with a dot in its last part "
        "names every file of that name. If such a word has a slash, the word also names the files directly in its "
        "folder: a word `a/b/c.py` names the files whose folder is `a/b` or `b`. A word with a slash, and without a "
        "dot in its last part, names a folder and every file below that folder. Two folder paths match if one path, "
        "or an end of it (`a/b`, `b`), equals an end of the other path. A turn says where to work if the turn limits "
        "the work (`limits_work` in docs/patterns.md). A turn also says where to work if a word, or the part of a "
        "word after its last `/`, is the path, name or stem (anticipation.scope_drift) of a file of the repository "
        "that a call or edit has, or an end of the path of a folder above such a file."
    ),
    "Request, answer": (
        "The request of a session is the first 8,000 characters of its first turn that has at least four tokens and "
        "is not of kind slash_command or attachment. An answer is the last 8,000 characters of a response's text "
        "events, joined by line breaks. Fenced code and links are removed before a request or an answer is cut."
    ),
    "Calibrated distance": (
        "A calibrated distance compares the vectors of two texts: (1 - cosine, rounded to 4 digits, - aligned) / "
        "(unrelated - aligned), clipped to 0..1. The detail of a value states both constants. The default embedder "
        "`words` has aligned 0.56 and unrelated 0.96, and its vectors count words. A word is a run of at least two "
        "letters and digits, split before a capital that follows a small letter or digit, in lower case, cut to six "
        "characters. Stop words (docs/patterns.md) are left out. A text without words has no distance."
    ),
    "Judge's label": (
        "A judge's label is `value` (or `number`) of the row of `labels` with the signal's task. The row is for a "
        "turn, or for the session if its `turn` is NULL. If several labellers labelled it, the best kind of labeller "
        "counts, then the labeller with most labels, then the most recent one. A signal without a label is absent "
        "(backend_disabled, judge). A session without a main-thread text event gives not_applicable."
    ),
    "Facts, knob, report of an attempt": (
        "The facts of an attempt are the JSON object in `attempts.facts`: everything that is known of the attempt. "
        "The facts hold `summary` (the eval harness's counts: turns, tool_calls, edit_calls, touched_files), `patch` "
        "(the patch) and `verification` (the verifier's report). A knob is a setting of the eval run, such as a "
        "limit, in the JSON object `attempts.knobs`. A signal of a knob is absent if the run recorded no such "
        "setting. A signal of a numeric knob is also absent if the setting is 0, null or a word for unlimited."
    ),
    "Absent": (
        "A signal that needs another signal's value is absent (dependency_null) where that value is absent, unless "
        "its description says otherwise."
    ),
    "Ratio": (
        "A ratio is absent (not_computable, zero_denominator) if its denominator is 0. The value's `detail` states "
        "the numerator as `num` and the denominator as `den`."
    ),
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
    "chat.prompt_intent": "The shipped classifier labels the prompts that no model or person labelled. Shares are means"
    " of calibrated probabilities, and one figure never mixes labellers",
    "chat.pushback_type": "Counts of corrections and failure reports are shown as lower bounds, with the recall",
    "corpus.sentiment_label": "Counts by rules are shown as lower bounds, with the precision and recall of their class",
}
"""What was done about classes with a precision below one half, or nearly so."""


def validation_page() -> str:
    """Every figure by signal, and what was done about the low ones."""
    lines = [
        _MADE,
        "",
        "# How often signals are right",
        "",
        "`agentsignals labels validate --gold FILES` compares each signal's values with known right values, and prints"
        " precision, recall and kappa. This page, the report, `compare`, `explain` and `inventory` all show the same"
        " figures. `figures.json` names the version of the signal that was measured.",
        "",
        "* **Planted cases** are made-up sessions with a known right value (`stats/validation/planted/`). The rules'"
        " author wrote these sessions, so they show which cases the rules miss, and not how often that happens in real"
        " sessions.",
        "* **Gold files** contain real messages that one language model labelled; no person labelled them. The author"
        " of the sentiment rules had read these messages, so the figures of the sentiment rules are optimistic.",
        "* **Human prompts** (`user.user_turn_count`): 276 of 281 gold messages with an available session are"
        " recognized as written by the person: 245 prompts, 16 messages with a refusal, 15 queued messages. Three of"
        " the other five differ by masked text, and two come after the end of the copied session. Gold files contain"
        " only people's messages, so they give recall; the planted cases give precision.",
        "",
        "In the table, `named` counts the cases that the signal put into the class, and `true` counts the cases that"
        " belong to the class.",
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
    lines += ["", "## Classes with a precision below one half", ""]
    lines += ["The report never uses a figure of one of these classes as a headline.", ""]
    lines += ["| signal | classes | what was done |"]
    lines += ["| --- | --- | --- |"]
    for path in dict.fromkeys([*low, *_DEEDS]):
        classes = dict.fromkeys(one.value for one in figures() if one.signal == path and one.misleads)
        lines.append(f"| `{path}` | {', '.join(classes) or 'none below one half'} | {_text(_DEEDS[path])} |")
    never = ", ".join(f"`{path}`" for path in never_validated())
    lines += ["", "## Never validated", ""]
    lines += [f"These signals guess a meaning, and nobody has measured how often they are right: {never}.", ""]
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
    yield (
        f"{PLANTED_CAVEAT} `python -m benchmarks.weaknesses --read` prints each weakness that the rules missed and each"
        " safe twin that they flagged."
    )
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

The program replaces secrets with placeholders (*masking*) in every file, upload, prompt and answer that quotes many
sessions. Lists of records and single records are shown unmasked, because you read them on your own terminal or your
own page. If you redirect such output into a file, check the file yourself. The page's findings, studies and search are
masked.

- **Masked values**: keys, passwords, tokens, logins, private keys, mail addresses, telephone numbers, card and account
  numbers, public IP addresses, and user names in home folders. Masking covers texts, names, paths, ids and JSON, and
  the encodings that the program can decode ([what is masked](labels.md#what-is-masked)).
- **A recognized secret is masked everywhere**: if the program recognizes a secret in one session, the program masks the
  same value in every session, file name and encoding. Only values of at least eight characters that mix letters with
  digits or signs are searched in this way. Ordinary words such as `postgres` and `changeme` are not masked.
- **Random-looking text** is masked only in `export --to hub` and `share`, because a key of an unknown kind has no
  prefix to recognize. Hashes, UUIDs, digests of lock files and ids of the session's records are not masked.
- **Ids, anchors and file names** in exported files are made from masked values.
- **A model server on this machine** gets the texts unmasked, after a notice. The server may be a proxy, a tunnel or a
  model in a cloud. `--redact` masks the texts, and `--dry-run` prints the notice too.
- **Some secrets pass.** In six sets of lines that others wrote, and that no rule and no weight had seen, 95.4 % of
  900 secrets were masked, and about 5 % of 600 lines without one were changed. In conversations that name no password
  half of the secrets pass. Read what you share before you share it.

The program searches the whole store for secrets once, before the first report, share, partial export, prompt or MCP
answer. The first search takes 20 s for 15 MB of text. Later ones read only new text. `secret_rows.json` in the store
lists the rows that contain a secret, never the secret itself.
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
