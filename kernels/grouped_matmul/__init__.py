"""One operation, several ways: rows that are sorted by group times their group's matrix.

Contract of `grouped_matmul(x_MD, weight_EDF, counts) -> y_MF`: `counts` holds one length per
group, in order, and sums to M; a group may be empty. Values and both gradients are those of
`reference`; the gradient of an empty group's matrix is zero, never unset memory.
"""
