"""The DAG engine: identity, store, plan, run, lineage and the command line.

It knows no step, no model and no torch. A recipe builds `pipeline.step.Step` values; everything
else here decides whether a step's output exists already and, if not, how it comes to exist.
"""
