"""Tokens to experts and back: `dispatch` copies, `combine` sums.

A *choice* is one (token, rank) pair of the N x K that a router made, numbered `token * K + rank`;
`order_M` lists the choices that are carried out, sorted by expert. A choice that is missing from
it was dropped and adds nothing. Contract: `dispatch(x_ND, order_M, top_k) -> x_MD` and
`combine(y_MD, order_M, weights_NK) -> out_ND`; values and gradients are those of `reference`.
"""
