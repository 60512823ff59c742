"""A closure survives JSON, proves itself, and says why it differs from another."""

import json

import pytest

from pipeline.code import explain_change
from pipeline.code.record import CodeClosure
from pipeline.errors import FormatError

FILES = {
    "lab/body.py": (
        "@decorate\ndef run():  # why\n    return sys.modules\n\n\nimport sys\ndecorate = 1\n"
    )
}


def closure_of(**changes):
    fields = {
        "body": "a:run",
        "symbols": {"a:run": "11", "a:helper": "22"},
        "texts": {},
        "distributions": {"numba": "0.67.0", "numpy": "2.2.0"},
        "modules": {"a": "33"},
    }
    return CodeClosure(**{**fields, **changes})


def test_a_closure_survives_json(follow):
    found = follow(FILES)

    assert CodeClosure.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert found.notices


def test_the_texts_are_the_source_as_written(follow):
    found = follow(FILES)

    assert found.texts["lab.body:run"] == "@decorate\ndef run():  # why\n    return sys.modules\n"


def test_a_record_that_was_changed_is_refused():
    value = closure_of().to_json()

    with pytest.raises(FormatError, match="it was changed after it was written"):
        CodeClosure.from_json({**value, "body": "a:other"})


def test_a_record_that_lacks_a_field_is_refused():
    value = closure_of().to_json()
    del value["symbols"]

    with pytest.raises(FormatError, match="lacks 'symbols'"):
        CodeClosure.from_json(value)


def test_every_kind_of_change_is_named():
    new = closure_of(
        symbols={"a:run": "12", "a:added": "44"},
        distributions={"numba": "0.68.1", "zstandard": "1"},
    )

    assert explain_change(closure_of(), new.to_json()) == [
        "a:run changed",
        "a:added added",
        "a:helper removed",
        "numba 0.67.0 -> 0.68.1",
        "numpy 2.2.0 removed",
        "zstandard 1 added",
    ]


def test_a_new_form_of_the_digest_is_named():
    old = {**closure_of().to_json(), "version": "seaglass-code/0"}

    assert explain_change(old, closure_of()) == [
        "form of the code digest seaglass-code/0 -> seaglass-code/1"
    ]


def test_what_is_kept_for_reading_only_does_not_enter_the_digest():
    changed = closure_of(texts={"a:run": "x"}, modules={}, notices=("x",))

    assert changed.digest == closure_of().digest


@pytest.mark.parametrize(
    "change",
    [
        {"body": "a:other"},
        {"symbols": {"a:run": "11"}},
        {"distributions": {}},
        {"version": "seaglass-code/0"},
    ],
)
def test_what_counts_enters_the_digest(change):
    assert closure_of(**change).digest != closure_of().digest
