from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.encoding import digest
from pipeline.errors import ConfigError, SourceError
from steps.data import installed_text, local_files
from steps.data.sources import HubDataset, InstalledText, LocalFiles, RemoteFiles


class ReadEveryTime:
    def __init__(self) -> None:
        self.asked: list[Path] = []

    def sha256(self, path: Path) -> str:
        self.asked.append(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()


def resolve_installed(**fields):
    return installed_text.resolve(InstalledText(**fields), ReadEveryTime())


def resolve_local(*patterns: str, **fields):
    return local_files.resolve(LocalFiles(patterns=patterns, **fields), ReadEveryTime())


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_installed_text_fills_its_budget_from_every_stratum():
    manifest = resolve_installed(max_bytes=3_000_000)

    names = [file.name for file in manifest.files]
    assert 2_800_000 <= manifest.size_bytes <= 3_000_000
    assert any(name.startswith("stdlib/") for name in names)
    assert any(name.startswith("numpy/") for name in names)
    assert sum("LICEN" in name.upper() for name in names) > 20


def test_installed_text_names_are_logical_sorted_and_unique():
    names = [file.name for file in resolve_installed(max_bytes=500_000).files]

    assert names == sorted(set(names))
    assert not any(name.startswith(("/", ".")) or sys.prefix in name for name in names)


def test_installed_text_does_not_depend_on_the_folder_it_is_called_from(tmp_path, monkeypatch):
    here = resolve_installed(max_bytes=500_000)
    monkeypatch.chdir(tmp_path)

    elsewhere = resolve_installed(max_bytes=500_000)

    assert here == elsewhere


def test_a_development_package_is_no_part_of_installed_text():
    names = {file.name.partition("/")[0] for file in resolve_installed().files}

    assert not names & {"pytest", "_pytest", "hypothesis", "mypy", "ruff"}


def test_installed_text_takes_only_the_distributions_that_it_is_told():
    names = {
        file.name.partition("/")[0] for file in resolve_installed(distributions=("numpy",)).files
    }

    assert {name.partition("-")[0] for name in names} <= {"stdlib", "numpy"}


def test_a_budget_too_small_for_any_file_is_refused():
    with pytest.raises(SourceError, match="max_bytes=1;"):
        resolve_installed(max_bytes=1)


def test_installed_text_reads_only_the_files_that_it_chooses():
    digests = ReadEveryTime()

    manifest = installed_text.resolve(InstalledText(max_bytes=300_000), digests)

    assert len(digests.asked) == len(manifest.files)


def test_local_names_start_below_the_fixed_part_of_the_pattern(tmp_path):
    write(tmp_path, a_dot_txt="one", sub__b_dot_txt="two")

    manifest = resolve_local(f"{tmp_path}/**/*.txt")

    assert [file.name for file in manifest.files] == ["a.txt", "sub/b.txt"]
    assert manifest.files[1].checksum == f"sha256:{hashlib.sha256(b'two').hexdigest()}"


def test_a_moved_folder_resolves_to_the_same_identity(tmp_path):
    first = write(tmp_path / "here", a_dot_txt="one")
    second = write(tmp_path / "there", a_dot_txt="one")

    manifests = [resolve_local(f"{folder}/*.txt") for folder in (first, second)]

    described = [(f.name, f.size_bytes, f.checksum) for m in manifests for f in m.files]
    assert described[0] == described[1]
    assert digest(manifests[0].options) == digest(manifests[1].options)


def test_a_pattern_without_a_match_is_one_error_that_shows_what_is_there(tmp_path):
    write(tmp_path, a_dot_jsonl="{}")

    with pytest.raises(SourceError, match=r"no file matches .*\*\.parquet.* holds a\.jsonl"):
        resolve_local(f"{tmp_path}/*.jsonl", f"{tmp_path}/*.parquet")


def test_a_pattern_in_a_folder_that_is_missing_says_up_to_where_the_path_exists(tmp_path):
    with pytest.raises(SourceError, match=f"exists only up to {tmp_path}"):
        resolve_local(f"{tmp_path}/no/such/*.txt")


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_folder_is_named_as_one_with_the_pattern_for_its_files(tmp_path, slash):
    write(tmp_path, d__a_dot_txt="one")

    with pytest.raises(SourceError, match=r"it is a folder: say '.*/d/\*\*/\*'"):
        resolve_local(f"{tmp_path}/d{slash}")


def test_a_pattern_that_matches_only_folders_says_so(tmp_path):
    write(tmp_path, d__e__a_dot_txt="one")

    with pytest.raises(SourceError, match=r"only folders, such as .*/d/e: say '.*/d/\*/\*\*/\*'"):
        resolve_local(f"{tmp_path}/d/*")


@pytest.mark.parametrize("pattern", ["b.txt", "*.txt"])
def test_a_link_to_nowhere_is_refused_also_beside_good_files(tmp_path, pattern):
    write(tmp_path, a_dot_txt="one")
    (tmp_path / "b.txt").symlink_to("gone.txt")

    with pytest.raises(SourceError, match=r"b\.txt, .* link to gone\.txt, .* does not exist"):
        resolve_local(f"{tmp_path}/{pattern}")


def test_a_file_whose_name_holds_wildcards_is_shown_escaped(tmp_path):
    (tmp_path / "a[1].txt").write_text("one")

    with pytest.raises(SourceError, match=r"name holds wildcards: write it '.*a\[\[\]1\]\.txt'"):
        resolve_local(f"{tmp_path}/a[1].txt")


def test_two_files_of_one_logical_name_are_refused(tmp_path):
    write(tmp_path, x__a_dot_txt="one", y__a_dot_txt="two")

    with pytest.raises(SourceError, match=r"would both be named 'a\.txt'"):
        resolve_local(f"{tmp_path}/x/*.txt", f"{tmp_path}/y/*.txt")


def test_a_file_of_unknown_format_is_refused_at_plan_time(tmp_path):
    write(tmp_path, a_dot_xyz="?")

    with pytest.raises(SourceError, match=r"format of 'a\.xyz'.*Say format="):
        resolve_local(f"{tmp_path}/*")


def test_a_stated_format_takes_any_suffix(tmp_path):
    write(tmp_path, a_dot_xyz="?")

    manifest = resolve_local(f"{tmp_path}/*", format="text")

    assert manifest.options["format"] == "text"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: InstalledText(max_bytes=0), "max_bytes=0"),
        (lambda: InstalledText(distributions="numpy"), "tuple of names"),  # type: ignore[arg-type]  # the fault under test
        (lambda: LocalFiles(patterns=()), "patterns="),
        (lambda: LocalFiles(patterns="x", format="csv"), "format='csv'"),
        (lambda: RemoteFiles(urls=("gs://a", "")), "urls="),
    ],
)
def test_a_source_checks_its_own_fields(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


def test_a_branch_is_no_revision():
    with pytest.raises(SourceError, match=r"revision='main'.*40 hex digits"):
        HubDataset(dataset="acme/tiny", revision="main")


def test_sources_and_steps_are_declared_without_heavy_imports():
    heavy = "{'torch', 'ray', 'datasets', 'pyarrow', 'numpy', 'numba', 'fsspec'}"
    modules = "sources, download, deduplicate, split, installed_text, local_files"
    code = f"import sys\nfrom steps.data import {modules}\nprint({heavy} & set(sys.modules))"

    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[3],
        env=os.environ,
    ).stdout

    assert shown == "set()\n"
