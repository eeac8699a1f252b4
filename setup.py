"""What pyproject.toml cannot say: the notebooks that the reproduction executes travel inside its package."""

from setuptools import find_packages, setup

EXECUTED = "asyncfl_reproduction.notebooks"
RECORDS = ["results/**/searches.parquet", "results/league/*/*.parquet"]

setup(
    packages=[*find_packages(include=["asyncfl_lite*", "asyncfl_reproduction*", "asyncfl_course*"]), EXECUTED],
    package_dir={EXECUTED: "notebooks"},
    include_package_data=False,  # MANIFEST.in says what the source archive holds, this what the wheel does
    package_data={
        "asyncfl_course": ["recall.yaml"],
        "asyncfl_lite": ["py.typed"],
        "asyncfl_lite.runs": ["defaults.yaml"],
        "asyncfl_reproduction": [
            "cells/*.yaml",
            "printed/*.csv",
            "printed/SHA256SUMS",
            *RECORDS,
        ],
        "asyncfl_reproduction.league": ["page.html.jinja"],
        "asyncfl_reproduction.measure": ["fedrevive.yaml"],
        "asyncfl_reproduction.theory": ["statements.yaml"],
        "asyncfl_course.explore": ["course.yaml", "pictures/*.svg"],
        "asyncfl_course.referee": ["sealed/*.json"],
        "asyncfl_course.zoo": ["exhibits.yaml"],
        EXECUTED: ["experiment.ipynb", "report.ipynb"],
    },
)
