"""Dagster: an asset for each step, with an instance in the current folder."""

from __future__ import annotations

from pathlib import Path

from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    DagsterInstance,
    Definitions,
    materialize,
)
from dagster import asset as asset_of
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from benchmarks.peers.job import report
from benchmarks.shapes import parents

_CODE = "1"
_CALLS: list[int] = []


def prepare(shape: str, size: int) -> int:
    """Events that say what a run would have left."""
    instance = _instance()
    steps = parents(shape, size)
    for number, before in enumerate(steps):
        tags = {"dagster/data_version": "v", "dagster/code_version": _CODE}
        tags |= {f"dagster/input_data_version/s{parent}": "v" for parent in before}
        tags |= {f"dagster/input_event_pointer/s{parent}": "NULL" for parent in before}
        instance.report_runless_asset_event(AssetMaterialization(f"s{number}", tags=tags))
    return len(steps)


def plan(shape: str, size: int) -> int:
    """Whether every asset is fresh, as its page would show it."""
    instance = _instance()
    assets = _assets(shape, size)
    graph = Definitions(assets=assets).resolve_asset_graph()
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    states = [resolver.get_status(AssetKey(f"s{number}")) for number in range(len(assets))]
    return sum(state is not StaleStatus.FRESH for state in states)


def execute(shape: str, size: int) -> int:
    """Materialize all of them in this process."""
    materialize(_assets(shape, size), instance=_instance())
    return len(_CALLS)


def _instance() -> DagsterInstance:
    Path("home").mkdir(exist_ok=True)
    Path("home/dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    return DagsterInstance.from_config("home")


def _assets(shape: str, size: int) -> list[AssetsDefinition]:
    return [_asset(number, before) for number, before in enumerate(parents(shape, size))]


def _asset(number: int, before: tuple[int, ...]) -> AssetsDefinition:
    @asset_of(name=f"s{number}", deps=[f"s{parent}" for parent in before], code_version=_CODE)
    def work() -> int:
        _CALLS.append(number)
        return number

    return work


if __name__ == "__main__":
    report(prepare=prepare, plan=plan, execute=execute)
