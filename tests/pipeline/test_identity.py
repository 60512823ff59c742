"""What moves a digest, and what never does."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from pipeline.planning.dag import build
from pipeline.planning.identity import Identity, source_digest
from pipeline.sources import Source, SourceFile, SourceManifest
from pipeline.step import Resources, Step

CODE = {"lab.body:run": "1" * 64, "lab.body:other": "2" * 64}
CONTENTS = {"left": "a" * 64, "right": "b" * 64}


@dataclass(frozen=True, kw_only=True)
class Config:
    width: int = 1


@dataclass(frozen=True)
class Text(Source):
    resolver: ClassVar[str] = "lab.sources:resolve"
    path: str


def left(**options):
    return Step("left", "lab.body:run", **options)


def right(**options):
    return Step("right", "lab.body:run", **options)


def target(**inputs):
    return Step("target", "lab.body:run", inputs=inputs)


def identity(step):
    return Identity(
        build({"it": step}),
        code_digest=lambda step: CODE[step.body],
        manifest_digest=lambda source: f"manifest of {source.path.rsplit('/')[-1]}",
    )


def recipe_digest(step):
    return list(identity(step).recipe_digests.values())[-1]


def action_key(step, contents=None):
    return identity(step).action_key(step.title, contents or CONTENTS)


BASE = target(a=left(), b=right())

MOVES = {
    "swapped roles": target(a=right(), b=left()),
    "another role": target(a=left(), c=right()),
    "one role less": target(a=left()),
    "an ordered role": target(a=left(), b=(right(),)),
    "the config of an input": target(a=left(config=Config(width=2)), b=right()),
    "the code of an input": target(a=Step("left", "lab.body:other"), b=right()),
    "a source beside": target(a=left(), b=right(), c=Text("x")),
}


@pytest.mark.parametrize("what", MOVES)
def test_a_recipe_digest_moves_with(what):
    assert recipe_digest(MOVES[what]) != recipe_digest(BASE)


def test_a_recipe_digest_moves_with_name_body_and_config():
    steps = [
        Step("target", "lab.body:run", config=Config()),
        Step("target", "lab.body:run", config=Config(width=2)),
        Step("target", "lab.body:run"),
        Step("target", "lab.body:other"),
        Step("other", "lab.body:run"),
    ]

    assert len({recipe_digest(step) for step in steps}) == len(steps)


def test_the_order_of_an_ordered_role_moves_a_digest():
    one, other = target(parts=(left(), right())), target(parts=(right(), left()))

    assert recipe_digest(one) != recipe_digest(other)
    assert action_key(one) != action_key(other)


def test_swapped_roles_move_an_action_key():
    assert action_key(target(a=left(), b=right())) != action_key(target(a=right(), b=left()))


def test_the_order_in_which_roles_are_written_moves_nothing():
    assert recipe_digest(target(b=right(), a=left())) == recipe_digest(BASE)


def test_resources_and_labels_never_move_a_digest():
    big = Resources(cpus=64, gpus=8, memory_bytes=1 << 40, retries=9, environment={"A": "1"})

    other = Step(
        "target",
        "lab.body:run",
        inputs={"a": left(resources=big, label="mine"), "b": right()},
        resources=big,
        label="yours",
    )

    assert recipe_digest(other) == recipe_digest(BASE)


def test_an_action_key_looks_at_the_bytes_of_the_inputs_and_not_at_their_definition():
    changed = target(a=left(config=Config(width=2)), b=right())

    assert action_key(changed) == action_key(BASE)
    assert action_key(BASE, {**CONTENTS, "left": "c" * 64}) != action_key(BASE)


def test_a_recipe_digest_and_an_action_key_never_meet():
    alone = left()

    assert recipe_digest(alone) != action_key(alone)


def test_where_a_source_lies_never_moves_a_digest():
    assert recipe_digest(target(a=Text("/here/x"))) == recipe_digest(target(a=Text("/there/x")))


def manifest(*, name="a.txt", size_bytes=3, checksum="sha256:1", location="/here/a.txt", **more):
    file = SourceFile(name=name, size_bytes=size_bytes, checksum=checksum, location=location)
    return SourceManifest(files=(file,), **more)


@pytest.mark.parametrize(
    "other",
    [
        {"name": "b.txt"},
        {"size_bytes": 4},
        {"checksum": "sha256:2"},
        {"options": {"field": "text"}},
    ],
)
def test_a_source_is_its_names_sizes_checksums_and_options(other):
    assert source_digest(manifest(**other)) != source_digest(manifest())


def test_a_source_is_not_its_place_nor_its_provenance():
    other = manifest(location="/there/a.txt", provenance={"license": "MIT"}, pinned=False)

    assert source_digest(other) == source_digest(manifest())


def test_two_targets_of_equal_meaning_have_one_digest_whatever_the_rest_of_the_dag():
    alone = identity(target(a=left(), b=right())).recipe_digests["target"]
    among = identity(Step("more", "lab.body:run", inputs={"a": target(a=left(), b=right())}))

    assert among.recipe_digests["target"] == alone
