"""The bodies of export to, and import from, Hugging Face transformers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer

from model.config_json import config_from_json, config_to_json
from model.huggingface.checkpoint import export_weights, import_weights
from model.huggingface.config import config_from_huggingface, config_to_huggingface
from model.huggingface.families import family_of
from pipeline.errors import ConfigError
from steps.formats import TOKENIZER_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from model.config import ModelConfig
    from pipeline.body import Artifact, Inputs, Output
    from pipeline.step import NoConfig
    from steps.train.huggingface import ExportConfig

INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
_TOKENIZER_CONFIG_FILE = "tokenizer_config.json"


def export_huggingface(config: ExportConfig, inputs: Inputs, output: Output) -> None:
    """Write a checkpoint of ours as `transformers` loads it."""
    checkpoint = inputs["checkpoint"]
    about = checkpoint.read_json("config.json")
    model, eos_id = config_from_json(about["model"]), about["tokenizer"]["eos_id"]
    with _as_config_error():
        theirs = config_to_huggingface(model, config.model_type)
    index = export_weights(
        checkpoint.local(SINGLE_FILE),
        output.open,
        config=model,
        family=family_of(config.model_type),
        dtype=getattr(torch, config.dtype),
        shard_bytes=config.shard_bytes,
    )
    output.write_json(INDEX_FILE, index)
    output.write_json(
        "config.json",
        {
            **theirs,
            "max_position_embeddings": about["sequence_length"],
            "torch_dtype": config.dtype,
            "bos_token_id": None,
            "eos_token_id": eos_id,
            "pad_token_id": None,
        },
    )
    output.write_json("summary.json", _summary("Exported model", model, config.model_type))


def export_with_tokenizer(config: ExportConfig, inputs: Inputs, output: Output) -> None:
    """The same, with a tokenizer beside it."""
    about = inputs["checkpoint"].read_json("config.json")
    _write_tokenizer(inputs["tokenizer"], about, output)
    export_huggingface(config, inputs, output)


def import_huggingface(config: NoConfig, inputs: Inputs, output: Output) -> None:
    """Write what `transformers` would load as a checkpoint of ours, with its tokenizer."""
    del config
    folder = inputs["folder"]
    theirs = folder.read_json("config.json")
    with _as_config_error():
        model = config_from_huggingface(theirs)
        with output.open(SINGLE_FILE) as sink:
            import_weights(
                _shards(folder), sink, config=model, family=family_of(theirs["model_type"])
            )
    if TOKENIZER_FILE in folder.paths():
        output.write_bytes(TOKENIZER_FILE, folder.read_bytes(TOKENIZER_FILE))
    output.write_json(
        "config.json",
        {
            "model": config_to_json(model),
            "sequence_length": theirs.get("max_position_embeddings"),
            "tokenizer": {"vocab_size": model.vocab_size, "eos_id": _first(theirs, "eos_token_id")},
        },
    )
    output.write_json("summary.json", _summary("Imported model", model, theirs["model_type"]))


def _shards(folder: Artifact) -> list[Path]:
    """The files that `transformers` would read; others may hold the same weights once more."""
    paths = folder.paths()
    if INDEX_FILE in paths:
        named = sorted(set(folder.read_json(INDEX_FILE)["weight_map"].values()))
    else:
        named = [SINGLE_FILE]
    missing = [name for name in named if name not in paths]
    if missing:
        msg = (
            f"the imported folder lacks {missing[0]}, which holds its weights; import a folder "
            f"with {SINGLE_FILE}, or with {INDEX_FILE} and all files that it names"
        )
        raise ConfigError(msg)
    return [folder.local(name) for name in named]


def _write_tokenizer(tokenizer: Artifact, about: dict[str, Any], output: Output) -> None:
    """tokenizer.json as it is, and the file beside it that says which token ends a text."""
    data = tokenizer.read_bytes(TOKENIZER_FILE)
    opened = Tokenizer.from_str(data.decode())
    words, eos_id = about["model"]["vocab_size"], about["tokenizer"]["eos_id"]
    if opened.get_vocab_size() > words:
        msg = (
            f"the tokenizer has {opened.get_vocab_size()} tokens, the model vocab_size={words}; "
            "export with the tokenizer that made the model's tokens"
        )
        raise ConfigError(msg)
    output.write_bytes(TOKENIZER_FILE, data)
    output.write_json(
        _TOKENIZER_CONFIG_FILE,
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": None if eos_id is None else opened.id_to_token(eos_id),
            "model_max_length": about["sequence_length"],
            "clean_up_tokenization_spaces": False,
        },
    )


def _first(theirs: dict[str, Any], key: str) -> int | None:
    """An id, or the first of a list of them, as configs of chat models have it."""
    found = theirs.get(key)
    return found[0] if isinstance(found, list) else found


def _summary(title: str, model: ModelConfig, model_type: str) -> dict[str, Any]:
    facts = {
        "family": model_type,
        "parameters": f"{model.total_parameters:,}",
        "active parameters": f"{model.active_parameters:,}",
    }
    return {"title": title, "facts": facts, "tables": []}


@contextmanager
def _as_config_error() -> Iterator[None]:
    """What a model config cannot express is no fault of the program."""
    try:
        yield
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from error
