"""One folder per operation: a plain reference, faster backends, one contract for all of them.

Nothing here knows a model, a step or the engine.
"""
