"""Damage met by a worker of Ray: the same run builds it anew, under the same record."""

import pytest

from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.run import Run

SHARDED = {
    "bodies.py": """
        def read(config, inputs, output):
            output.write_bytes("a.txt", b"one two")


        def shard(config, shard, inputs, output):
            output.write_bytes(f"shards/{shard}.txt", inputs["text"].read_bytes("a.txt"))


        def count(config, inputs, output):
            output.map_shards(shard, ["a", "b"])


        def total(config, inputs, output):
            counts = inputs["counts"]
            texts = [counts.read_bytes(path) for path in counts.paths()]
            output.write_json("total.json", {"total": len(b" ".join(texts).split())})
        """
}


def run_on_ray(project):
    plan = project.plan()
    return Run(plan, Board(plan.dag.nodes)).execute(lambda: make_executor("local", plan.codebase))


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_damage_that_a_worker_meets_is_built_again_in_the_same_run(make_project):
    project = make_project(SHARDED)
    record = project.run().records["count"]
    read = project.plan(everything=True).resolution.records["read"]
    for damaged, path in ((record, "shards/b.txt"), (read, "a.txt")):
        key = project.store.copy(damaged.content_digest).location.keys[path]
        project.store.adapter.local_path(key).write_bytes(b"damaged")
    project.edit("bodies.py", '{"total"', '{"words"')

    result = run_on_ray(project)

    assert result.is_good, result.failures
    assert sorted(result.own) == ["count", "read", "total"]
    assert result.records["count"] == record
    assert project.json(result, "total", "total.json") == {"words": 4}
