"""The MoE transformer, its losses and its optimizers.

It knows no pipeline. What a recipe declares with is free of torch, and so is what counts a model
without building it: `config`, `presets`, `counts`, `size`, `schedule`, `laws`.
"""
