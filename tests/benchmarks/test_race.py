"""Contestants are real processes; what becomes of one that fails is a result."""

import sys
from pathlib import Path

import pytest

from benchmarks.peers.race import Contestant, Course, race

JOB = """
import json, sys, time
phase = sys.argv[1]
num_run = 0
if phase == "plan":
    {work}
with open("report.json", "w") as sink:
    json.dump({{"start_s": 0.1, "work_s": 0.1, "num_run": num_run}}, sink)
"""
COURSE = Course(shape="chain", size=3, limit_s=20)


@pytest.fixture
def contestant(tmp_path):
    """Makes a contestant that plans by a line of code."""

    def make(name, work="pass"):
        (tmp_path / f"{name}.py").write_text(JOB.format(work=work))
        return Contestant(
            name=name, module=name, python=Path(sys.executable), phase="plan", home=tmp_path
        )

    return make


def test_every_contestant_runs_once_in_each_round(contestant):
    contestants = [contestant("one"), contestant("two")]

    rows = race(contestants, COURSE, 2)

    assert [(row["who"], row["outcome"], row["whole_s"]["rounds"]) for row in rows] == [
        ("one", "ok", 2),
        ("two", "ok", 2),
    ]
    assert rows[1]["times_ours"]["work_s"]["median"] == 1


def test_a_crash_is_told_by_its_last_line_and_the_others_go_on(contestant):
    contestants = [contestant("good"), contestant("bad", "raise RecursionError('too deep')")]

    good, bad = race(contestants, COURSE, 2)

    assert good["whole_s"]["rounds"] == 2
    assert bad["outcome"] == "failed with 1: RecursionError: too deep"
    assert "whole_s" not in bad


def test_a_job_over_the_limit_is_ended_and_told(contestant):
    course = Course(shape="chain", size=3, limit_s=1)

    (row,) = race([contestant("slow", "time.sleep(60)")], course, 1)

    assert row["outcome"] == "over 1 s"


def test_a_plan_that_would_run_a_cached_step_is_no_result(contestant):
    (row,) = race([contestant("wrong", "num_run = 2")], COURSE, 1)

    assert row["outcome"] == "wrong: 2 of 3 steps, not 0"
