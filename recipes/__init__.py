"""Recipes: Python functions that return steps. Calling one runs nothing."""
