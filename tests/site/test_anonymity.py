"""What names a person or a machine never leaves the store; ordinary words stay as they are."""

from __future__ import annotations

import json

import pytest

from pipeline.site.anonymity import Anonymizer
from tests.site.study import PLANTED

HOMES, ROOTS = "/" + "home", "/" + "root"
KNOWING = Anonymizer().knowing(hosts=["gpu01.lab.example"], users=["ada"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at gpu01.lab.example:22, gpu01 and GPU01", "at (host):22, (host) and (host)"),
        ("by ada, ada's", "by (user), (user)'s"),
        (f"{HOMES}/ada/x /data{HOMES}/bob/y {ROOTS}/z", "~/x ~/y ~/z"),
        (r"C:\Users\bob\x", r"~\x"),
        ("from 10.1.2.3:80 and 10.1.2.4.", "from (address):80 and (address)."),
        ("from fe80::1 and 2001:db8::8a2e:370:7334", "from (address) and (address)"),
        ("gs://me:pw@bucket/x", "gs://bucket/x"),
        ("password: hunter2 api_token=abcdefgh", "password: *** api_token=***"),
        ('File "/srv/lab/site-packages/ray/worker.py", line 3', 'File "ray/worker.py", line 3'),
    ],
)
def test_what_names_somebody_is_struck(text, shown):
    assert KNOWING.text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "num_tokens=4096 tokens: 65536 eos_token=<|endoftext|>",
        "std::vector at 12:30:45.123 on 2026-12-01T08:53:41+00:00",
        "version 2.13.0, 127.0.0.1:8080, localhost, ::",
        "adapter, gpu012, rooted, /rootfs/x, mandarin",
        "key: value, monkey=banana",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert KNOWING.text(text) == text


def test_a_user_whose_name_is_everybodys_is_no_secret():
    knowing = Anonymizer().knowing(users=["root", ""], hosts=["localhost"])

    assert knowing.text("the root of the tree on localhost") == "the root of the tree on localhost"


def test_keys_and_numbers_that_json_lacks_become_harmless_text():
    value = {"ada": [float("nan"), 1.5, None, True]}

    assert KNOWING.value(value) == {"(user)": ["nan", 1.5, None, True]}


def test_nothing_that_was_planted_is_in_any_document(study):
    published = json.dumps(dict(study.pages.crawl()), ensure_ascii=False)

    assert {what for what, text in PLANTED.items() if text in published} == set()


def test_a_document_says_where_something_was_struck(study):
    log = [line["line"] for line in study.pages.document(f"runs/{study.broken}")["log"]]

    assert "worker (host) ((address), (address)) of (user)" in log


def test_no_field_holds_where_the_project_or_its_sources_lie(study):
    documents = {name: json.dumps(document) for name, document in study.pages.crawl()}

    assert len(documents) > 5
    assert not [name for name, text in documents.items() if str(study.folder) in text]
