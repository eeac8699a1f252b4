"""Video tasks: video files with their official splits, and moving digits."""
