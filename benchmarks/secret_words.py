"""Fits the net that judges values near a word for a secret (`redaction/scored.msgpack`), and says what it finds.

    python -m benchmarks.secret_words FOLDER ... [--write]

The folders hold real traces, documents and programs: what the rules leave in them is no secret. The secrets are the
forms of the tests and those beside this file, each once more with other passwords of its writer. A third of the
writers is left out in turn: what net and rules mask of these writers' secrets and look-alikes is printed. `--write`
keeps a net of all. Today's is of `docs`, `src` and the corpus of traces; it was fitted before fewer lines were read
for values, so a new one differs from it. It needs torch, which the lab brings.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from torch import nn

from agentsignals import redaction
from agentsignals.redaction import scored
from agentsignals.redaction.values import Span, common, is_random, present
from benchmarks.redaction import files, values

OLD_FORMS = Path("tests/redaction/secret_forms.jsonl")
"""Forms that rules were mended on. What rules mask of them says nothing of others, so no net learns from it."""
FORMS = Path(__file__).with_suffix("").with_name("secret_forms.jsonl")
"""Forms that no rule was mended on."""
WEIGHTS = Path(scored.__file__).with_name("scored.msgpack")
WIDTH, HIDDEN = 16, 16
LEAST_WRITERS, LEAST_VALUES = 3, 6
"""A fact counts that stands in so many writers' forms. Of traces alone one that so many values have, and whose words
programs at large use: a name of a person or a project in the traces is not kept."""
TRACES = "traces"
CUT = ("b4", "b5", "e4", "n4", "ne4", "w5", "shape")
"""Facts that hold a part of a word."""
FOLDS = 3
EPOCHS, BATCH, RATE, DECAY, DROPPED = 6, 512, 8e-3, 1e-2, 0.25
HARD = 30_000
"""So many values of traces that a first net takes for secrets most are learned from, and as many others."""
CHUNK_LINES, MOST_CHARS = 40, 60_000
OTHERS = 12
"""Values of one text of traces."""
KINDS = frozenset(("key", "login", "private key", "secret"))


class Row(NamedTuple):
    writer: str
    told: list[str]
    is_secret: bool
    weight: float


class Form(NamedTuple):
    writer: str
    text: str
    secrets: list[str]
    weight: float
    is_old: bool


def forms(path: Path, *, is_old: bool) -> list[Form]:
    told: list[Form] = []
    writer = ""
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if isinstance(row, dict):
            writer = row["set"]
        else:
            row = [*filter(None, row)]
            told.append(Form(writer, row[1], row[2:], (0.5 if is_old else 1.0) * (1 if row[2:] else 2), is_old))
    return told


def plain_forms() -> Iterator[Form]:
    """Names, joints, places and looks crossed, as documents and programs have them."""
    names = "password Password DB_PASSWORD dbPassword passwd pass_phrase Kennwort senha client_secret JWT_SECRET"
    names += " api_key API_KEY accessToken"
    joints = ('{n} = "{v}"', "{n}: '{v}'", "{n}='{v}'", '{{"{n}": "{v}"}}', "{n}={v}", "{n}: {v}")
    joints += ("--{n} {v}", "<{n}>{v}</{n}>", "the {n} is {v}")
    where = ("{}", "import sys\n{}", "+{}", "     7→{}", "<p>{}</p>", "$ git show\n{}", "{}  # note", "image: x\n{}")
    where += ("class App:\n    {}", "sha256 of it\n{}\ncommit 1", "id: 5\n{}\n")
    looks = "QRST-7391 KM-204857 tiger7 sunny99 GreenLake4 blue-horse-7 Maple! oak.42North 73920418 otto:Stone88!"
    looks += " hQ7!x2Lm9Wpz 3d9f1c7b5a8e2046c1d3f7a9b5e80624"
    turn = 0
    for name, joint, look in product(names.split(), joints, looks.split()):
        is_token = name.lower().replace("_", "") in ("apikey", "accesstoken")
        if is_token and (("'" not in joint and '"' not in joint) or look.islower()) and len(look) < 30:
            continue
        turn += 1
        text = where[turn % len(where)].format(joint.format(n=name, v=look))
        yield Form("crossed", text, [look.rpartition(":")[2]], 0.4, is_old=False)


def kind_of(secret: str) -> str | None:
    if not 5 <= len(secret) <= 40 or " " in secret or "\n" in secret:
        return None
    if not secret.strip("0123456789#*-"):
        return "digits"
    return "drawn" if is_random(secret, 12) or len(secret) > 20 else "password"


def varied(told: list[Form]) -> list[Form]:
    """The forms once more, with another secret of the same writer and kind: what surrounds one is the same."""
    draw = random.Random(3)  # noqa: S311  (a sample)
    pool: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    single = [form for form in told if len(form.secrets) == 1 and form.text.count(form.secrets[0]) == 1]
    for form in single:
        pool[form.writer, kind_of(form.secrets[0])].append(form.secrets[0])
    more = []
    for form in single:
        if (kind := kind_of(form.secrets[0])) is not None:
            other = draw.choice(pool[form.writer, kind])
            if other not in form.text:
                text = form.text.replace(form.secrets[0], other)
                more.append(form._replace(text=text, secrets=[other], weight=form.weight / 2))
    return more


def read(text: str) -> tuple[list[scored.Candidate], list[tuple[Span, str]]]:
    low = text.lower()
    low = low if len(low) == len(text) else text.replace("\u0130", "i").lower()
    if len(low) != len(text):
        return [], []
    parts = present(low)
    rules = [*redaction.by_rules(text, low, parts)]
    return scored.candidates(text, low, parts, rules), rules


def rows(form: Form) -> Iterator[Row]:
    places = [(n, n + len(s)) for s in form.secrets for n in range(len(form.text)) if form.text.startswith(s, n)]
    for found in read(form.text)[0]:
        shared = [min(found.end, end) - max(found.start, start) for start, end in places]
        if max(shared, default=0) > 0:
            n = max(range(len(shared)), key=shared.__getitem__)
            of_secret = places[n][1] - places[n][0]
            if shared[n] * 5 < (found.end - found.start) * 3 or shared[n] * 2 < of_secret:
                continue
        told = scored.facts(form.text, found)
        if form.is_old:
            told = [fact for fact in told if not fact.startswith("src ")]
        yield Row(form.writer, told, max(shared, default=0) > 0, form.weight)


def traces(folders: list[Path]) -> list[list[str]]:
    """The facts of values of real traces, documents and programs that no rule masks."""
    texts = {value for folder in folders for file in files(folder, 10**12) for value in values(file)}
    for path in (p for folder in folders for p in folder.rglob("*") if p.suffix in (".py", ".md", ".txt", ".toml")):
        lines = path.read_text("utf-8", "replace").splitlines()
        texts.update("\n".join(lines[n : n + CHUNK_LINES]) for n in range(0, len(lines), CHUNK_LINES))
    draw = random.Random(1)  # noqa: S311  (a sample)
    told = []
    for text in sorted(text for text in texts if len(text) < MOST_CHARS):
        found, _ = read(text)
        draw.shuffle(found)
        told += [scored.facts(text, one) for one in [one for one in found if not one.rules][:OTHERS]]
    return told


class Net(nn.Module):
    def __init__(self, facts: int) -> None:
        super().__init__()
        self.weight = nn.EmbeddingBag(facts, 1, mode="sum")
        self.vector = nn.EmbeddingBag(facts, WIDTH, mode="sum")
        self.hidden, self.out = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, 1)
        self.drop = nn.Dropout(0.3)
        nn.init.zeros_(self.weight.weight)
        nn.init.normal_(self.vector.weight, 0, 0.05)

    def forward(self, facts: torch.Tensor, starts: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        shown = torch.relu(self.vector(facts, starts, per_sample_weights=kept))
        hidden = torch.relu(self.hidden(self.drop(shown)))
        weights = self.weight(facts, starts, per_sample_weights=kept)
        return (weights + self.out(self.drop(hidden)))[:, 0]  # type: ignore[no-any-return]  (of an untyped module)


def batch(told: list[np.ndarray[Any, Any]], chosen: Any) -> tuple[torch.Tensor, torch.Tensor]:
    parts = [told[n] for n in chosen]
    starts = np.cumsum([0, *map(len, parts[:-1])])
    return torch.from_numpy(np.concatenate(parts)), torch.from_numpy(starts)


class Fitted(NamedTuple):
    places: dict[str, int]
    net: Net

    def scores(self, told: list[list[str]]) -> np.ndarray[Any, Any]:
        own = numbered(told, self.places)
        found = []
        with torch.no_grad():
            for n in range(0, len(own), 4096):
                facts, starts = batch(own, range(n, min(n + 4096, len(own))))
                found.append(self.net(facts, starts, torch.ones(len(facts))).numpy())
        return np.concatenate(found) if found else np.zeros(0)


def numbered(told: list[list[str]], places: dict[str, int]) -> list[np.ndarray[Any, Any]]:
    return [np.array(sorted({places[fact] for fact in one if fact in places}), dtype=np.int64) for one in told]


def fitted(told: list[Row]) -> Fitted:
    torch.manual_seed(0)
    counts: Counter[str] = Counter()
    writers: dict[str, set[str]] = defaultdict(set)
    for row in told:
        counts.update({*row.told})
        for fact in row.told:
            writers[fact].add(row.writer)

    def is_kept(fact: str) -> bool:
        if len(writers[fact] - {TRACES}) >= LEAST_WRITERS:
            return True
        is_of_programs = all(word in common() for word in re.findall(r"[^\W\d_]{3,}", fact.lower()))
        return counts[fact] >= LEAST_VALUES and is_of_programs and not fact.startswith(CUT)

    places = {fact: n for n, fact in enumerate(sorted(filter(is_kept, counts)))}
    own = numbered([row.told for row in told], places)
    truth = torch.tensor([float(row.is_secret) for row in told])
    weight = torch.tensor([row.weight for row in told])
    net = Net(len(places))
    step = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    steps, done = EPOCHS * (len(own) // BATCH + 1), 0
    for epoch in range(EPOCHS):
        order = np.random.RandomState(epoch).permutation(len(own))
        for n in range(0, len(own), BATCH):
            chosen = order[n : n + BATCH]
            facts, starts = batch(own, chosen)
            kept = (torch.rand(len(facts)) > DROPPED).float() / (1 - DROPPED)
            for group in step.param_groups:
                group["lr"] = RATE * (1 - done / steps)
            done += 1
            score = net(facts, starts, kept)
            loss = nn.functional.binary_cross_entropy_with_logits(score, truth[chosen], reduction="none")
            step.zero_grad()
            (loss * weight[chosen]).mean().backward()
            step.step()
    net.eval()
    return Fitted(places, net)


def with_hard(told: list[Row], real: list[list[str]]) -> Fitted:
    """A net of the forms and of values of traces, those that a first net takes for secrets among them."""
    draw = random.Random(2)  # noqa: S311  (a sample)
    some = draw.sample(real, min(HARD, len(real)))
    first = fitted([*told, *(Row(TRACES, one, False, 0.5) for one in some)])
    order = np.argsort(-first.scores(real))[:HARD]
    return fitted(
        [*told, *(Row(TRACES, one, False, 0.5) for one in some), *(Row(TRACES, real[n], False, 0.5) for n in order)]
    )


def net_of(found: Fitted, least: float, veto: float) -> scored.Net:
    """The net in bytes: facts whose numbers are all nought are left out."""
    vectors = torch.cat((found.net.weight.weight, found.net.vector.weight), dim=1).detach().numpy()
    step = float(np.abs(vectors).max()) / 127
    steps = np.rint(vectors / step).astype(int)
    kept = [(name, n) for name, n in found.places.items() if steps[n].any()]
    return scored.Net(
        least=least,
        veto=veto,
        step=step,
        names=[name for name, _ in kept],
        vectors=b"".join(bytes((steps[n] + 128).tolist()) for _, n in kept),
        bias=float(found.net.out.bias.item()),
        hidden=found.net.hidden.weight.tolist(),
        hidden_bias=found.net.hidden.bias.tolist(),
        out=found.net.out.weight[0].tolist(),
    )


def tried(net: scored.Net, told: list[Form]) -> str:
    """What net and rules together mask of forms."""
    scored.scorer = lambda: chosen  # type: ignore[assignment]  (this net in place of the shipped one)
    chosen = scored.Scorer(net)
    masked = changed = secrets = 0
    for form in told:
        redactor = redaction.Redactor(pseudonyms=False)
        clean = redactor.text(form.text).lower()
        if form.secrets:
            secrets += 1
            masked += not any(secret.lower() in clean for secret in form.secrets)
        else:
            changed += bool(redactor.counts.keys() & KINDS)
    others = len(told) - secrets
    of_secrets = f"masked {masked} of {secrets} ({masked / secrets:.1%})"
    return f"{of_secrets}, look-alikes changed {changed} of {others} ({changed / others:.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--least", type=float, nargs="+", default=[-0.5])
    parser.add_argument("--veto", type=float, default=-1.0)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    old, new = forms(OLD_FORMS, is_old=True), forms(FORMS, is_old=False)
    own = [(form.writer, [*rows(form)]) for form in [*old, *new, *varied(old), *varied(new), *plain_forms()]]
    real = traces(options.folders)
    print(f"{sum(len(r) for _, r in own):,} values of forms, {len(real):,} of traces", flush=True)
    writers = [*dict.fromkeys(form.writer for form in new)]
    for fold in range(options.folds):
        out = {*writers[fold :: options.folds]}
        found = with_hard([row for writer, rows_ in own if writer not in out for row in rows_], real[::2])
        scores = found.scores(real[1::2])
        for least in options.least:
            net = net_of(found, least, options.veto)
            for writer in sorted(out):
                print(f"{least} {writer}: {tried(net, [form for form in new if form.writer == writer])}")
            print(f"{least}: {(scores > least).sum()} of {len(scores):,} values of other traces", flush=True)
    if options.write:
        net = net_of(with_hard([row for _, rows_ in own for row in rows_], real), options.least[0], options.veto)
        WEIGHTS.write_bytes(msgspec.msgpack.encode(net))
        print(f"{len(net.names):,} facts, {WEIGHTS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
