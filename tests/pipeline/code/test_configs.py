"""A config class counts as far as the body can call it; its fields are in the config's digest."""

import pytest

CONFIG = """
from dataclasses import dataclass
from typing import ClassVar


def half(x):
    return x / 2


def check(x):
    assert x


class Base:
    def name(self):
        return "base"


@dataclass(frozen=True, kw_only=True)
class Config(Base):
    width: int
    depth: int = 2
    UNIT: ClassVar[int] = 1

    def __post_init__(self):
        check(self.width)

    @property
    def middle(self):
        return half(self.width)
"""
FILES = {
    "lab/config.py": CONFIG,
    "lab/body.py": "def run(config, inputs, output): config.middle\n",
}
CONFIGS = ("lab.config:Config",)


def changed(old, new):
    assert old in CONFIG
    return {**FILES, "lab/config.py": CONFIG.replace(old, new)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("half(self.width)", "half(self.depth)"),
        ("x / 2", "x // 2"),
        ("UNIT: ClassVar[int] = 1", "UNIT: ClassVar[int] = 2"),
        ('"base"', '"other"'),
        ("@property", "@staticmethod"),
    ],
)
def test_a_changed_method_or_constant_of_a_config_class_counts(follow, old, new):
    before = follow(FILES, configs=CONFIGS)

    after = follow(changed(old, new), configs=CONFIGS)

    assert before.digest != after.digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("depth: int = 2", "depth: int = 3"),
        ("depth: int = 2", "depth: int = 2\n    added: int = 0"),
        ("check(self.width)", "check(self.depth)"),
        ("assert x", "assert x > 1"),
    ],
)
def test_a_changed_field_of_a_config_class_is_no_change_of_code(follow, old, new):
    before = follow(FILES, configs=CONFIGS)

    after = follow(changed(old, new), configs=CONFIGS)

    assert before.digest == after.digest


def test_a_config_class_that_the_body_names_counts_with_its_fields(follow):
    text = "from lab.config import Config\n\n\ndef run(config, inputs, output): Config(width=1)\n"
    before = follow({**FILES, "lab/body.py": text}, configs=CONFIGS)

    files = {**changed("depth: int = 2", "depth: int = 3"), "lab/body.py": text}

    assert before.digest != follow(files, configs=CONFIGS).digest


def test_a_config_class_of_fields_only_adds_no_symbol(follow):
    files = {**FILES, "lab/config.py": "class Config:\n    width: int\n"}

    found = follow(files, configs=CONFIGS)

    assert set(found.symbols) == {"lab.body:run"}
    assert set(found.modules) == {"lab.body", "lab.config"}


SETS = [
    "object.__setattr__(self, 'z', {})",
    "object.__setattr__(self, name, {})",
    "object.__setattr__(self, 'start', {})",
    "self.z = {}",
    "self.z[0] = {}",
    "self.__dict__['z'] = {}",
    "setattr(self, 'z', {})",
    "vars(self)['z'] = {}",
    "self.prepare({})",
    "prepare(self, {})",
    "self.values.append({})",
    "super().__setattr__('z', {})",
    "for self.z in [{}]: pass",
    "TABLE.append({})",
]
CHECKS = [
    "assert self.width < {}",
    "if self.width > {}:\n            raise ValueError(f'{{self.width}}')",
    "check(self.width, {})",
    "least = {}\n        assert self.width > least",
    "for x in [{}]:\n            assert self.width != x",
    "object.__setattr__(self, 'width', {})",
    "if self.name.startswith('{}'):\n            raise ValueError(self.name)",
]
SHAPE = """from dataclasses import InitVar, dataclass, field


{before}@dataclass
class Config:
    width: int
    start: InitVar[int]
    seed: InitVar[int] = {default}

    def __post_init__(self, start, seed):
        {statement}
"""


def shaped(statement="pass", *, before="", default=1):
    text = SHAPE.format(statement=statement, before=before, default=default)
    return {**FILES, "lab/config.py": text}


@pytest.mark.parametrize("statement", SETS)
def test_a_post_init_that_may_set_more_than_fields_counts(follow, statement):
    before = follow(shaped(statement.format(1)), configs=CONFIGS)

    after = follow(shaped(statement.format(2)), configs=CONFIGS)

    assert before.digest != after.digest


@pytest.mark.parametrize("statement", CHECKS)
def test_a_post_init_that_checks_or_derives_fields_does_not_count(follow, statement):
    before = follow(shaped(statement.format(1)), configs=CONFIGS)

    after = follow(shaped(statement.format(2)), configs=CONFIGS)

    assert before.digest == after.digest


def test_the_default_of_an_init_variable_counts(follow):
    before = follow(shaped(default=1), configs=CONFIGS)

    assert before.digest != follow(shaped(default=2), configs=CONFIGS).digest


def test_a_decorator_of_a_config_class_counts_with_what_it_uses(follow):
    text = "def extend(cls):\n    cls.z = {}\n    return cls\n\n\n@extend\n"
    before = follow(shaped(before=text.format(1)), configs=CONFIGS)

    after = follow(shaped(before=text.format(2)), configs=CONFIGS)

    assert "lab.config:extend" in before.symbols
    assert before.digest != after.digest


METADATA = """from dataclasses import dataclass, field

OPTIONS = {"unit": 1}


@dataclass(frozen=True)
class Config:
    width: int = field(default=1, metadata={"unit": 1})
    depth: int = field(default=1, **OPTIONS)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('metadata={"unit": 1}', 'metadata={"unit": 2}'),
        ('OPTIONS = {"unit": 1}', 'OPTIONS = {"unit": 2}'),
    ],
)
def test_the_metadata_of_a_field_counts_since_a_body_can_read_it(follow, old, new):
    before = follow({**FILES, "lab/config.py": METADATA}, configs=CONFIGS)

    after = follow({**FILES, "lab/config.py": METADATA.replace(old, new)}, configs=CONFIGS)

    assert before.digest != after.digest


OPTIONS = {
    "an order": ("@dataclass(frozen=True)", "@dataclass(frozen=True, order=True)"),
    "no repr": ("@dataclass(frozen=True)", "@dataclass(frozen=True, repr=False)"),
    "a field without repr": ("field(default=1, **", "field(default=1, repr=False, **"),
    "a field without comparison": ("field(default=1, **", "field(default=1, compare=False, **"),
}


@pytest.mark.parametrize("what", OPTIONS)
def test_an_option_of_a_dataclass_that_a_body_could_notice_counts(follow, what):
    before = follow({**FILES, "lab/config.py": METADATA}, configs=CONFIGS)

    changed = METADATA.replace(*OPTIONS[what])
    after = follow({**FILES, "lab/config.py": changed}, configs=CONFIGS)

    assert changed != METADATA
    assert before.digest != after.digest


def test_a_default_beside_metadata_is_a_matter_of_the_config(follow):
    before = follow({**FILES, "lab/config.py": METADATA}, configs=CONFIGS)

    after = follow(
        {**FILES, "lab/config.py": METADATA.replace("default=1", "default=2")}, configs=CONFIGS
    )

    assert before.digest == after.digest


def test_fields_count_where_the_body_reads_annotations(follow):
    config = "from dataclasses import dataclass\n\n\n@dataclass\nclass Config:\n    width: int\n"
    body = "import typing\n\n\ndef run(config, i, o): return typing.get_type_hints(type(config))\n"
    files = {"lab/config.py": config, "lab/body.py": body}
    before = follow(files, configs=CONFIGS)

    after = follow({**files, "lab/config.py": config.replace("int", "float")}, configs=CONFIGS)

    assert before.digest != after.digest
