"""What pyproject.toml cannot say: the wheel carries `web/` as data inside `pipeline`.

The folder stands at the top of the repository because it is a page and no Python; as a top-level
name it would clash with any other `web`, so that it is installed as `pipeline/web/`.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["pipeline*", "steps*", "model*", "kernels*", "recipes*"]),
        "pipeline.web",
    ],
    package_dir={"pipeline.web": "web"},
)
