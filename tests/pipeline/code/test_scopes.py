"""A name counts as a reference only where it can mean something outside the statement."""

from textwrap import indent

import pytest

PRELUDE = """
def target():
    return 1
"""
NOT_REFERENCES = {
    "a parameter": "def run(target): return target()",
    "a keyword-only parameter": "def run(*, target): return target()",
    "a star parameter": "def run(*target): return target",
    "a local variable": "def run():\n    target = 1\n    return target",
    "a local bound later": "def run():\n    print(target)\n    target = 1",
    "a loop variable": "def run():\n    for target in []:\n        print(target)",
    "a with variable": "def run():\n    with open('x') as target:\n        return target",
    "an exception's name": (
        "def run():\n    try:\n        pass\n    except OSError as target:\n        print(target)"
    ),
    "a nested function": "def run():\n    def target():\n        pass\n    return target()",
    "a nested class": "def run():\n    class target:\n        pass\n    return target()",
    "a lambda's parameter": "def run(): return lambda target: target",
    "a comprehension's variable": "def run(): return [target for target in []]",
    "a later comprehension variable": "def run(): return [target for x in [] for target in x]",
    "a walrus": "def run():\n    if (target := 1):\n        return target",
    "a walrus in a comprehension": (
        "def run():\n    any(target := x for x in [])\n    return target"
    ),
    "a match capture": (
        "def run(x):\n    match x:\n        case [target, *_]:\n            return target"
    ),
    "a match star": "def run(x):\n    match x:\n        case [*target]:\n            return target",
    "a match mapping rest": (
        "def run(x):\n    match x:\n        case {**target}:\n            return target"
    ),
    "an enclosing function's local": (
        "def run():\n    target = 1\n    def inner():\n        return target\n    return inner"
    ),
    "a nonlocal": (
        "def run():\n    target = 1\n    def inner():\n        nonlocal target\n        target += 1"
    ),
    "an attribute": "def run(x): return x.target",
    "a keyword argument": "def run(x): return x(target=1)",
    "a deleted local": "def run():\n    del target",
    "a bare local annotation": "def run():\n    target: int\n    return target",
    "an unpacked local": "def run():\n    (a, [target]), b = 1, 2\n    return target",
    "an attribute of a class, read in the class": "class run:\n    target = 1\n    other = target",
    "a local import": "def run():\n    import json as target\n    return target",
    "text": "def run(): return 'target'",
}
REFERENCES = {
    "a call": "def run(): return target()",
    "a default": "def run(x=target): return x",
    "a default of a parameter of that name": "def run(target=target): return target",
    "a decorator": "@target\ndef run(): pass",
    "a base class": "class run(target): pass",
    "a metaclass": "class run(metaclass=target): pass",
    "a global statement": "def run():\n    global target\n    target = 1",
    "a method that a class attribute shadows": (
        "class run:\n    target = 1\n    def f(self):\n        return target"
    ),
    "a comprehension in a class": "class run:\n    target = 1\n    x = [target for _ in ()]",
    "a class attribute of the same name": "class run:\n    target = target",
    "the first iterable of a comprehension over itself": (
        "def run(): return [target for target in target]"
    ),
    "a nested function's global": (
        "def run():\n    def inner():\n        return target\n    return inner"
    ),
    "an f-string": "def run(): return f'{target}'",
    "an f-string's format": "def run(x): return f'{x:{target}}'",
    "a match value": "def run(x):\n    match x:\n        case target.y:\n            return 1",
    "a match class": "def run(x):\n    match x:\n        case target():\n            return 1",
    "a lambda": "run = lambda: target",
    "a lambda's default": "run = lambda x=target: x",
    "a walrus's value": "def run():\n    return (x := target)",
    "an async function": "async def run():\n    async with target:\n        await target",
    "a starred argument": "def run(): return print(*target, **target)",
    "a subscript": "def run(x): return x[target:]",
    "a local of an inner function only": (
        "def run():\n    def inner(target):\n        return target\n    return target"
    ),
    "an assignment through it": "def run(): target.x = 1",
    "a deletion through it": "def run(): del target[0]",
    "a field's annotation": "class run:\n    x: target",
    "a default factory": "class run:\n    x: int = target()",
}


@pytest.mark.parametrize("what", NOT_REFERENCES)
def test_a_shadowed_name_is_no_reference(follow, what):
    found = follow({"lab/body.py": PRELUDE + NOT_REFERENCES[what] + "\n"})

    assert set(found.symbols) == {"lab.body:run"}


@pytest.mark.parametrize("what", REFERENCES)
def test_a_name_that_reaches_the_module_is_a_reference(follow, what):
    found = follow({"lab/body.py": PRELUDE + REFERENCES[what] + "\n"})

    assert set(found.symbols) == {"lab.body:run", "lab.body:target"}


@pytest.mark.parametrize("what", REFERENCES)
def test_a_reference_inside_a_branch_is_followed_too(follow, what):
    inner = REFERENCES[what].replace("run", "inner")
    text = f"{PRELUDE}\ndef run(flag):\n    if flag:\n{indent(inner, ' ' * 8)}\n    return inner\n"

    found = follow({"lab/body.py": text})

    assert "lab.body:target" in found.symbols


def test_annotations_of_a_plain_function_are_no_references(follow):
    found = follow({"lab/body.py": PRELUDE + "def run(x: target) -> target:\n    y: target = 1\n"})

    assert set(found.symbols) == {"lab.body:run"}


def test_a_very_deep_expression_is_followed(follow):
    text = PRELUDE + "run = (" + " +\n".join(["target"] * 1500) + ")\n"

    found = follow({"lab/body.py": text})

    assert set(found.symbols) == {"lab.body:run", "lab.body:target"}


def test_a_long_chain_of_functions_is_followed_without_recursion(follow):
    count = 2000
    lines = [f"def f{i}(): return f{i + 1}()" for i in range(count)]
    text = "\n".join([*lines, f"def f{count}(): pass", "def run(): f0()"])

    found = follow({"lab/body.py": text})

    assert len(found.symbols) == count + 2
