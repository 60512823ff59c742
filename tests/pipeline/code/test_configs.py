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
