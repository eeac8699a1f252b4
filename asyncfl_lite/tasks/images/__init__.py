"""Image tasks: data that ship with packages, files in their official formats, stand-ins."""

from asyncfl_lite.tasks.images import (  # noqa: F401 - they register
    cifar10_jpeg,
    femnist,
    glyphs,
    overlaid,
    packaged,
    torchvision_images,
    writers,
)
