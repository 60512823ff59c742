"""Evaluations: what a checkpoint is worth, next to what costs nothing."""
