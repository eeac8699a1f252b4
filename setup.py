"""What pyproject.toml cannot say: folders of the repository that an installed package carries in its own.

``asyncfl_lite/base/home.py`` finds them there, or in the clone.
"""

from setuptools import find_packages, setup

SHIPPED = "asyncfl_lite.reproduction.shipped"
FILES = {
    "experiments": ["*.yaml"],
    "league": ["*/*.csv"],
    "notebooks": ["experiment.ipynb", "report.ipynb"],
    "papers": ["*.csv"],
    "tuning": ["**/*.csv"],
}
IN_CLONE = {"league": "results/league", "tuning": "results/tuning"}

setup(
    packages=[*find_packages(include=["asyncfl_lite*"]), *(f"{SHIPPED}.{folder}" for folder in FILES)],
    package_dir={f"{SHIPPED}.{folder}": IN_CLONE.get(folder, folder) for folder in FILES},
    package_data={
        "asyncfl_lite.lessons.referee": ["sealed/*.json"],
        "asyncfl_lite.runs": ["defaults.yaml"],
        **{f"{SHIPPED}.{folder}": patterns for folder, patterns in FILES.items()},
    },
)
