"""Small data sets that stand in for those of the papers; importing this package registers them as tasks.

The library finds them through an entry point (:mod:`asyncfl_lite.base.registry`). They are made up, or made from images
and texts that Python packages ship. Two of them need files.
"""

from asyncfl_reproduction.standins import glyphs, images, newsgroups, text  # noqa: F401 - they register
