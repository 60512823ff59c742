"""What the standard library and its like offer to reach code or files by a computed name.

None of it can be followed statically. `CODE` makes a whole package count, `FILES` makes the data
files of a package count, `TEXTS` reads docstrings, annotations or source, and makes all that a body
uses count as written; each is said in the plan.
"""

from __future__ import annotations

CODE = frozenset(
    """
    builtins.__import__ builtins.eval builtins.exec builtins.globals builtins.type.__subclasses__
    importlib.__import__ importlib.import_module importlib.reload
    importlib.machinery importlib.metadata.entry_points importlib.util.find_spec
    importlib.util.module_from_spec importlib.util.spec_from_file_location
    pkgutil.iter_modules pkgutil.resolve_name pkgutil.walk_packages runpy sys.modules
    cloudpickle.load cloudpickle.loads dill.load dill.loads joblib.load pickle.load pickle.loads
    pickle.Unpickler shelve sys.executable
    """.split()  # noqa: SIM905 - a list would take a line for each
)
PROGRAMS = frozenset({"runpy", "sys.executable"})  # of `CODE`: run modules as `__main__`
FILES = frozenset({"importlib.resources", "pkgutil.get_data"})
TEXTS = frozenset(
    """
    annotationlib inspect.cleandoc inspect.get_annotations inspect.getcomments inspect.getdoc
    inspect.getfullargspec inspect.getsource inspect.getsourcelines inspect.signature
    inspect.Signature linecache pydoc typing.get_type_hints typing_extensions.get_type_hints
    """.split()  # noqa: SIM905 - a list would take a line for each
)
FILE_NAMES = frozenset({"__file__", "__path__", "__spec__", "__loader__"})


def matching(dotted: str, table: frozenset[str]) -> str | None:
    """The entry of the table that a dotted name is, or lies below.

    >>> matching("sys.modules.get", CODE)
    'sys.modules'
    """
    while dotted:
        if dotted in table:
            return dotted
        dotted = dotted.rpartition(".")[0]
    return None
