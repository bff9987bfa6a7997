#!/bin/sh
# What the compat, interop and bench suites use beside the Python environment: system packages, a
# JavaScript client, an old Python client, Prometheus, Apache Kafka, Spark's connector. Every part is optional: one that cannot be had is
# named with its reason, and the tests that need it skip with the same reason. Quick when all is there.
set -u
cd "$(dirname "$0")/.."
python="${PYTHON:-.venv/bin/python}"
deps=.deps
mkdir -p "$deps"

note() { printf '%-18s %s\n' "$1" "$2"; }

# System packages: kcat (a C client's command), librdkafka's headers (the benchmark's load generator).
# A ZooKeeper server comes with Apache Kafka 3.9 below. chromium is for the tests of the console, with
# a font, since a bare machine has none; pngquant makes the pictures of its pages small.
# iproute2 gives each broker of a test a network of its own. The krb5 packages are a KDC, its clients, and
# the headers with which the Python package gssapi is built below. valgrind counts instructions. Completion
# is asked of zsh and fish.
packages="kcat librdkafka-dev iproute2 krb5-kdc krb5-admin-server krb5-user libkrb5-dev"
packages="$packages valgrind chromium fonts-dejavu-core pngquant zsh fish"
export DEBIAN_FRONTEND=noninteractive  # krb5-user would ask for a realm
sh tools/java.sh
missing=""
for package in $packages; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -z "$missing" ]; then
    note packages "present: $packages"
elif ! command -v apt-get >/dev/null; then
    note packages "skipped:$missing (no apt-get here; install them with the system's package manager)"
elif [ "$(id -u)" != 0 ]; then
    note packages "skipped:$missing (needs root; run: sudo apt-get install$missing)"
elif { apt-get install -y -q --no-install-recommends $missing ||
    { apt-get update -q && apt-get install -y -q --no-install-recommends $missing; }; } \
    >"$deps/apt.log" 2>&1; then
    note packages "installed:$missing"
else
    note packages "failed:$missing (see $deps/apt.log)"
fi

# Prometheus, Debian's package, unpacked here: installed it would start a service, and need root.
if command -v prometheus >/dev/null || [ -x "$deps/prometheus/usr/bin/prometheus" ]; then
    note prometheus present
elif ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    note prometheus "skipped (no apt-get here; put prometheus on the PATH)"
elif mkdir -p "$deps/prometheus" && (cd "$deps/prometheus" &&
    { apt-get download -q prometheus || { apt-get update -q && apt-get download -q prometheus; }; } &&
    dpkg -x prometheus_*.deb . && rm prometheus_*.deb) >"$deps/prometheus.log" 2>&1; then
    note prometheus unpacked
else
    note prometheus "failed (see $deps/prometheus.log)"
fi

# kafkajs, with the one further codec that is pure JavaScript (those for lz4 and zstd are compiled).
if [ -d "$deps/kafkajs/node_modules/kafkajs" ]; then
    note kafkajs present
elif ! command -v npm >/dev/null; then
    note kafkajs "skipped (npm is not installed)"
elif mkdir -p "$deps/kafkajs" && npm install --silent --no-fund --no-audit --ignore-scripts \
    --prefix "$deps/kafkajs" kafkajs@2.2.4 kafkajs-snappy@1.1.0 \
    >"$deps/npm.log" 2>&1; then
    note kafkajs installed
else
    note kafkajs "failed (see $deps/npm.log)"
fi

# axe-core, which finds what keeps people from using a page of the console.
if [ -f "$deps/axe-core/node_modules/axe-core/axe.min.js" ]; then
    note axe-core present
elif ! command -v npm >/dev/null; then
    note axe-core "skipped (npm is not installed)"
elif mkdir -p "$deps/axe-core" && npm install --silent --no-fund --no-audit --ignore-scripts \
    --prefix "$deps/axe-core" axe-core@4.14.0 >"$deps/axe-core.log" 2>&1; then
    note axe-core installed
else
    note axe-core "failed (see $deps/axe-core.log)"
fi

# kafka-python 2.0.2, which many programs still pin; its copy of six does not import on Python 3.12.
old="$deps/kafka-python-2.0.2"
if [ -d "$old/kafka" ]; then
    note kafka-python-2.0.2 present
elif ! "$python" -c 'import sys; sys.exit(sys.version_info >= (3, 12))'; then
    note kafka-python-2.0.2 "skipped (it does not import on Python 3.12 or later)"
elif "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$old" \
    kafka-python==2.0.2 >"$deps/pip.log" 2>&1; then
    note kafka-python-2.0.2 installed
else
    note kafka-python-2.0.2 "failed (see $deps/pip.log)"
fi

# gssapi, the extra `kerberos`: it has no wheels for Linux, so it is not in requirements.lock, where one
# machine without a compiler or Kerberos' headers would fail the whole installation.
if "$python" -c 'import gssapi' 2>/dev/null; then
    note gssapi present
elif ! command -v krb5-config >/dev/null; then
    note gssapi "skipped (the headers of Kerberos 5 are not installed: libkrb5-dev)"
elif "$python" -m pip install --quiet --disable-pip-version-check 'gssapi>=1.9,<2' \
    >"$deps/gssapi.log" 2>&1; then
    note gssapi installed
else
    note gssapi "failed (see $deps/gssapi.log)"
fi

# Apache Kafka's server and tools, by Maven coordinates.
for release in 3.9 4; do
    if answer=$("$python" -m tools.apache_kafka fetch "$release" 2>&1); then
        note "kafka-$release" present
    else
        note "kafka-$release" "skipped ($answer)"
    fi
done

# pytest-asyncio, for an example; installed in the environment it would be loaded by every run of pytest.
if [ -d "$deps/pytest-asyncio/pytest_asyncio" ]; then
    note pytest-asyncio present
elif "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$deps/pytest-asyncio" \
    'pytest-asyncio>=1.3' >"$deps/pytest-asyncio.log" 2>&1; then
    note pytest-asyncio installed
else
    note pytest-asyncio "failed (see $deps/pytest-asyncio.log)"
fi

# Spark's own Kafka connector, to compare ours with.
if answer=$("$python" -m tools.spark_connector 2>&1); then
    note spark-connector present
else
    note spark-connector "skipped ($answer)"
fi
