"""The lab on one GPU in at most eight minutes: bf16, batches, memory, steering. Prints a table and writes JSON.

    cd packages/lab
    python -m benchmarks.lab_gpu [--shape 7b] [--model PATH_OR_ID] [--device cuda] [--dtype bf16] [--minutes 8]
                                 [--rows 1,8,32,128] [--tokens 512] [--new 64] [--out lab-gpu.json]

Without --model the weights are random, in a shape of Qwen2 (`overhead.SHAPES`): nothing is fetched, and no sandbox is
needed. Each part says whether what it measured is as it should be; the exit code is 1 where something is not. A part
for which no time is left is listed as not run. `--device cpu --dtype fp32 --shape tiny` runs the same on any machine,
which is how the tests keep it working.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from agentsignals_lab.residual import Add, Loading, Positions, Prompt, Request, Sampling, Suppress, load
from agentsignals_lab.residual.loading import tokens_that_fit
from agentsignals_lab.residual.model import HookedModel
from benchmarks.overhead import SHAPES, model_of

LOADED_AS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
Figures = dict[str, Any]
"""What a part measured; `ok`: as it should be, where something should."""


class Bench:
    """A model and prompts of one length; each method is a part."""

    def __init__(self, model: HookedModel, asked: argparse.Namespace) -> None:
        self.model, self.asked = model, asked
        self.inner, self.device = model._model, model._device
        vocabulary = self.inner.get_input_embeddings().weight.shape[0]
        self.drawn = np.random.default_rng(1).integers(1, vocabulary, size=(max(asked.rows), asked.tokens)).tolist()
        self.vector = np.random.default_rng(0).normal(size=model.card.width).astype(np.float32)
        self.layer = model.card.layers // 2

    def prompts(self, count: int) -> list[Prompt]:
        return [Prompt(tuple(row), ()) for row in self.drawn[:count]]

    def batched(self, rows: int, tokens: int = 1 << 30) -> HookedModel:
        """The same weights with other bounds of a batch."""
        return HookedModel(self.inner, self.model._tokenizer, self.model.card, batch=rows, batch_tokens=tokens)

    def timed(self, work: Callable[[], object]) -> tuple[float, float | None]:
        """Seconds, and the peak of allocated GiB on a GPU."""
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        started = time.perf_counter()
        work()
        if on_gpu:
            torch.cuda.synchronize()
        spent = time.perf_counter() - started
        return spent, round(torch.cuda.max_memory_allocated() / 2**30, 2) if on_gpu else None

    def states(self) -> Iterator[Figures]:
        """What hooks read is what the library's own output_hidden_states gives, to the bit."""
        ids = torch.tensor([self.drawn[0]], device=self.device)
        with torch.inference_mode():
            theirs = self.inner(input_ids=ids, output_hidden_states=True, use_cache=False).hidden_states
        (ours,) = self.model.states(self.prompts(1), [self.layer])
        apart = float(np.abs(ours[0] - theirs[self.layer + 1][0].float().cpu().numpy()).max())
        yield {"case": "states against output_hidden_states", "largest difference": apart, "ok": apart == 0.0}

    def rounding(self) -> Iterator[Figures]:
        """How far a batch moves the next token's distribution from that of a prompt alone."""
        prompts = self.prompts(min(8, max(self.asked.rows)))
        alone = np.concatenate([self.model.next_logprobs([prompt]) for prompt in prompts])
        together = self.batched(len(prompts)).next_logprobs(prompts)
        kl = float((np.exp(together) * (together - alone)).sum(axis=1).mean())
        yield {"case": f"{len(prompts)} prompts together against alone", "KL, nats": kl, "ok": abs(kl) < 0.05}

    def steering(self) -> Iterator[Figures]:
        """A vector added at one layer moves the states by its length along it; what is hidden changes the outcome."""
        prompts, unit = self.prompts(2), self.vector / np.linalg.norm(self.vector)
        plain = self.model.record(prompts, [self.layer])[:, 0]
        amount = 0.5 * self.model.calibrate(prompts).median_norm[self.layer]
        edit = Add(self.layer, self.vector, amount, Positions(skip_sinks=False))
        self.model._sink_norms = None  # as while `plain` was recorded
        moved = (self.model.record(prompts, [self.layer], edits=[edit])[:, 0] - plain) @ unit / amount
        yield {"case": "moved along the vector, as a share of its length", "share": float(moved.mean()),
               "ok": bool(np.abs(moved - 1).max() < 0.02)}  # fmt: skip
        before = self.model.next_logprobs(prompts)
        for name, one in (("steered", edit), ("all tokens hidden", Suppress(Positions(skip_sinks=False)))):
            after = self.model.next_logprobs(prompts, [one])
            kl = float((np.exp(after) * (after - before)).sum(axis=1).mean())
            yield {"case": f"next token, {name}", "KL, nats": kl, "ok": kl > 1e-4}

    def batches(self) -> Iterator[Figures]:
        """Tokens a second of answers by rows of a batch, plain, steered by row, and of the library's own generation."""
        new = self.asked.new
        for rows in self.asked.rows:
            prompts, model, how = self.prompts(rows), self.batched(rows), [Sampling(new)] * rows
            edits = [Add(self.layer, self.vector, float(n % 3), Positions("generated")) for n in range(rows)]

            def steered(model: HookedModel = model, prompts: list[Prompt] = prompts, edits: list[Add] = edits) -> None:
                answers = model.answers()
                answers.add(
                    [(n, Request(p, Sampling(new), (e,))) for n, (p, e) in enumerate(zip(prompts, edits, strict=True))]
                )
                while len(answers):
                    answers.step()

            def library(rows: int = rows) -> None:
                ids = torch.tensor(self.drawn[:rows], device=self.device)
                with torch.inference_mode():
                    self.inner.generate(
                        ids,
                        attention_mask=torch.ones_like(ids),
                        max_new_tokens=new,
                        min_new_tokens=new,
                        do_sample=False,
                    )

            works = {"plain": lambda m=model, p=prompts, h=how: m.generate(p, h), "steered by row": steered}
            for name, work in {**works, "the library's generate": library}.items():
                work() if rows == self.asked.rows[0] else None  # whatever is set up at first use
                seconds, peak = self.timed(work)
                yield {"case": f"{rows} rows, {name}", "tokens/s": round(rows * new / seconds, 1), "peak GiB": peak}

    def memory(self) -> Iterator[Figures]:
        """A batch as large as the default takes it fits, and takes no more than the memory there is."""
        most = tokens_that_fit(self.inner)
        each = self.asked.tokens + self.asked.new
        rows = max(1, min(most // each, 4 * max(self.asked.rows)))
        prompts = [Prompt(tuple(self.drawn[n % len(self.drawn)]), ()) for n in range(rows)]
        model = self.batched(rows, most)
        seconds, peak = self.timed(lambda: model.generate(prompts, [Sampling(self.asked.new)] * rows))
        total = torch.cuda.mem_get_info()[1] / 2**30 if self.device.type == "cuda" else None
        fits = peak is None or total is None or peak < total
        yield {"case": f"{rows} rows under the default of {most:,} tokens", "seconds": round(seconds, 2),
               "peak GiB": peak, "GiB there are": total, "ok": fits}  # fmt: skip


PARTS = ("states", "rounding", "steering", "batches", "memory")


def measured(asked: argparse.Namespace) -> Figures:
    """Every part for which there is time, and the machine that it ran on."""
    started = time.monotonic()
    if asked.model:
        how = Loading(dtype=LOADED_AS[asked.dtype], device=asked.device, packed=False)
        model = load(asked.model, how)
    else:
        model = model_of(asked.shape, asked.device, asked.dtype)
    card = model.card
    loaded_s = time.monotonic() - started
    bench, rows, until = Bench(model, asked), [], started + 60 * asked.minutes
    for part in PARTS:
        try:
            for figures in getattr(bench, part)():
                rows.append({"part": part, **figures})
                if time.monotonic() > until:
                    rows.append({"part": part, "case": "the rest: not run, the time was up"})
                    break
        except torch.cuda.OutOfMemoryError as problem:
            rows.append({"part": part, "case": f"out of memory: {str(problem)[:120]}", "ok": False})
        if time.monotonic() > until and part != PARTS[-1]:
            rows += [{"part": later, "case": "not run, the time was up"} for later in PARTS[PARTS.index(part) + 1 :]]
            break
    on_gpu = torch.cuda.is_available() and asked.device.startswith("cuda")
    return {
        "device": torch.cuda.get_device_name() if on_gpu else asked.device,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "model": asked.model or f"{asked.shape}, random weights",
        "layers": card.layers,
        "width": card.width,
        "dtype": asked.dtype,
        "load_s": round(loaded_s, 1),
        "seconds": round(time.monotonic() - started, 1),
        "rows": rows,
    }


def text_of(found: Figures) -> str:
    head = [f"{name:12} {value}" for name, value in found.items() if name != "rows"]
    lines = []
    for row in found["rows"]:
        figures = {k: v for k, v in row.items() if k not in ("part", "case", "ok") and v is not None}
        said = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
        mark = {True: "ok", False: "WRONG"}.get(row.get("ok"), "")
        lines.append(f"{row['part']:10} {row['case']:52} {said:44} {mark}".rstrip())
    return "\n".join([*head, "", *lines])


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="7b")
    parser.add_argument("--model", help="a model's folder or id instead of random weights")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", choices=LOADED_AS, default="bf16")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--rows", type=lambda text: [int(n) for n in text.split(",")], default=[1, 8, 32, 128])
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--out", type=Path, default=Path("lab-gpu.json"))
    asked = parser.parse_args(words)
    found = measured(asked)
    asked.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(text_of(found))
    return int(any(row.get("ok") is False for row in found["rows"]))


if __name__ == "__main__":
    sys.exit(main())
