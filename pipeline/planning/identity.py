"""The digests of a DAG: recipe digests before anything runs, action keys once inputs are there.

The recipe digest names a step by its definition and its inputs' definitions; the action key by its
definition and its inputs' bytes. The action key is the cache key, so that equal bytes upstream stop
a re-run (early cut-off); the recipe digest finds a finished step without looking at its ancestors.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from pipeline.encoding import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.planning.dag import Dag, Node
    from pipeline.sources import Source, SourceManifest
    from pipeline.step import Step

DEFINITION_FORMAT = "seaglass-definition/1"
RECIPE_FORMAT = "seaglass-recipe/2"
ACTION_FORMAT = "seaglass-action/2"
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
    def definitions(self) -> dict[str, str]:
        """The definition digest of every step, by title: what the user wrote, without inputs."""
        return {title: self._definition(node) for title, node in self._dag.nodes.items()}

    @cached_property
    def recipe_digests(self) -> dict[str, str]:
        """The recipe digest of every step, by title, parents first."""
        found: dict[str, str] = {}
        for title, node in self._dag.nodes.items():
            value = (RECIPE_FORMAT, self.definitions[title], self._inputs(node, found))
            found[title] = digest(value, path=title)
        return found

    def action_key(
        self, title: str, content_digests: Mapping[str, str], *, definition: str | None = None
    ) -> str:
        """The cache key of a step, given the content digests of its inputs by title.

        With `definition` it is the key that a predecessor of the step would have had.
        """
        inputs = self._inputs(self._dag.nodes[title], content_digests)
        used = definition or self.definitions[title]
        return digest((ACTION_FORMAT, used, inputs), path=title)

    def _definition(self, node: Node) -> str:
        step = node.step
        code = self._code_digest(step)
        return digest((DEFINITION_FORMAT, step.name, step.body, code, node.config_digest))

    def _inputs(self, node: Node, digests: Mapping[str, str]) -> dict[str, object]:
        """Digests of the inputs by role: one, a list for an ordered role, or a source's."""
        found: dict[str, object] = {
            role: [] for role, value in node.step.inputs.items() if isinstance(value, tuple)
        }
        for role, index, parent in node.parents:
            if index is None:
                found[role] = digests[parent]
            else:
                cast("list[str]", found[role]).append(digests[parent])
        for role, source in node.step.sources():
            found[role] = ("source", self._manifest_digest(source))
        return found
