import pytest

from pipeline.errors import ConfigError
from pipeline.folder import run_body
from pipeline.step import Step
from steps.data import compare_packing_body, pack_body
from steps.data.compare_packing import compare_packing
from steps.data.pack import PackConfig
from tests.steps.token_builders import documents_of, write_token_store


def plans(tmp_path, lengths, *configs, name="tokens"):
    tokens = write_token_store(tmp_path / name, documents_of(lengths))
    return [
        run_body(pack_body.run, config, {"tokens": tokens}, tmp_path / f"{name}-plan-{number}").root
        for number, config in enumerate(configs)
    ]


def compare(tmp_path, folders):
    return run_body(compare_packing_body.run, None, {"plans": folders}, tmp_path / "report")


def test_a_report_counts_what_each_plan_costs(tmp_path):
    wide, narrow = PackConfig(sequence_length=128), PackConfig(sequence_length=32)
    folders = plans(tmp_path, [100, 28, 20, 20, 20], wide, narrow)

    report = compare(tmp_path, folders).read_json("report.json")

    first, second = report
    assert (first["rows"], first["padding_tokens"], first["cut_documents"]) == (2, 68, 0)
    assert first["documents_per_row"] == 2.5
    assert (second["sequence_length"], second["cut_documents"]) == (32, 1)
    assert [plan["tokens_lost"] for plan in report] == [0, 0]


def test_three_lengths_over_one_store_are_set_side_by_side(tmp_path):
    lengths = [30_000, 9_000, 5_000, *[900] * 21]
    configs = [PackConfig(sequence_length=length) for length in (65_536, 16_384, 4_096)]

    table = compare(tmp_path, plans(tmp_path, lengths, *configs)).read_json("summary.json")

    assert table["tables"][0]["columns"] == [
        *("tokens per row", "rows", "fill", "padding", "cut", "docs per row", "lost")
    ]
    assert table["tables"][0]["rows"] == [
        ["65,536", "1", "95.98 %", "2,636", "0 (0.00 %)", "24.00", "0"],
        ["16,384", "4", "95.98 %", "2,636", "1 (4.17 %)", "6.75", "0"],
        ["4,096", "16", "95.98 %", "2,636", "3 (12.50 %)", "2.44", "0"],
    ]


def test_the_summary_has_one_line_per_plan(tmp_path):
    configs = [PackConfig(sequence_length=64), PackConfig(sequence_length=64, cut="any")]

    summary = compare(tmp_path, plans(tmp_path, [48] * 40, *configs)).read_json("summary.json")

    rows = summary["tables"][0]["rows"]
    assert [row[0] for row in rows] == ["64", "64 (cut any)"]
    assert [row[2] for row in rows] == ["75.00 %", "100.00 %"]


def test_plans_of_no_documents_can_be_compared(tmp_path):
    report = compare(tmp_path, plans(tmp_path, [], PackConfig())).read_json("report.json")

    assert (report[0]["rows"], report[0]["fill_percent"]) == (0, 0.0)


def test_plans_over_different_documents_are_refused(tmp_path):
    folders = plans(tmp_path, [5], PackConfig()) + plans(tmp_path, [6], PackConfig(), name="b")

    with pytest.raises(ConfigError, match="different documents"):
        compare(tmp_path, folders)


def test_the_step_takes_plans_in_the_order_of_the_recipe():
    packs = [Step("pack", "steps.data.pack_body:run", label=str(n)) for n in range(3)]

    assert compare_packing(*packs).inputs["plans"] == tuple(packs)


def test_comparing_nothing_is_refused():
    with pytest.raises(ConfigError, match="at least one"):
        compare_packing()
