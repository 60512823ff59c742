"""Planted secrets: a recipe runs, fails and is shown, and none of them is kept or printed."""

import json
import os
import re
import subprocess
import sys

import pytest

from pipeline.cli.main import main
from pipeline.errors import EncodingError
from pipeline.step import Resources, Secret

PLANTED = {
    "declared": "planted-declared-01",
    "in the environment": "planted-variable-02",
    "in a URL": "planted-password-03",
    "in a query": "planted-signature-04",
    "in argv": "planted-argument-05",
    "in the code": "planted-constant-06",
    "in a source": "planted-location-07",
    "in a step's environment": "planted-step-08",
}
COMMAND = [sys.executable, "-c", "from pipeline.cli.main import main; main()"]
STEPS = """
    from __future__ import annotations

    from dataclasses import dataclass
    from typing import ClassVar

    from pipeline.sources import Source
    from pipeline.step import Resources, Secret, Step


    @dataclass(frozen=True)
    class Mirror(Source):
        resolver: ClassVar[str] = "PACKAGE.resolver:resolve"
        url: str


    @dataclass(frozen=True, kw_only=True)
    class Leaky:
        url: str
        api_key: str


    def leak(url, api_key):
        return Step(
            "leak",
            "PACKAGE.bodies:leak",
            config=Leaky(url=url, api_key=api_key),
            inputs={"source": Mirror("https://ann:planted-location-07@mirror/data.txt")},
            resources=Resources(
                secrets=(Secret(name="LAB_DECLARED"),),
                environment={"STEP_TOKEN": "planted-step-08"},
                retries=0,
            ),
        )
    """
RESOLVER = """
    from pipeline.sources import SourceFile, SourceManifest


    def resolve(source, digests):
        file = SourceFile(name="data.txt", size_bytes=1, checksum="etag:1", location=source.url)
        return SourceManifest(files=(file,), provenance={"url": source.url})
    """
BODIES = """
    import logging
    import os
    import sys
    import urllib.parse

    from pipeline.step import Secret

    MIRROR = "https://ann:planted-constant-06@mirror"


    def leak(config, inputs, output):
        value = Secret(name="LAB_DECLARED").value()
        for file in inputs.source("source").manifest.files:
            print(file.location, config.url, MIRROR, config.api_key)
        print(value[:5], end="")
        print(value[5:], urllib.parse.quote(value), repr(value))
        print(dict(os.environ), sys.argv)
        logging.warning("secret %s, %s", value, os.environ["STEP_TOKEN"])
        print("x" * 1_995 + value)
        output.progress(done=1, total=1, unit="secrets")
        output.event("note", text=value, tried=[os.environ["DB_PASSWORD"]], thing=Exception(value))
        output.map_shards(leak_shard, [value])
        output.write_bytes("a.txt", b"a")
        if "fail" in config.url:
            raise RuntimeError(f"no access with {value} to {config.url}")


    def leak_shard(config, shard, inputs, output):
        print(shard)
        output.write_bytes("b.txt", b"b")
    """
RECIPE = """
    from PACKAGE.steps import leak


    def dag(url: str, api_key: str):
        return {"leak": leak(url, api_key)}
    """


@pytest.fixture
def leaky(make_project, monkeypatch):
    """A project whose body does everything wrong, in an environment full of secrets."""
    for name, what in {"LAB_DECLARED": "declared", "DB_PASSWORD": "in the environment"}.items():
        monkeypatch.setenv(name, PLANTED[what])
    files = {"steps.py": STEPS, "resolver.py": RESOLVER, "bodies.py": BODIES, "recipe.py": RECIPE}
    return make_project(files)


def recipe_words(project, host="host"):
    url = f"https://ann:{PLANTED['in a URL']}@{host}/a?X-Amz-Signature={PLANTED['in a query']}"
    key = PLANTED["in argv"]
    return [f"{project.name}.recipe", "--set", f"url={url}", "--set", f"api_key={key}"]


def found_in(data):
    """Which secrets stand in some bytes."""
    return [what for what, secret in PLANTED.items() if secret.encode() in data]


def process_output(*words, cwd):
    """All that the command prints as a process of its own."""
    done = subprocess.run([*COMMAND, *words], cwd=cwd, capture_output=True, check=False)
    return (done.stdout + done.stderr).decode()


def stored(project):
    """Every object of the store, key and bytes."""
    root = project.store.adapter.root
    return b"\n".join(
        bytes(path.relative_to(root)) + path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    )


@pytest.fixture
def seaglass(leaky, monkeypatch, capfd):
    """`seaglass(...)`: all that the command prints, on both streams."""
    monkeypatch.setenv("SEAGLASS_STORE", leaky.store.url)
    monkeypatch.setattr("pipeline.cli.main.signal.signal", lambda *_: None)

    def call(*words):
        leaky.forget()
        monkeypatch.setattr(sys, "argv", ["seaglass", *words])
        with pytest.raises(SystemExit):
            main()
        return "".join(capfd.readouterr())

    return call


def test_no_secret_of_a_run_is_kept_or_printed(seaglass, leaky):
    printed = seaglass("run", *recipe_words(leaky), "--on", "inline")

    assert "1 step ran" in printed
    assert "x" * 100 in printed
    assert found_in(printed.encode()) == []
    assert found_in(stored(leaky)) == []


def test_no_secret_of_a_failed_step_is_kept_or_printed(seaglass, leaky):
    printed = seaglass("run", *recipe_words(leaky, "fail"), "--on", "inline")

    assert "RuntimeError: no access with *** to https://***@fail/a" in printed
    assert found_in(printed.encode()) == []
    assert found_in(stored(leaky)) == []


VERBS = [
    "plan RECIPE",
    "why RECIPE leak",
    "ls",
    "ls --runs",
    "show leak",
    "show RUN",
    "lineage leak --up",
    "lineage leak --up --format openlineage",
    "diff leak@1 leak@1",
    "verify leak",
]


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_verb_shows_a_secret(seaglass, leaky, form):
    ran = seaglass("run", *recipe_words(leaky), "--on", "inline")
    run_id = ran.split("run ", 1)[1].split(":", 1)[0]
    ending = ["--json"] if form == "json" else []

    for verb in VERBS:
        words = verb.replace("RUN", run_id).replace("RECIPE", " ".join(recipe_words(leaky))).split()
        printed = seaglass(*words, *ending)

        assert not re.search(r"^(error|Error|Usage): ", printed, re.MULTILINE), printed
        assert found_in(printed.encode()) == [], verb


def test_no_verb_shows_the_credentials_of_a_store(seaglass, leaky):
    url = f"ftp://ann:{PLANTED['in a URL']}@127.0.0.1:1/lab"

    printed = seaglass("plan", *recipe_words(leaky), "--store", url)

    assert "ftp://***@127.0.0.1:1/lab" in printed
    assert found_in(printed.encode()) == []


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_a_recipe_that_cannot_be_built_shows_no_secret(leaky, debug):
    leaky.edit("recipe.py", "return {", "raise ValueError(url)\n    return {")

    printed = process_output("plan", *recipe_words(leaky), *debug, cwd=leaky.root)

    assert "ValueError: https://***@host/a" in printed
    assert found_in(printed.encode()) == []


def test_a_secret_that_is_not_set_stops_the_step_before_its_body(seaglass, leaky, monkeypatch):
    monkeypatch.delenv("LAB_DECLARED")

    printed = seaglass("run", *recipe_words(leaky), "--on", "inline")

    assert "secret LAB_DECLARED: no such environment variable" in printed
    assert "mirror" not in printed


def test_a_secret_in_a_config_is_refused_with_the_place_for_it(make_project):
    project = make_project()
    project.edit("steps.py", "import Resources, Step", "import Resources, Secret, Step")
    project.edit("steps.py", "smallest: int = 1", 'smallest: object = Secret(name="HF_TOKEN")')
    project.edit("steps.py", "CountConfig(smallest=smallest)", "CountConfig()")

    with pytest.raises(EncodingError, match="give them as resources=") as refusal:
        project.plan()

    assert "config.smallest" in str(refusal.value)


def test_the_secrets_of_a_step_never_move_its_digest(project):
    project.run()
    with_secret = 'resources=Resources(secrets=(Secret(name="HF_TOKEN"),))'
    project.edit("steps.py", "import Resources, Step", "import Resources, Secret, Step")
    project.edit("steps.py", "resources=resources", with_secret)

    assert project.causes() == {}


@pytest.mark.ray
def test_a_secret_reaches_the_workers_of_ray_and_nothing_else(leaky, tmp_path):
    words = [*recipe_words(leaky), "--store", leaky.store.url, "--on", "local", "--json"]
    environment = {**os.environ, "SEAGLASS_CACHE": str(tmp_path / "cache")}

    done = subprocess.run(
        [*COMMAND, "run", *words],
        cwd=leaky.root,
        env=environment,
        capture_output=True,
        check=False,
    )

    assert json.loads(done.stdout)["state"] == "succeeded"
    assert found_in(done.stdout + done.stderr) == []
    assert found_in(stored(leaky)) == []
    assert b"*** *** '***'" in stored(leaky)


def test_resources_name_secrets_and_hold_no_value():
    assert "planted" not in repr(Resources(secrets=(Secret(name="LAB_DECLARED"),)))
