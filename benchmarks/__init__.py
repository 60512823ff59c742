"""Measurements: one command each, JSON out. Never part of the tests, for clocks lie under load."""
