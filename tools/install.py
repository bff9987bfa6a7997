"""Install this checkout into the running environment, editable, with its kernels compiled.

Without a C compiler the package is installed on the Python kernels, and this says so: everything
works, more slowly.
"""

import os
import shutil
import subprocess
import sys


def main() -> int:
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    environment = dict(os.environ, BARNABAS_REQUIRE_KERNELS="1" if compiler else "0")
    if compiler is None:
        print(
            "barnabas: no C compiler found (cc, gcc, clang); the slower Python kernels will be used"
        )
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-build-isolation", "--editable", "."]
    return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
