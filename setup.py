"""Compile the Cython kernels; without a compiler the package installs and runs on the Python ones.

`BARNABAS_REQUIRE_KERNELS=1` turns a failed compilation into an error (used for releases and by
`make install`, so that a developer never measures the Python kernels by accident).
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = sorted(Path("src/barnabas").rglob("*.pyx"))
REQUIRED = os.environ.get("BARNABAS_REQUIRE_KERNELS") == "1"


class OptionalBuild(build_ext):
    """Build what can be built, and say in one line what could not."""

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as failure:
            if REQUIRED:
                raise
            print(
                f"barnabas: {ext.name} could not be compiled ({failure}); "
                "the slower Python kernels will be used",
                file=sys.stderr,
            )


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        if REQUIRED:
            raise
        print(
            "barnabas: Cython is missing; the slower Python kernels will be used", file=sys.stderr
        )
        return []
    modules = [
        Extension(
            ".".join(path.relative_to("src").with_suffix("").parts),
            [str(path)],
            extra_compile_args=["-O3", "-g0"],  # what debuggers want is six times the rest
        )
        for path in SOURCES
    ]
    return cythonize(
        modules,
        nthreads=0,
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "embedsignature": True,
            "freethreading_compatible": False,
        },
    )


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
