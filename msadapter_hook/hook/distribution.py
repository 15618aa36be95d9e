"""The distribution that goes with a served root, so that `importlib.metadata` answers without anything patched."""

import re
from importlib import metadata


class ServedDistribution(metadata.Distribution):
    """Metadata of a served root. It has no files of its own: they belong to msadapter_hook."""

    def __init__(self, root):
        self._texts = {
            "METADATA": "\n".join(
                [
                    "Metadata-Version: 2.1",
                    f"Name: {root.distribution}",
                    f"Version: {root.version}",
                    f"Summary: {root.description}",
                    "Requires-Dist: msadapter-hook",
                    "",
                ]
            ),
            "top_level.txt": root.name.partition(".")[0] + "\n",
            "INSTALLER": "msadapter_hook\n",
        }
        self._folder = root.folder

    def read_text(self, filename):
        """The text of a metadata file, or None."""
        return self._texts.get(filename)

    def locate_file(self, path):
        """Where a file of the distribution would lie."""
        return self._folder.parent / path


def normalized(name):
    """The name of a distribution as comparisons want it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions(roots, context):
    """Those of the roots' distributions that the context (importlib.metadata's) asks for.

    A context with folders of its own is a question about these folders: it is answered for the one we live in only.
    """
    folders = vars(context).get("path")
    for root in roots:
        if root.distribution is None:
            continue
        if context.name is not None and normalized(context.name) != normalized(root.distribution):
            continue
        if folders is not None and str(root.folder.parent.parent) not in map(str, folders):
            continue
        yield ServedDistribution(root)
