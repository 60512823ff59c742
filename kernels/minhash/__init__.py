"""MinHash: a document's bytes to its shingle set, and to keys under which near-copies meet.

`reference` says what is computed, in plain Python; `cpu` computes the same numbers with numba.
"""
