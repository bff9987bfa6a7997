"""What to do after a failure to reach a cluster: which option to set, in which file."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.client.errors import AuthenticationFailedError, ConnectionLostError, NetworkError
from barnabas.model.errors import BarnabasError
from barnabas.model.request_errors import UnsupportedSaslMechanismError

NO_BROKER = "is a broker running there? start one with: barnabas start"
NO_LOGIN = "it may require SASL: see security.protocol"

# X509_V_ERR_… of OpenSSL, which the ssl module does not name.
_EXPIRED, _OTHER_HOST, _OTHER_ADDRESS = 10, 62, 64


@contextmanager
def with_next_step(file: str | None, option: str = "--command-config") -> Iterator[None]:
    """Add the next step to failures to authenticate; `file` has the options of the clients."""
    try:
        yield
    except BarnabasError as failure:
        step = next_step(failure, f"in {file}" if file else f"in a file, and name it in {option}")
        if step is not None:
            failure.add_note(step)
        raise


def next_step(failure: BarnabasError, where: str) -> str | None:
    """Return what to do next; None if the failure is not about security."""
    if isinstance(failure, UnsupportedSaslMechanismError):
        return f"set sasl.mechanism {where}"
    if isinstance(failure, AuthenticationFailedError) and not is_about_protocol(failure):
        return _step_of(failure.__cause__, where)
    return f"set it {where}" if is_about_protocol(failure) else None


def is_about_protocol(failure: BarnabasError) -> bool:
    """Return whether the other side may speak another security.protocol."""
    return any("see security.protocol" in text for text in (str(failure), *_notes(failure)))


def explain_silence(failure: NetworkError) -> None:
    """Add a likely reason why a cluster does not respond to the first request."""
    if is_about_protocol(failure):
        return
    reason: BaseException = failure
    while isinstance(reason.__cause__, NetworkError):
        reason = reason.__cause__
    # A broker that requires SASL closes connections that do without.
    failure.add_note(NO_LOGIN if isinstance(reason, ConnectionLostError) else NO_BROKER)


def _notes(failure: BaseException) -> list[str]:
    return getattr(failure, "__notes__", [])


def _step_of(cause: BaseException | None, where: str) -> str:
    if not isinstance(cause, ssl.SSLError):
        return f"check the user and the password (sasl.jaas.config) {where}"
    if not isinstance(cause, ssl.SSLCertVerificationError):
        return f"check security.protocol and ssl.keystore.location {where}"
    if cause.verify_code in (_OTHER_HOST, _OTHER_ADDRESS):
        return "connect by a name in the certificate, or have one issued for this name"
    if cause.verify_code == _EXPIRED:
        return "the broker needs a new certificate"
    return f"set ssl.truststore.location {where} to the CA that has issued it"
