"""Text statistics: the counts of words, lines and repetitions from which quality scores are made.

`reference` says what is counted, in plain Python; `cpu` counts the same with numba.
"""
