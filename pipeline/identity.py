"""The digests of a DAG: recipe digests before anything runs, action keys once inputs are there.

The recipe digest names a step by its definition and its inputs' definitions; the action key by its
definition and its inputs' bytes. The action key is the cache key, so that equal bytes upstream stop
a re-run (early cut-off); the recipe digest finds a finished step without looking at its ancestors.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pipeline.encoding import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.dag import Dag, Node
    from pipeline.sources import Source, SourceManifest
    from pipeline.step import Step

RECIPE_FORMAT = "seaglass-recipe/1"
ACTION_FORMAT = "seaglass-action/1"
SOURCE_FORMAT = "seaglass-source/1"


def source_digest(manifest: SourceManifest) -> str:
    """Identity of a source: names, sizes and checksums of its files, and its options."""
    files = tuple((f.name, f.size_bytes, f.checksum) for f in manifest.files)
    return digest((SOURCE_FORMAT, files, dict(manifest.options)), path="source")


class Identity:
    """Digests of the steps of one DAG.

    `code_digest(step)` and `manifest_digest(source)` give the digests of what a step names.
    """

    def __init__(
        self,
        dag: Dag,
        *,
        code_digest: Callable[[Step], str],
        manifest_digest: Callable[[Source], str],
    ) -> None:
        self._dag = dag
        self._code_digest = code_digest
        self._manifest_digest = manifest_digest

    @cached_property
    def recipe_digests(self) -> dict[str, str]:
        """The recipe digest of every step, by title, parents first."""
        found: dict[str, str] = {}
        for title, node in self._dag.nodes.items():
            value = (RECIPE_FORMAT, *self._definition(node), self._inputs(node, found))
            found[title] = digest(value, path=title)
        return found

    def action_key(self, title: str, content_digests: Mapping[str, str]) -> str:
        """The cache key of a step, given the content digests of its inputs by title."""
        node = self._dag.nodes[title]
        inputs = self._inputs(node, content_digests)
        return digest((ACTION_FORMAT, *self._definition(node), inputs), path=title)

    def _definition(self, node: Node) -> tuple[object, ...]:
        """What the user wrote of one step, without its inputs."""
        step = node.step
        return (step.name, step.body, self._code_digest(step), step.config)

    def _inputs(self, node: Node, digests: Mapping[str, str]) -> dict[str, object]:
        """Digests of the inputs by role: one, a list for an ordered role, or a source's."""
        found: dict[str, object] = {}
        for role, value in node.step.inputs.items():
            items = [(index, parent) for r, index, parent in node.parents if r == role]
            if isinstance(value, tuple):
                found[role] = [digests[parent] for _, parent in items]
            elif items:
                found[role] = digests[items[0][1]]
        for role, source in node.step.sources():
            found[role] = ("source", self._manifest_digest(source))
        return found
