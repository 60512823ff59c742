"""How far a backend may be from its reference: one table, which no environment variable loosens.

Differences are measured against the largest magnitude of the reference, so that a sum's length
does not matter; 2e-6 is about sixteen roundings of fp32.
"""

from __future__ import annotations

FLOAT32 = {
    "dispatch": 1e-6,
    "grouped_matmul": 2e-6,
    "linear_cross_entropy": 5e-6,
    "segment_attention": 5e-6,
}
