"""Seeded random models of each family, here and in transformers."""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from model.huggingface.checkpoint import export_weights, import_weights
from model.huggingface.config import config_from_huggingface, config_to_huggingface
from model.huggingface.families import FAMILIES
from model.transformer import Transformer
from model.weights import load_model, weights_to_bytes

CONTEXT = 64


@dataclass(frozen=True)
class Folder:
    """A checkpoint of transformers."""

    path: Path

    @property
    def config(self) -> dict:
        return json.loads((self.path / "config.json").read_text(encoding="utf-8"))

    @property
    def shards(self) -> list[Path]:
        return sorted(self.path.glob("*.safetensors"))

    def load(self):
        """As transformers loads it."""
        return AutoModelForCausalLM.from_pretrained(self.path, dtype="auto").eval()

    def read(self, into: Path) -> Transformer:
        """As we load it."""
        config = config_from_huggingface(self.config)
        with into.open("wb") as sink:
            import_weights(
                self.shards, sink, config=config, family=FAMILIES[self.config["model_type"]]
            )
        return load_model(config, into)


@pytest.fixture(autouse=True)
def silent_transformers():
    """No bars, and no advice about token ids that these vocabularies do not have."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()


@pytest.fixture
def folder_at():
    """A checkpoint of transformers that lies there already."""
    return Folder


@pytest.fixture
def export(tmp_path):
    """Writes a model as transformers loads it."""

    def written(model, model_type, *, name="theirs", dtype=torch.float32, shard_bytes=10**9):
        folder = tmp_path / name
        folder.mkdir()
        weights = tmp_path / f"{name}.safetensors"
        weights.write_bytes(weights_to_bytes(model))

        @contextmanager
        def open_file(path):
            with (folder / path).open("wb") as sink:
                yield sink

        index = export_weights(
            weights,
            open_file,
            config=model.config,
            family=FAMILIES[model_type],
            dtype=dtype,
            shard_bytes=shard_bytes,
        )
        (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
        about = {
            **config_to_huggingface(model.config, model_type),
            "max_position_embeddings": CONTEXT,
            "torch_dtype": str(dtype).removeprefix("torch."),
            **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")),
        }
        (folder / "config.json").write_text(json.dumps(about), encoding="utf-8")
        return Folder(folder)

    return written
