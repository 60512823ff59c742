"""`seaglass scaling`: what a model costs, before anything is built."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli.options import console, json_option, print_json
from pipeline.cli.text import size as readable
from pipeline.cli.text import table
from steps.scaling.size_report import mesh_from, size_report

_COUNT = click.IntRange(min=1)
_ACTIVE = "active: what a token meets, without the embedding table"
_BY_MARIN = "active by Marin: attention, latent, shared, router, chosen experts"
_FORMULA = (
    "FLOPs: 2 per active parameter (arXiv:2001.08361, table 1) and 4 x heads x head_dim per token"
    " attended to; training is 3 x forward. Marin's count has no norms and gates, and every token"
    " attends to a full window."
)


@click.group()
def scaling() -> None:
    """Say what a model costs and gains with its size."""


@scaling.command()
@click.argument("preset")
@click.option("--mesh", default="", metavar="AXIS=N,...", help="Axes: replica, data, expert.")
@click.option("--sequence-length", default=4_096, show_default=True, type=_COUNT)
@click.option("--tokens-per-device", type=_COUNT, help="Per update; one sequence unless given.")
@json_option
def size(
    *,
    preset: str,
    mesh: str,
    sequence_length: int,
    tokens_per_device: int | None,
    as_json: bool,
) -> int:
    """Count parameters, FLOPs, memory and traffic of PRESET, without building it."""
    report = size_report(
        preset,
        mesh_from(mesh),
        sequence_length=sequence_length,
        tokens_per_device=tokens_per_device or sequence_length,
    )
    if as_json:
        print_json(report)
    else:
        _show(report)
    return 0


def _show(report: dict[str, Any]) -> None:
    out = console()
    parameters, flops = report["parameters"], report["flops_per_token"]
    counts = table("parameters", ">number", title=report["preset"])
    counts.add_row("total", f"{parameters['total']:,}")
    counts.add_row(_ACTIVE, f"{parameters['active']:,}")
    counts.add_row(_BY_MARIN, f"{parameters['active_by_marin']:,}")
    for kind, number in parameters["by_kind"].items():
        if number:
            counts.add_row(f"  {kind.replace('_', ' ')}", f"{number:,}")
    out.print(counts)
    costs = table(f"FLOPs per token of {report['sequence_length']:,}", ">number")
    for name, number in flops.items():
        costs.add_row(name.replace("_", " "), f"{number:.4g}")
    out.print(costs)
    axes = ", ".join(f"{axis} {number}" for axis, number in report["mesh"].items())
    per_device = f"per device, {report['tokens_per_device']:,} tokens each ({axes})"
    memory = table(f"memory {per_device}", ">bytes")
    _add_bytes(memory, report["memory_bytes_per_device"])
    out.print(memory)
    traffic = table("all-to-all of one layer, sent by a device", ">bytes")
    _add_bytes(traffic, report["all_to_all_bytes_per_layer"])
    out.print(traffic)
    out.print(_FORMULA, style="dim")


def _add_bytes(rows: Any, sizes: dict[str, int]) -> None:
    for name, number in sizes.items():
        rows.add_row(name.replace("_", " "), readable(number))
