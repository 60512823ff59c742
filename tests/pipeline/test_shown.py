"""What people read of a config: its classes, and what differs between two of them."""

from dataclasses import dataclass, field

from pipeline.asking.difference import Change, changes
from pipeline.shown import differences, settings, shown


@dataclass(frozen=True)
class Nothing:
    """Without fields."""


@dataclass(frozen=True)
class Tokens:
    """One field."""

    count: int = 20


@dataclass(frozen=True)
class Epochs:
    """The same field, another class."""

    count: int = 20


@dataclass(frozen=True)
class Block:
    """Several fields, one of them a class of its own."""

    width: int = 4
    depth: int = 2
    balance: object = field(default_factory=Nothing)


@dataclass(frozen=True)
class Config:
    """The whole."""

    part: object = None
    shares: dict = field(default_factory=dict)


def lines(old, new):
    """The differences of two configs."""
    return differences(shown(old), shown(new))


def test_a_class_without_fields_is_shown():
    assert settings(shown(Config(part=Nothing())))["part"] == "Nothing"


def test_equal_fields_of_two_classes_are_told_apart():
    found = settings(shown(Config(shares={"a": Tokens(), "b": Epochs()})))

    assert found == {"part": None, "shares.a": "Tokens(count=20)", "shares.b": "Epochs(count=20)"}


def test_a_class_of_several_fields_stands_above_them():
    found = settings(shown(Config(part=[Block()])))

    assert list(found.items())[:4] == [
        ("part[0]", "Block"),
        ("part[0].width", 4),
        ("part[0].depth", 2),
        ("part[0].balance", "Nothing"),
    ]


def test_a_part_that_appears_or_vanishes_is_one_difference():
    assert lines(Config(), Config(part=Block())) == ["part: None -> Block"]
    assert lines(Config(part=Block()), Config()) == ["part: Block -> None"]


def test_a_part_of_another_class_is_one_difference():
    old, new = Config(shares={"a": Tokens()}), Config(shares={"a": Epochs(7)})

    assert lines(old, new) == ["shares.a: Tokens(count=20) -> Epochs(count=7)"]


def test_an_entry_that_comes_or_goes_is_one_difference():
    old, new = Config(shares={"a": Tokens()}), Config(shares={"b": Tokens()})

    assert lines(old, new) == [
        "shares.a: removed, was Tokens(count=20)",
        "shares.b: added as Tokens(count=20)",
    ]


def test_fields_of_the_same_class_are_compared_one_by_one():
    old, new = Config(part=Block()), Config(part=Block(width=8))

    assert lines(old, new) == ["part.width: 4 -> 8"]


def test_a_config_of_another_class_is_one_difference():
    assert lines(Nothing(), Block()) == ["Nothing -> Block"]


def test_numbers_of_other_types_differ():
    assert lines(Config(part=1), Config(part=1.0)) == ["part: 1 -> 1.0"]


def test_what_a_diff_says_names_classes():
    old, new = ({"config": shown(Config(part=part))} for part in (Block(), None))

    assert changes(old, new) == (Change(field="config.part", old="Block", new=None),)
