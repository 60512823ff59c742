"""The command line: a frame that knows no step. Each verb stands in its own module."""
