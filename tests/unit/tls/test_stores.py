"""Key stores and trust stores of every kind, with right and wrong passwords."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat
from tests.certificates import Authority, Issued, write_secret

from barnabas.config.option import Password
from barnabas.model.errors import ConfigError
from barnabas.tls.pem import armour
from barnabas.tls.stores import KeyStore, TrustStore, ordered

ROOT = Authority("root")
MIDDLE = Authority("middle", above=ROOT)
ISSUED = MIDDLE.issue("leaf")
SECRET, OTHER = Password("the secret"), Password("another")


def pem(path: Path) -> KeyStore:
    return KeyStore(str(ISSUED.write_pem(path)))


def encrypted_pem(path: Path) -> KeyStore:
    return KeyStore(str(ISSUED.write_pem(path, SECRET.value)), key_password=SECRET)


def traditional_pem(path: Path) -> KeyStore:
    key = ISSUED.key_bytes(form=PrivateFormat.TraditionalOpenSSL)
    return KeyStore(str(write_secret(path, key + ISSUED.chain_pem.encode())))


def two_files(path: Path) -> KeyStore:
    ISSUED.write_pair(path, path.with_suffix(".key"))
    return KeyStore(str(path), key_location=str(path.with_suffix(".key")))


def inline(path: Path) -> KeyStore:
    chain = Password(ISSUED.chain_pem.replace("\n", " "))
    return KeyStore(certificate_chain=chain, key=Password(ISSUED.key_pem.replace("\n", " ")))


def pkcs12(path: Path) -> KeyStore:
    return KeyStore(str(ISSUED.write_pkcs12(path, SECRET.value)), SECRET)


def jks(path: Path) -> KeyStore:
    return KeyStore(str(ISSUED.write_jks(path, SECRET.value)), SECRET)


def jks_with_two_passwords(path: Path) -> KeyStore:
    return KeyStore(str(ISSUED.write_jks(path, SECRET.value, OTHER.value)), SECRET, OTHER)


KINDS = [
    pem,
    encrypted_pem,
    traditional_pem,
    two_files,
    inline,
    pkcs12,
    jks,
    jks_with_two_passwords,
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_and_its_chain_are_read(kind: Callable[[Path], KeyStore], tmp_path: Path) -> None:
    store = kind(tmp_path / "store")
    assert store.is_set
    pair = store.read()
    assert pair.chain == ISSUED.chain
    assert len(pair.chain) == 2
    assert pair.pem().count("PRIVATE KEY-----") == 2
    assert (pair.password is not None) is (kind is encrypted_pem)
    assert "PRIVATE" not in repr(pair)
    assert SECRET.value not in repr((store, pair))


def test_nothing_is_set_by_default() -> None:
    assert not KeyStore().is_set
    assert not TrustStore().is_set
    assert KeyStore().files == TrustStore().files == ()


def written(issued: Issued, path: Path, name: str, *passwords: str) -> str:
    return str(getattr(issued, f"write_{name}")(path / name, *passwords))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda d: KeyStore(str(d / "absent")), "ssl.keystore.location=.*absent: No such file"),
        (lambda d: KeyStore(str(d)), "Is a directory"),
        (lambda d: KeyStore(written(ISSUED, d, "pkcs12", "x")), "set ssl.keystore.password, too"),
        (lambda d: KeyStore(written(ISSUED, d, "jks", "x")), "set ssl.keystore.password, too"),
        (lambda d: KeyStore(written(ISSUED, d, "pkcs12", "x"), OTHER), "Invalid password"),
        (lambda d: KeyStore(written(ISSUED, d, "jks", "x"), OTHER), "the password is wrong"),
        (
            lambda d: KeyStore(written(ISSUED, d, "jks", OTHER.value, "x"), OTHER),
            "the password of the key 'broker' is wrong",
        ),
        (lambda d: KeyStore(written(ISSUED, d, "pem"), SECRET), "use ssl.key.password"),
        (lambda d: KeyStore(written(ISSUED, d, "pem", "x")), "encrypted; set ssl.key.password"),
        (lambda d: KeyStore(str(ROOT.write(d / "ca"))), "0 keys and 1 certificates"),
        (
            lambda d: KeyStore(str(ROOT.write_jks(d / "ca", SECRET.value)), SECRET),
            "no private key",
        ),
        (
            lambda d: KeyStore(str(ROOT.write_pkcs12(d / "ca", SECRET.value)), SECRET),
            "no private key",
        ),
        (lambda d: KeyStore(key=Password(ISSUED.key_pem)), "must be set together"),
        (lambda d: KeyStore(certificate_chain=Password("x")), "must be set together"),
        (lambda d: KeyStore(key=SECRET, certificate_chain=SECRET), "0 keys and 0 certificates"),
        (
            lambda d: KeyStore(
                key=Password(ISSUED.key_pem),
                certificate_chain=Password(ISSUED.chain_pem),
                password=SECRET,
            ),
            "PEM has no such password",
        ),
        (
            lambda d: KeyStore(written(ISSUED, d, "pem"), key=Password(ISSUED.key_pem)),
            "use one or the other",
        ),
    ],
)
def test_what_cannot_be_used_is_named_without_secrets(
    make: Callable[[Path], KeyStore], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said) as failure:
        make(tmp_path).read()
    for secret in (SECRET.value, OTHER.value, "PRIVATE"):
        assert secret not in str(failure.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda d: TrustStore(str(ROOT.write(d / "ca"))),
        lambda d: TrustStore(certificates=Password(ROOT.pem.replace("\n", " "))),
        lambda d: TrustStore(str(ROOT.write_jks(d / "ca", SECRET.value)), SECRET),
        lambda d: TrustStore(str(ROOT.write_jks(d / "ca", SECRET.value))),
        lambda d: TrustStore(str(ROOT.write_pkcs12(d / "ca", SECRET.value)), SECRET),
    ],
)
def test_trusted_certificates_are_read(make: Callable[[Path], TrustStore], tmp_path: Path) -> None:
    store = make(tmp_path)
    assert store.is_set
    assert store.read() == (ROOT.der,)


def test_several_certificates_are_trusted(tmp_path: Path) -> None:
    (tmp_path / "both").write_text(f"{ROOT.pem} and {MIDDLE.pem}")
    assert TrustStore(str(tmp_path / "both")).read() == (ROOT.der, MIDDLE.der)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda d: TrustStore(str(d / "absent")), "ssl.truststore.location=.*: No such file"),
        (lambda d: TrustStore(str(ROOT.write(d / "ca")), SECRET), "PEM has no ssl.truststore.pass"),
        (lambda d: TrustStore(certificates=Password("nothing")), "not PEM"),
        (lambda d: TrustStore(str(ROOT.write_jks(d / "ca", "x")), SECRET), "password is wrong"),
        (lambda d: TrustStore(str(ROOT.write_pkcs12(d / "ca", "x")), SECRET), "Invalid password"),
        (
            lambda d: TrustStore(str(ISSUED.write_jks(d / "k", SECRET.value)), SECRET),
            "no trusted certificate",
        ),
    ],
)
def test_trust_that_cannot_be_used_is_named(
    make: Callable[[Path], TrustStore], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said) as failure:
        make(tmp_path).read()
    assert SECRET.value not in str(failure.value)


def test_a_chain_is_put_in_order() -> None:
    lowest = Authority("lowest", above=MIDDLE)
    leaf = lowest.issue("leaf").chain[0]
    expected = (leaf, lowest.der, MIDDLE.der, ROOT.der)
    assert ordered(leaf, [ROOT.der, lowest.der, MIDDLE.der]) == expected
    assert ordered(leaf, [MIDDLE.der]) == (leaf,)
    assert ordered(ROOT.der, [MIDDLE.der]) == (ROOT.der,)


def test_pkcs12_without_the_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PEM and JKS need none."""
    stores = [kind(tmp_path / kind.__name__) for kind in (pem, jks, pkcs12)]
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    assert [store.read().chain for store in stores[:2]] == [ISSUED.chain] * 2
    with pytest.raises(ConfigError, match=r"barnabas\[security\]"):
        stores[2].read()


def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.write_text(ISSUED.key_pem + armour("CERTIFICATE", b"nothing"))
    assert KeyStore(str(path)).read().chain == (b"nothing",)  # OpenSSL will refuse it
