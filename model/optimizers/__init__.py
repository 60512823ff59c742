"""Optimizers: which parameter moves in which direction, how far, and what stays as it is.

`config` holds the values a recipe chooses from and `groups` the table of who moves how; neither
needs torch. `directions` and `moves` are the arithmetic, `grouped` applies them, and `build` makes
the optimizer of a model.
"""
