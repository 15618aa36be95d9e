"""The table of corrections: applied once after import, by version, undone by uninstall."""

import sys

import pytest

LIBRARY = """
def greet(name):
    return "hello " + name
class Base:
    def who(self):
        return "base"
class Child(Base):
    @classmethod
    def make(cls):
        return cls()
    @staticmethod
    def twice(x):
        return 2 * x
"""
CORRECTION = """
calls = []
def apply(module, wrap):
    calls.append(module.__name__)
    wrap(module, "greet", lambda wrapped, instance, args, kwargs: wrapped(*args, **kwargs) + "!")
    wrap(module, "Child.who", lambda wrapped, instance, args, kwargs: "corrected " + wrapped())
    wrap(module, "Child.twice", lambda wrapped, instance, args, kwargs: wrapped(*args) + 1)
def fail(module, wrap):
    apply(module, wrap)
    raise LookupError("changed its mind")
"""


@pytest.fixture
def table(write, monkeypatch):
    """A patcher for a library of the test's own; its row can be altered by keyword."""
    from msadapter_hook.hook.patches import Patch, Patcher

    folder = write(
        {
            "fake_library/__init__.py": LIBRARY,
            "fake_correction.py": CORRECTION,
            "fake_library-1.5.dist-info/METADATA": "Metadata-Version: 2.1\nName: fake_library\nVersion: 1.5\n",
        }
    )
    monkeypatch.syspath_prepend(str(folder))
    made = []

    def make(**row):
        defaults = {"versions": "", "why": "an example", "apply": "fake_correction:apply", "test": "this one"}
        made.append(Patcher([Patch("fake_library", **defaults | row)]))
        made[-1].start()
        return made[-1]

    before = list(sys.meta_path)
    yield make
    for patcher in made:
        patcher.stop()
    assert sys.meta_path == before
    for name in ("fake_library", "fake_correction"):
        sys.modules.pop(name, None)


def state(library):
    child = library.Child.make()
    return library.greet("you"), child.who(), library.Base().who(), library.Child.twice(2), "who" in vars(library.Child)


PLAIN = ("hello you", "base", "base", 4, False)
CORRECTED = ("hello you!", "corrected base", "base", 5, True)


def test_applied_right_after_import_and_undone(table):
    patcher = table()
    import fake_library

    assert state(fake_library) == CORRECTED
    assert type(fake_library.__loader__).__name__ == type(fake_library.__spec__.loader).__name__ == "SourceFileLoader"
    patcher.stop()
    assert state(fake_library) == PLAIN
    assert isinstance(vars(fake_library.Child)["twice"], staticmethod)


def test_applied_at_once_where_the_library_is_there_and_only_once(table):
    import fake_library

    patcher = table()
    assert state(fake_library) == CORRECTED
    patcher.apply(fake_library, "fake_library")
    import fake_correction

    assert fake_correction.calls == ["fake_library"] and state(fake_library) == CORRECTED


@pytest.mark.parametrize(
    "versions, applies", [("", True), ("<1.6", True), (">=1.5,<2", True), (">=2", False), ("==1.4.*", False)]
)
def test_only_the_versions_of_the_row(table, versions, applies):
    table(versions=versions)
    import fake_library

    assert state(fake_library) == (CORRECTED if applies else PLAIN)


def test_a_failing_row_warns_and_leaves_the_library(table):
    patcher = table(apply="fake_correction:fail")
    with pytest.warns(RuntimeWarning, match=r"correction of fake_library failed \(an example\): LookupError"):
        import fake_library
    assert fake_library.greet("you")
    patcher.stop()
    assert state(fake_library) == PLAIN


def test_a_wrapper_of_somebody_else_on_top_is_left_alone(table):
    import fake_library
    import wrapt

    patcher = table()
    wrapt.wrap_function_wrapper(fake_library, "greet", lambda wrapped, instance, args, kwargs: wrapped(*args) + "?")
    patcher.stop()
    assert fake_library.greet("you") == "hello you!?"
    assert fake_library.Child().who() == "base"


def test_import_errors_of_the_library_stay_its_own(table, write):
    write({"fake_library/__init__.py": "import nothing_like_it\n"})
    table()
    with pytest.raises(ModuleNotFoundError, match="nothing_like_it"):
        import fake_library  # noqa: F401


def test_rows_of_the_real_table_are_complete():
    from msadapter_hook.hook.patches import PATCHES

    for row in PATCHES:
        assert row.why and row.test and row.apply.count(":") == 1
