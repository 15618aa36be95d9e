"""The shape of the package, read from its source: layers, one importer of MindSpore, one reader of the environment."""

import ast
import functools
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "msadapter_hook"
LONGEST = 700

#: what each part may import of the others (beside itself); the way of a value goes downwards only
INERT = {"settings", "errors", "report", "version", "foreign", "launch"}
LAYERS = ["backend", "tape", "prims", "tensor", "ops", "autograd", "torch"]
MAY_IMPORT = {layer: INERT | set(LAYERS[:place]) for place, layer in enumerate(LAYERS)}
MAY_IMPORT |= {
    "interop": INERT | set(LAYERS),
    "hook": INERT,
    "__main__": INERT | {"hook"},
    "pytest_plugin": INERT | {"hook"},
    "__init__": INERT | {"hook"},
    "settings": INERT,
    "errors": INERT,
    "report": INERT,
    "version": set(),
    "foreign": set(),
    "launch": {"settings"},
}
MINDSPORE_IMPORTERS = {"backend", "interop"}


@functools.cache
def sources():
    """Every source file of the package with its syntax tree."""
    return {path: ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in sorted(PACKAGE.rglob("*.py"))}


def part_of(path):
    """The part of the package a file belongs to: a folder or a module at its top."""
    inner = path.relative_to(PACKAGE).parts
    return inner[0].removesuffix(".py")


def imports(path, tree):
    """(line, absolute dotted name) of every import in a file; `from a import b` gives `a.b`."""
    package = ["msadapter_hook", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{prefix}.{alias.name}") for alias in node.names)


def nodes(*kinds):
    """(path, node) of every node of these kinds in the package."""
    return [(path, node) for path, tree in sources().items() for node in ast.walk(tree) if isinstance(node, kinds)]


def absolute_names(node):
    """The module names an import statement writes out; none for a relative one and for other statements."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []


def breaches(judge):
    """Every import that `judge(path, name)` objects to, as `file:line imports name`."""
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path, tree in sources().items()
        for line, name in imports(path, tree)
        if judge(path, name)
    ]


def test_parts_are_known():
    parts = {part_of(path) for path in sources()}
    assert parts <= set(MAY_IMPORT), "a new part of the package needs a row in MAY_IMPORT"


def test_layers_import_downwards_only():
    def objects(path, name):
        if not name.startswith("msadapter_hook."):
            return False
        other = name.split(".")[1]
        mine = part_of(path)
        return other in MAY_IMPORT and other != mine and other not in MAY_IMPORT[mine]

    assert breaches(objects) == []


#: parts whose files are read one after the other: none imports what imports it. The served tree has PyTorch's own circles
STRAIGHT = ["backend", "tape", "prims", "tensor", "ops", "autograd", "interop", "hook"]


@pytest.mark.parametrize("part", STRAIGHT)
def test_files_do_not_import_each_other_in_circles(part):
    files = {name_of(path): (path, tree) for path, tree in sources().items() if part_of(path) == part}
    below = {name: {found for _, imported in imports(*file) if (found := closest(imported, files)) not in (None, name)}
             for name, file in files.items()}
    while free := {name for name, others in below.items() if not others & below.keys()}:
        below = {name: others for name, others in below.items() if name not in free}
    assert below == {}  # what is left imports itself, by way of others


def name_of(path):
    """The dotted name of a file of the package."""
    inner = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(["msadapter_hook", *(inner[:-1] if inner[-1] == "__init__" else inner)])


def closest(imported, files):
    """The file that an imported name stands for or lives in; None where it is none of these."""
    return imported if imported in files else name if (name := imported.rpartition(".")[0]) in files else None


def test_mindspore_is_imported_in_one_place():
    def objects(path, name):
        return name.partition(".")[0] == "mindspore" and part_of(path) not in MINDSPORE_IMPORTERS

    assert breaches(objects) == []


def test_torch_is_never_imported_by_name():
    # the served tree is loaded under any name and imports itself relatively; the layers below do not know it
    assert breaches(lambda path, name: name.partition(".")[0] == "torch" and part_of(path) != "interop") == []


def test_served_tree_imports_itself_relatively():
    def objects(path, name):
        return part_of(path) == "torch" and name.startswith("msadapter_hook.torch")

    written_out = [
        (path, node.lineno)
        for path, node in nodes(ast.Import, ast.ImportFrom)
        if any(objects(path, name) for name in absolute_names(node))
    ]
    leaving = [
        (path, node.lineno)
        for path, node in nodes(ast.ImportFrom)
        if part_of(path) == "torch" and node.level > len(path.relative_to(PACKAGE / "torch").parts)
    ]
    assert (written_out, leaving) == ([], [])


def test_environment_is_read_in_one_place():
    words = {"environ", "environb", "getenv", "putenv"}
    start_up = PACKAGE / "hook" / "bootstrap"  # runs before the package is there
    readers = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes(ast.Attribute, ast.ImportFrom)
        if part_of(path) != "settings" and path.parent != start_up
        if words & ({node.attr} if isinstance(node, ast.Attribute) else {alias.name for alias in node.names})
    ]
    assert readers == []


def test_hook_is_light():
    light = {"msadapter_hook", "pytest", *sys.stdlib_module_names}
    heavy = [
        f"{path.relative_to(ROOT)}:{node.lineno} {name}"
        for path, tree in sources().items()
        if part_of(path) not in {*LAYERS, "interop"}
        for node in tree.body
        for name in absolute_names(node)
        if name.partition(".")[0] not in light
    ]
    assert heavy == []


def test_files_stay_small():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_modules_say_what_lives_in_them():
    silent = [str(path.relative_to(ROOT)) for path, tree in sources().items() if not says_something(path, tree)]
    assert silent == []


def says_something(path, tree):
    """True for a file with a docstring or a comment at its beginning, and for an empty one."""
    text = path.read_text(encoding="utf-8").strip()
    return not text or text.startswith("#") or ast.get_docstring(tree) is not None


def test_every_served_folder_is_a_package():
    folders = {path.parent for path in sources() if part_of(path) == "torch"}
    assert [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("path", ["sitecustomize.py", "msadapter_hook/hook/bootstrap/sitecustomize.py"])
def test_start_up_files_are_a_few_lines(path):
    assert len((ROOT / path).read_text(encoding="utf-8").splitlines()) <= 30
