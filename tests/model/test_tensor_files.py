import io
import weakref

import pytest
import torch
from safetensors.torch import save, save_file

from model.tensor_files import TensorFiles, write_tensors


@pytest.fixture
def tensors():
    generator = torch.Generator().manual_seed(0)
    shapes = {"b": (3, 4), "a.é": (5,), "c": (2, 3, 2)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def _written(tensors, read, dtype):
    sink = io.BytesIO()
    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    write_tensors(sink, shapes, read, dtype=dtype)
    return sink.getvalue()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_bytes_are_those_of_safetensors(tensors, dtype):
    written = _written(tensors, tensors.__getitem__, dtype)

    cast = {name: value.to(dtype) for name, value in tensors.items()}
    assert written == save(cast, metadata={"format": "pt"})


def test_a_tensor_is_let_go_before_the_next_one_is_read(tensors):
    alive = []

    def read(name):
        assert not any(reference() is not None for reference in alive)
        value = tensors[name].clone()
        alive.append(weakref.ref(value))
        return value

    _written(tensors, read, torch.float32)

    assert len(alive) == len(tensors)


def test_tensors_of_several_files_are_found_by_name(tensors, tmp_path):
    for name, value in tensors.items():
        save_file({name: value}, tmp_path / name)

    files = TensorFiles([tmp_path / name for name in tensors])

    assert files.shapes == {name: tuple(value.shape) for name, value in tensors.items()}
    assert torch.equal(files.tensor("b"), tensors["b"])
    assert torch.equal(files.tensor("c", 1), tensors["c"][1])
