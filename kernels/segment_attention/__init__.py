"""Causal attention inside each segment of a flat sequence; segments never see each other.

Contract of `segment_attention(q_NHP, k_NGP, v_NGP, lengths, window=None) -> y_NHP`: `lengths` sums
to N, H is a multiple of G, head h reads KV head `h // (H // G)`. With a `window` a token sees only
that many tokens, itself and the last ones before it. No N x N mask is ever built.
"""
