"""Fine-tune the sentence encoder's upper layers on pairs of answer and message (package torch: extra `encoder`).

One net judges several tasks: each has a linear head on the first token, the mean of the message and the mean of the
answer. The changes of weights are stored at a low rank in 8 bits. The lower layers stay as they are, so their output is
computed once.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from agentsignals.labels.labellers.encoder import Net, Pair, Tensors, base_encoder, encoded, padded
from agentsignals.store.embedders import BATCH_TEXTS

EPOCHS, BATCH_ROWS = 3, 16
LEARNING_RATE, HEAD_RATE = 1.5e-4, 1.2e-3
WARM_UP, DROPOUT, SMOOTHING, DECAY = 0.08, 0.1, 0.05, 0.01
RANK = 32
"""Rank of each change of weights (docs/labels.md#which-labeller)."""
TASK_WEIGHTS = {"prompt_intent": 0.5, "sentiment": 0.3}
"""Weights of the tasks' losses, relative to a task's own 1. Set once, by hand."""
RARE_WEIGHT, MOST_WEIGHT = 0.5, 4.0
"""Exponent of the weight of rare classes, and its limit."""
_UNLABELLED = -100
_SORTED_BATCHES = 16
"""Batches that are drawn together and sorted by length, so that little is padded."""


class Lower(NamedTuple):
    """Output of the lower layers for a pair: a vector a token, and which tokens are the message's."""

    hidden: Any
    is_message: Any


def lower_layers(pairs: Sequence[Pair]) -> list[Lower]:
    """Run the layers that are not trained over all pairs."""
    base = base_encoder()  # names a package that is missing
    import torch  # noqa: PLC0415  (six CPU seconds to load)

    tokens = [encoded(pair) for pair in pairs]
    made: list[Lower] = [Lower(None, None)] * len(pairs)
    order = sorted(range(len(pairs)), key=lambda n: len(tokens[n].ids))
    with torch.no_grad():
        for places in (order[at : at + BATCH_TEXTS] for at in range(0, len(order), BATCH_TEXTS)):
            ids, is_message, mask = padded([tokens[n] for n in places])
            hidden = base.lower(ids, is_message, mask)
            for row, n in enumerate(places):
                length = len(tokens[n].ids)
                made[n] = Lower(hidden[row, :length].clone(), is_message[row, :length].float())
    return made


Labels = Mapping[str, str]
"""Labels of a message by task."""


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch  # noqa: PLC0415

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@_one_thread()
def fine_tuned(rows: Sequence[Labels], below: Sequence[Lower], classes: Mapping[str, list[str]]) -> Tensors:
    """Return the changes of weights and the heads, trained on the labels of messages. `below`: `lower_layers` of them.
    The same rows give the same net on one machine."""
    import torch  # noqa: PLC0415

    torch.manual_seed(0)
    shuffled = random.Random(0)  # noqa: S311  (an order, no secret)
    base = base_encoder()
    upper = base.copied_upper()
    heads = torch.nn.ModuleDict({task: torch.nn.Linear(3 * base.size, len(names)) for task, names in classes.items()})
    for head in heads.values():
        torch.nn.init.normal_(head.weight, std=0.02)
        torch.nn.init.zeros_(head.bias)
    truth = {
        task: torch.tensor([names.index(row[task]) if task in row else _UNLABELLED for row in rows])
        for task, names in classes.items()
    }
    losses = {task: _loss(rows, task, names) for task, names in classes.items()}
    matrices = [p for p in upper.parameters() if p.dim() > 1]
    vectors = [p for p in upper.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "lr": LEARNING_RATE, "weight_decay": DECAY},
            {"params": vectors, "lr": LEARNING_RATE, "weight_decay": 0.0},
            {"params": heads.parameters(), "lr": HEAD_RATE, "weight_decay": DECAY},
        ],
        fused=True,
    )
    steps = EPOCHS * -(-len(rows) // BATCH_ROWS)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / (WARM_UP * steps)) * max(0.0, 1 - step / steps)
    )
    upper.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for batch in _batches(shuffled, below):
            pooled = base.pooled(upper, *_joined([below[n] for n in batch]))
            pooled = torch.nn.functional.dropout(pooled, DROPOUT)
            loss = sum(
                TASK_WEIGHTS.get(task, 1.0) * losses[task](head(pooled), truth[task][batch])
                for task, head in heads.items()
                if bool((truth[task][batch] != _UNLABELLED).any())
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(upper.parameters(), 1.0)
            optimizer.step()
            rate.step()
            total += float(loss.detach())
        print(f"epoch {epoch + 1} of {EPOCHS}: loss {total * EPOCHS / steps:.3f}", file=sys.stderr, flush=True)
    return compressed(base.upper.state_dict(), upper.state_dict(), heads.state_dict())


def _loss(rows: Sequence[Labels], task: str, names: Sequence[str]) -> Any:
    import torch  # noqa: PLC0415

    counts = Counter(row[task] for row in rows if task in row)
    even = counts.total() / len(names)
    weights = [min((even / max(counts[name], 1)) ** RARE_WEIGHT, MOST_WEIGHT) for name in names]
    return torch.nn.CrossEntropyLoss(weight=torch.tensor(weights), ignore_index=_UNLABELLED, label_smoothing=SMOOTHING)


def _batches(shuffled: random.Random, below: Sequence[Lower]) -> list[list[int]]:
    order = list(range(len(below)))
    shuffled.shuffle(order)
    together = BATCH_ROWS * _SORTED_BATCHES
    runs = [sorted(order[n : n + together], key=lambda n: len(below[n].hidden)) for n in range(0, len(order), together)]
    batches = [run[n : n + BATCH_ROWS] for run in runs for n in range(0, len(run), BATCH_ROWS)]
    shuffled.shuffle(batches)
    return batches


def _joined(rows: Sequence[Lower]) -> tuple[Any, Any, Any]:
    """Pad rows to one length: vectors, where the message is, and where anything is."""
    import torch  # noqa: PLC0415

    pad = torch.nn.utils.rnn.pad_sequence
    hidden = pad([row.hidden for row in rows], batch_first=True)
    is_message = pad([row.is_message for row in rows], batch_first=True)
    return hidden, is_message, pad([torch.ones(len(row.hidden)) for row in rows], batch_first=True)


def compressed(before: Mapping[str, Any], after: Mapping[str, Any], heads: Mapping[str, Any]) -> Tensors:
    """Return what a net's file holds: of a matrix the change's two factors, in 8 bits with a scale a row of the rank;
    of a vector the change; the heads."""
    import torch  # noqa: PLC0415

    made: Tensors = {f"head.{name}": tensor.half() for name, tensor in heads.items()}
    for name, tensor in after.items():
        change = tensor - before[name]
        if change.dim() == 1:
            made[name] = change.half()
            continue
        left, strengths, right = torch.linalg.svd(change, full_matrices=False)
        root = strengths[:RANK].sqrt()
        for part, factor in (("left", left[:, :RANK].T * root[:, None]), ("right", right[:RANK] * root[:, None])):
            scale = factor.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
            made[f"{name}.{part}"] = torch.round(factor / scale).to(torch.int8)
            made[f"{name}.{part}.scale"] = scale
    return made


def judged(
    tensors: Tensors, classes: Mapping[str, list[str]], below: Sequence[Lower]
) -> list[dict[str, dict[str, float]]]:
    """Return what a net of these tensors makes of each message, as `Net.judged`."""
    lengths = [len(row.hidden) for row in below]
    return Net(tensors, dict(classes)).judged(classes, lengths, lambda places: _joined([below[n] for n in places]))
