"""The arithmetic of optimizers over two real gloo processes that share one tensor."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("two_processes.py")
CASES = [
    "rows",
    "columns",
    "experts",
    "uneven experts",
    "one expert",
    "rows of experts",
    "replicated",
]


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """What each of the two ranks measured, by case and quantity."""
    folder = tmp_path_factory.mktemp("ranks")
    commands = [[sys.executable, str(SCRIPT), str(rank), str(folder)] for rank in range(2)]
    running = [
        subprocess.Popen(c, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE)
        for c in commands
    ]
    ended = [process.communicate(timeout=240)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], "\n".join(ended)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("case", CASES)
def test_the_norm_of_a_sharded_tensor_is_the_whole_ones(errors, case):
    assert max(rank[case]["norm"] for rank in errors) < 1e-6


@pytest.mark.parametrize("case", CASES)
def test_a_sharded_update_is_orthogonalized_as_the_whole_one(errors, case):
    assert max(rank[case]["orthogonalized"] for rank in errors) < 1e-5


@pytest.mark.parametrize("optimizer", ["Muon", "AdamH", "MuonH"])
@pytest.mark.parametrize("case", CASES)
def test_a_sharded_parameter_moves_as_the_whole_one(errors, case, optimizer):
    assert max(rank[case][optimizer] for rank in errors) < 1e-5
    assert min(rank[case][f"{optimizer} moved"] for rank in errors) > 1e-3
