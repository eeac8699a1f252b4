"""Images: data that ships with packages, files in their official formats, stand-ins."""

from asyncfl_lite.tasks.images import cifar10_jpeg, femnist, packaged, torchvision_images  # noqa: F401 - they register
