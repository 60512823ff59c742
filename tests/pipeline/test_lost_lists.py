"""The file list of an artifact is lost or empty: what reads the artifact has it built again."""

import pytest

from pipeline.store import layout


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_an_artifact_without_its_file_list_is_built_again_where_it_is_read(project, how):
    record = project.run().records["count"]
    path = project.store.adapter.root / layout.manifest(record.content_digest)
    path.unlink()
    if how == "emptied":
        path.touch()
    project.edit("bodies.py", '{"total": 3}', '{"total": 4}')  # so that it reads what count made

    result = project.run()

    assert result.is_good, result.failures
    assert sorted(result.own) == ["count", "total"]
    assert result.records["count"] == record
    assert project.store.manifest(record.content_digest).content_digest == record.content_digest
