from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernels.representatives import cpu, reference

SMALL_SET = st.sets(st.integers(0, 9), max_size=8)
CASES = st.lists(st.tuples(st.lists(st.integers(0, 4), max_size=4), SMALL_SET), max_size=25)
THRESHOLDS = st.sampled_from([0.6, 0.7, 0.75, 0.8, 1.0])


def ragged(lists, dtype) -> cpu.Ragged:
    offsets = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(values) for values in lists], out=offsets[1:])
    return cpu.Ragged(np.array([v for values in lists for v in values], dtype=dtype), offsets)


def choose(buckets, shingles, *, threshold: float) -> cpu.Choice:
    sets = ragged([sorted(values) for values in shingles], np.uint64)
    return cpu.choose(ragged(buckets, np.int64), sets, threshold=threshold)


@given(CASES, THRESHOLDS)
def test_the_cpu_backend_chooses_what_the_reference_says(documents, threshold):
    buckets, shingles = [d[0] for d in documents], [d[1] for d in documents]

    choice = choose(buckets, shingles, threshold=threshold)

    expected = reference.choose(buckets, shingles, threshold=threshold)
    assert choice.kept_N.tolist() == [-1 if r is None else r.kept for r in expected]
    assert choice.jaccard_N.tolist() == [0.0 if r is None else r.jaccard for r in expected]


@given(CASES, THRESHOLDS)
def test_every_removed_document_resembles_one_that_stays(documents, threshold):
    shingles = [d[1] for d in documents]

    choice = choose([d[0] for d in documents], shingles, threshold=threshold)

    for number, kept in enumerate(choice.kept_N.tolist()):
        if kept >= 0:
            assert choice.kept_N[kept] == -1
            union = shingles[number] | shingles[kept]
            assert len(shingles[number] & shingles[kept]) / len(union) >= threshold


def test_a_chain_of_small_edits_keeps_a_twin_for_each():
    words = [set(range(n, n + 20)) for n in range(30)]

    choice = choose([[0]] * 30, words, threshold=0.7)

    assert np.flatnonzero(choice.kept_N == -1).tolist() == [0, 4, 8, 12, 16, 20, 24, 28]


def test_a_threshold_that_binary_cannot_hold_still_includes_its_own_ratio():
    choice = choose([[0], [0]], [set(range(100)), set(range(55))], threshold=0.55)

    assert choice.kept_N.tolist() == [-1, 0]


def test_a_hundred_thousand_copies_cost_one_comparison_each():
    copies = 100_000

    choice = choose([[0, 1, 2]] * copies, [{1, 2, 3}] * copies, threshold=0.7)

    assert choice.comparisons == copies - 1


def test_a_bucket_of_strangers_costs_a_bounded_number_of_comparisons():
    strangers = 5_000

    choice = choose([[0]] * strangers, [{n} for n in range(strangers)], threshold=0.7)

    assert choice.comparisons <= reference.MAX_CENTRES * strangers
    assert (choice.kept_N == -1).all()
