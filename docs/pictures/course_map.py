"""Draw docs/pictures/course_map.svg, the README's picture of the lessons."""

from pathlib import Path

from asyncfl_course.explore.course_map import course_map

if __name__ == "__main__":
    course_map().save(Path(__file__).with_name("course_map.svg"))
