#!/bin/sh
# Java, for Spark, for ZooKeeper and for Apache Kafka as a peer: any version 17 or later will do.
# Installed where that is possible; otherwise what to do is said, and all else goes on without it.
command -v java >/dev/null && exit 0
package=default-jre-headless
if ! command -v apt-get >/dev/null; then
    echo "java: not installed (no apt-get here; install Java 17 or later with the system's package manager)"
elif [ "$(id -u)" != 0 ]; then
    echo "java: not installed (needs root; run: sudo apt-get install $package)"
elif { apt-get install -y -q --no-install-recommends "$package" ||
    { apt-get update -q && apt-get install -y -q --no-install-recommends "$package"; }; } >/dev/null 2>&1; then
    echo "java: installed"
else
    echo "java: could not be installed (try: apt-get install $package)"
fi
