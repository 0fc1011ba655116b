"""Fits the weights that judge words near a word for a secret (`redaction/scored.json`), and says what they find.

    python -m benchmarks.secret_words FOLDER ... [--write]

The folders hold real traces, documents and programs: what the rules leave in them is no secret. The secrets are the
forms of the tests. Each writer of forms is left out once: what the weights fitted on all others find of that writer's
secrets alone, without any rule, and how many of the writer's look-alikes they would change. `--write` keeps the weights
fitted on all. Today's are of `docs`, the corpus of traces, and the packages asyncio, email, http, huggingface_hub,
sqlalchemy and mcp.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from agentsignals.redaction import Redactor, scored
from agentsignals.redaction.values import common, present
from benchmarks.redaction import files, values

FORMS = Path("tests/redaction/secret_forms.jsonl")
WEIGHTS = Path(scored.__file__).with_name("scored.json")
TRACES = "traces"
PLACES = ("beside", "under", "next to")
"""Facts that name a word of the text. Such a word must be one that programs at large use, or that several writers of
forms used: a name of a person or a project in the traces is not kept."""
LEAST_WRITERS, LEAST_WORDS = 3, 4
"""A fact counts that stands in so many writers' forms or in so many traces, since a writer has names of his own."""
LEAST_TEXTS = 12
LOOK_ALIKE = 8.0
"""Weight of a word of a look-alike: there are few, and each is there for being hard."""
STRENGTH = 0.3
"""Inverse of the penalty on large weights."""
SMALLEST = 0.15
"""Smaller weights are left out."""
LEAST_PASSWORD, MOST_PASSWORD = 6, 18
PLAIN = (
    *("sonnenblume", "lingonberry", "Fledermaus", "hoppity-hop", "tournesol", "blauwalfisch", "MarmaladeCat"),
    *("slonecznik", "goldfinch", "pepper.mill", "Kaffeepause", "abacaxi", "turbine_barn", "wolkenkuckuck", "girasole"),
)
"""Passwords of plain words, which take the place of a password in a form: what surrounds one is the same."""
CHUNK_LINES, MOST_CHARS = 40, 400_000
KINDS = frozenset(("key", "login", "private key", "secret"))


class Word(NamedTuple):
    writer: str
    text: str
    is_secret: bool
    is_look_alike: bool
    facts: frozenset[str]


def words_of(writer: str, text: str, secrets: list[str], *, masked: Iterable[tuple[int, int]] = ()) -> list[Word]:
    """The judged words of a text, without those in `masked` places and those that are a part of a secret."""
    low = text.lower()
    if len(low) != len(text):
        return []
    places = [(at, at + len(s)) for s in secrets for at in range(len(text)) if text.startswith(s, at)]
    told = []
    for found in scored.candidates(text, low, present(low)):
        within = [p for p in places if found.start < p[1] and p[0] < found.end]
        if any(found.start < end and start < found.end for start, end in masked):
            continue
        facts = frozenset(scored.around(text, found).union(found.facts))
        told.append(Word(writer, text, bool(within), not secrets, facts))
    return told


def forms() -> list[Word]:
    told: list[Word] = []
    writer = ""
    for line in FORMS.read_text("utf-8").splitlines():
        row = json.loads(line)
        if isinstance(row, dict):
            writer = row["set"] if "somebody" in row["told"] else "own"
        else:
            row = [*filter(None, row)]
            told += words_of(writer, row[1], row[2:])
            if len(row) == 3 and LEAST_PASSWORD <= len(row[2]) <= MOST_PASSWORD and row[1].count(row[2]) == 1:
                plain = PLAIN[len(told) % len(PLAIN)]
                told += words_of(writer, row[1].replace(row[2], plain), [plain])
    harmless = tomllib.loads(FORMS.with_name("texts.toml").read_text("utf-8"))["harmless"]
    return told + [word for text in harmless for word in words_of("rules", text, [])]


def traces(folders: list[Path]) -> list[Word]:
    """The judged words of real traces, documents and programs that no rule masks."""
    texts = {value for folder in folders for file in files(folder, 10**12) for value in values(file)}
    for path in (p for folder in folders for p in folder.rglob("*") if p.suffix in (".py", ".md", ".txt", ".svg")):
        lines = path.read_text("utf-8", "replace").splitlines()
        texts.update("\n".join(lines[n : n + CHUNK_LINES]) for n in range(0, len(lines), CHUNK_LINES))
    told: list[Word] = []
    for text in sorted(text for text in texts if len(text) < MOST_CHARS):
        redactor = Redactor(pseudonyms=False)
        if words := words_of(TRACES, text, []):
            redactor.plain(text)
            told += [] if redactor.counts.keys() & KINDS else [word._replace(is_look_alike=False) for word in words]
    return told


def fitted(words: list[Word]) -> dict[str, float]:
    """Weights by fact, with the bias as the fact without a name."""
    writers: dict[str, set[str]] = defaultdict(set)
    texts: dict[str, set[str]] = defaultdict(set)
    for word in words:
        for fact in word.facts:
            writers[fact].add(word.writer)
            texts[fact].add(word.text)

    def is_kept(fact: str) -> bool:
        place, _, said = fact.rpartition(" ")
        is_of_forms = len(writers[fact] - {TRACES}) >= LEAST_WRITERS
        is_of_traces = TRACES in writers[fact] and (place not in PLACES or said in common())
        is_given = place in PLACES and any(said in plain.lower() for plain in PLAIN)
        return len(texts[fact]) >= LEAST_TEXTS and (is_of_forms or is_of_traces) and not (is_given and len(said) > 3)

    names = sorted(filter(is_kept, writers))
    place = {fact: n for n, fact in enumerate(names)}
    rows = [sorted(place[fact] for fact in word.facts if fact in place) for word in words]
    ends = np.cumsum([0, *map(len, rows)])
    told = csr_matrix((np.ones(ends[-1]), np.concatenate(rows).astype(int), ends), shape=(len(rows), len(names)))
    model = LogisticRegression(C=STRENGTH, max_iter=400)
    weight = [LOOK_ALIKE if word.is_look_alike else 1.0 for word in words]
    model.fit(told, [word.is_secret for word in words], weight)
    found = dict(zip(names, model.coef_[0], strict=True))
    return {"": float(model.intercept_[0]), **{f: float(w) for f, w in found.items() if abs(w) >= SMALLEST}}


def score(word: Word, weights: dict[str, float]) -> float:
    return weights[""] + sum(weights.get(fact, 0.0) for fact in word.facts)


def share(words: list[Word], weights: dict[str, float], least: float, *, of_secrets: bool) -> str:
    best: dict[str, float] = defaultdict(lambda: -np.inf)
    for word in words:
        if word.is_secret == of_secrets and (of_secrets or word.is_look_alike or word.writer == TRACES):
            best[word.text] = max(best[word.text], score(word, weights))
    return f"{sum(b > least for b in best.values())} of {len(best)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--least", type=float, default=1.8)
    parser.add_argument("--least-of-words", type=float, default=1.8)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    told, real = forms(), traces(options.folders)
    print(Counter(word.writer for word in told), f"{len(real):,} words of traces")
    for writer in dict.fromkeys(word.writer for word in told):
        weights = fitted([*(word for word in told if word.writer != writer), *real[::2]])
        left_out = [word for word in told if word.writer == writer]
        print(
            f"{writer}: secrets {share(left_out, weights, options.least, of_secrets=True)}, look-alikes"
            f" {share(left_out, weights, options.least, of_secrets=False)}, texts of other traces"
            f" {share(real[1::2], weights, options.least, of_secrets=False)}"
        )
    weights = fitted([*told, *real])
    print(f"{len(weights)} weights")
    if options.write:
        bias = weights.pop("")
        of = {fact: round(weight, 2) for fact, weight in sorted(weights.items())}
        WEIGHTS.write_text(
            json.dumps(
                {"bias": round(bias, 2), "least": options.least, "least_of_words": options.least_of_words, "of": of},
                indent=0,
                ensure_ascii=False,
            )
            + "\n"
        )


if __name__ == "__main__":
    main()
