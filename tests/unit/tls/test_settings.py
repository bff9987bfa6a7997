"""Settings of TLS: which files they read, and how a changed file is noticed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.model.errors import ConfigError
from barnabas.tls.settings import TlsSettings, check_store_type


def test_a_changed_file_changes_the_fingerprint(tmp_path: Path) -> None:
    file = tmp_path / "crl.pem"
    settings = TlsSettings(crl_location=str(file))
    assert settings.files == (str(file),)
    missing = settings.fingerprint()
    assert missing == ()
    file.write_text("one")
    first = settings.fingerprint()
    assert first == settings.fingerprint()
    assert first != missing
    other = tmp_path / "other"
    other.write_text("two")  # of the same size
    status = file.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(file)
    assert settings.fingerprint() != first


def test_types_of_stores_are_written_in_either_case() -> None:
    for name in ("PEM", "pem", "jks", "PKCS12"):
        check_store_type("ssl.keystore.type", name)
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.type=BKS: must be"):
        check_store_type("ssl.keystore.type", "BKS")
