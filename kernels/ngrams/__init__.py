"""N-grams of a few texts (evaluation items), found again in many (the corpus), exactly.

`reference` says what is found, in plain Python; `cpu` finds the same with numba. Tokens are those
of `kernels.minhash`: words in lower case without punctuation, characters in unspaced scripts.
"""
