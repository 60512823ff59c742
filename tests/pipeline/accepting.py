"""Accepting and taking back, as the verb does, over a test's project."""

from pipeline.planning.accept import accept_step, last_definition, revoke_step, seen_anew


def say(project, *titles, reason="only renamed"):
    """Accept steps as they are now; returns the ids of the waivers."""
    plan = project.plan(selectors=titles)
    ids = []
    for title in titles:
        ids.append(accept_step(plan, title, last_definition(plan, title), reason=reason)[0])
        plan = seen_anew(plan)
    return ids


def revoke(project, title, before=None):
    plan = project.plan(selectors=[title])
    return revoke_step(plan, title, before, reason="was wrong")


def states(project):
    return {step.title: step.state for step in project.plan(everything=True).steps}
