"""What a DAG is made of: steps over data, training steps and evaluations.

A step has two modules. The one with its name holds the declaration (the function a recipe calls
and the frozen config) and imports nothing heavy. The one it names as a string holds the body and
is imported only in the worker. `steps.data`, `steps.train` and `steps.evals` ignore each other
and meet in `steps.formats`.
"""
