"""What a worker needs of a plan to try one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.encoding import in_canonical_order
from pipeline.running.attempt import StepTask
from pipeline.shown import shown

if TYPE_CHECKING:
    from pipeline.planning.candidates import Candidate
    from pipeline.planning.plan import Plan


def task_of(
    plan: Plan,
    title: str,
    candidate: Candidate,
    *,
    run_id: str,
    is_forced: bool,
    provenance: dict[str, Any],
) -> StepTask:
    """The task of a step whose inputs are there, under the action key of a candidate.

    Raises:
        SourceError: a source of a frozen plan is not there, or not what was recorded.

    """
    step, closure = plan.dag.nodes[title].step, plan.closure(title)
    return StepTask(
        store_url=plan.store.url,
        upstream=tuple(store.url for store in plan.store.upstream),
        run_id=run_id,
        action_key=candidate.action_key,
        predecessors=candidate.resumes,
        waivers=candidate.waivers,
        recipe_digest=plan.identity.recipe_digests[title],
        definition=plan.identity.definitions[title],
        name=step.name,
        title=title,
        body=step.body,
        config=in_canonical_order(step.config),
        config_shown=shown(step.config),
        code_digest=closure.digest,
        modules=dict(closure.modules),
        inputs=plan.input_records(title, plan.resolution.records),
        sources=plan.sources_to_read(title),
        source_records=plan.source_records(title),
        cpus=step.resources.cpus,
        gpus=step.resources.gpus,
        memory_bytes=step.resources.memory_bytes,
        environment=dict(step.resources.environment),
        secrets=tuple(secret.name for secret in step.resources.secrets),
        forced=is_forced,
        provenance=provenance,
    )
