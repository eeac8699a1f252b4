"""Explorers: figures that show the effect of settings, with or without controls in a notebook.

Each explorer is two functions. The first takes plain values and returns a matplotlib figure, which prints, saves and
shows everywhere; the second puts ipywidgets around it, which need a running kernel.
"""

# ruff: noqa: F401 - others import these names from here

from asyncfl_lite.base.errors import needs

with needs("notebooks", "explorers"):
    from asyncfl_course.explore.controls import Explorer
from asyncfl_course.explore.diagrams import Diagram, course_map, method_diagram
from asyncfl_course.explore.distillation import distillation_figure, distillation_terms, explore_distillation
from asyncfl_course.explore.gallery import Snapshot, explore_gallery, gallery_figure, watch_generator
from asyncfl_course.explore.partitions import explore_partitions, partition_figure
from asyncfl_course.explore.schedules import explore_schedules, schedule_figure, staleness_weight
from asyncfl_course.explore.server_step import explore_server_step, server_step_figure, step_summary, swing
from asyncfl_course.explore.staleness import (
    READY_LAWS,
    explore_staleness,
    jobs_that_age,
    predicted_staleness,
    report_rates,
    run_clock,
    staleness_figure,
)
from asyncfl_course.explore.time_machine import Moment, explore_run, moment, moment_figure
