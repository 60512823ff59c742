"""The MoE transformer, its losses and its optimizer.

It knows no pipeline. Only `config`, `presets` and `schedule` are free of torch: recipes declare
with them.
"""
