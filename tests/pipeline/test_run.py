def test_a_run_leaves_every_record_and_the_result(project):
    result = project.run()

    assert result.is_good
    assert sorted(result.own) == ["count", "read", "total"]
    assert project.json(result, "total", "total.json") == {"total": 3}
