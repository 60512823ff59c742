"""What is printed where there is little room, and how the verbs are listed."""

import io

from rich.console import Console

from pipeline.cli.text import fits, print_summary, print_wrapped, table

ID = "5b8a6366a8f742562568ac43817fea17"
NAME = "gopher_duplicate_paragraph_characters"


def screen():
    """A console of 80 columns, and what it has printed."""
    out = io.StringIO()
    return Console(file=out, width=80), out


def test_a_summary_breaks_no_name_and_no_id():
    console, out = screen()
    rows = [[NAME, ">= 20, <= 100000", 1, "< 0.1 MB", 1, ID]]
    columns = ["rule", "keeps", "removed", "text", "fail it", "for example"]

    print_summary(console, {"tables": [{"columns": columns, "rows": rows}]})

    assert ID in out.getvalue()
    assert NAME in out.getvalue()


def test_a_summary_folds_between_words_while_they_fit():
    console, out = screen()
    rows = [[NAME, "word " * 30]]

    print_summary(console, {"tables": [{"columns": ["rule", "text"], "rows": rows}]})

    assert NAME in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_a_cause_is_folded_between_words_only():
    console, out = screen()
    name = "code:_" + "long" * 30

    print_wrapped(console, f"{'some words ' * 10}{name} changed", indent="    ")

    assert name in out.getvalue().split()


def test_the_help_says_what_each_verb_does_in_whole_sentences(seaglass):
    lines = seaglass("--help").out.partition("Commands:")[2].splitlines()

    assert all(line.endswith(".") and not line.endswith("...") for line in lines if line.strip())
    assert max(map(len, lines)) <= 80


def test_show_fits_digests_however_long_a_setting_is_named(seaglass, recipe):
    seaglass("run", *recipe, "--on", "inline")

    lines = seaglass("show", "count").out.splitlines()

    assert max(len(line) for line in lines if line.startswith(("content", "action"))) <= 80


def test_ls_names_each_store_once(seaglass, recipe, project, tmp_path):
    seaglass("run", *recipe, "--on", "inline")

    own = str(tmp_path / "own")
    lines = seaglass("ls", "--store", own, "--from", project.store.url).out.splitlines()

    assert sum(project.store.url in line for line in lines) == 1


def test_a_table_that_would_be_broken_does_not_fit():
    console, _ = screen()
    rows = table("step", "why")
    rows.add_row("a", "x" * 60)

    fitted = fits(console, rows)
    rows.add_row("b", "x" * 90)

    assert fitted
    assert not fits(console, rows)


def test_a_lineage_tells_checksums_only_of_files_that_are_asked_for(seaglass, recipe):
    seaglass("run", *recipe, "--on", "inline")

    assert "sha256:" not in seaglass("lineage", "total").out
