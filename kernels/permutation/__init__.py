"""A seeded permutation of 0..size-1 that answers for single places, without a table.

Contract: `permute(places, size, *, key) -> items` is a bijection of 0..size-1 for every key, the
same on every machine and for any grouping of the places into calls. `mix64(values, *, key)` is
the keyed 64-bit hash beneath it.
"""
