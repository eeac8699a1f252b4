"""Image tasks: real data from Python packages or from files in their official formats, and stand-ins."""

from asyncfl_lite.tasks.images import (  # noqa: F401 - they register
    cifar10_jpeg,
    femnist,
    glyphs,
    overlaid,
    packaged,
    torchvision_images,
    writers,
)
