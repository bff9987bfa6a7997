"""SASL of a broker: the credentials of its clients, and the mechanisms of each listener.

The mechanisms are imported with the first listener that has SASL: a broker without one need not
have them in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from barnabas.broker.loop import offload
from barnabas.broker.network.router import Served
from barnabas.client.opening import Login
from barnabas.config.broker import BrokerOptions
from barnabas.config.jaas import jaas_file
from barnabas.config.listeners import Endpoint
from barnabas.metrics.registry import Registry
from barnabas.model.errors import ConfigError
from barnabas.security.audit import AuditLog
from barnabas.security.delegation_tokens import DelegationTokens
from barnabas.security.sasl.scram_credentials import ScramCredentials

if TYPE_CHECKING:
    from barnabas.broker.network.authentication import SaslListener
    from barnabas.broker.network.signing_keys import FetchedKeys
    from barnabas.security.sasl.exchange import NewExchange
    from barnabas.security.sasl.jwks import SigningKeys
    from barnabas.security.sasl.mechanisms import JaasSections

logger = logging.getLogger("barnabas.authentication")


class Sasl:
    """What the listeners with SASL have in common."""

    def __init__(
        self,
        options: Callable[[], BrokerOptions],
        served: Mapping[int, Served[Any]],
        executor: Executor | None,
        clock_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        metrics: Registry,
        random: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        tokens: DelegationTokens,
        salt_key: bytes,
        audit: AuditLog,
    ) -> None:
        """`salt_key` is the same on all brokers: salts of unknown users are made from it."""
        self._options = options
        self._served = served
        self._executor = executor
        self._clock_ms = clock_ms
        self._wall_ms = wall_ms
        self._metrics = metrics
        self._random = random
        self.credentials = ScramCredentials()
        self._sections: JaasSections = {}
        self._keys: dict[str, FetchedKeys] = {}
        self._logins: dict[str, tuple[BrokerOptions, Login]] = {}
        """This broker's own, by listener, and the options that they were made from."""
        self._started = False
        self._mechanisms: dict[str, dict[str, NewExchange]] = {}
        self._tokens = tokens
        self._salt_key = salt_key
        self._audit = audit
        self._random_bytes = random_bytes

    async def start(self, *, alone: bool) -> None:
        """Read the JAAS file and the keys that sign tokens; raise ConfigError if one is unusable.

        Listeners can be opened from then on. A broker that is `alone` logs in to no other.
        """
        options = self._options()
        path = options.java_security_auth_login_config
        if path is not None:
            try:
                text = await offload(self._executor, _read_text, path)
            except (OSError, UnicodeDecodeError) as failure:
                raise ConfigError(
                    f"java.security.auth.login.config={path}: cannot be read: {failure}"
                ) from failure
            self._sections = jaas_file(text, f"java.security.auth.login.config={path}")
        for endpoint in options.endpoints.bind:
            if endpoint.protocol.uses_sasl:
                self._mechanisms[endpoint.name] = self._build(options, endpoint.name)
        if not alone:
            # Fails now rather than at the first use.
            self.login_to(options.endpoints.inter_broker)
            if options.endpoints.control_plane is not None:
                self.login_to(options.endpoints.control_plane)
        for keys in self._keys.values():
            await keys.start()
        self._started = True

    def configure(self, options: BrokerOptions) -> None:
        """Apply changed options to the next logins; those that are invalid change nothing."""
        for name in self._mechanisms:
            try:
                self._mechanisms[name] = self._build(options, name)
            except ConfigError as failure:
                logger.error("listener %s: SASL stays as it was: %s", name, failure)

    def listener(self, endpoint: Endpoint, options: BrokerOptions) -> SaslListener:
        """Return what authenticates the connections of a listener; raise ConfigError."""
        from barnabas.broker.network.authentication import SaslListener

        name = endpoint.name
        self._mechanisms[name] = self._build(options, name)
        return SaslListener(
            name,
            lambda: self._mechanisms[name],
            self._options,
            self._served,
            self._executor,
            self._clock_ms,
            self._wall_ms,
            self._metrics,
            self._audit,
        )

    @property
    def by_password(self) -> dict[str, NewExchange]:
        """Return the mechanisms for names and passwords of all listeners, the strongest first."""
        found: dict[str, NewExchange] = {}
        for name in ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"):
            for offered in self._mechanisms.values():
                if name in offered:
                    found.setdefault(name, offered[name])
        return found

    def user_changed(self, user: str, configs: Mapping[str, str]) -> None:
        """Set a user's SCRAM credentials, which are among the user's configs."""
        for mechanism in self.credentials.set_user(user, configs):
            logger.error(
                "user %r: credential for %s is unreadable, nobody can log in with it",
                user,
                mechanism,
            )

    def login_to(self, listener: str) -> Login | None:
        """Return how this broker logs in to a listener of other brokers; None without SASL.

        It is the login of the listener of the same name that this broker has itself.
        """
        options = self._options()
        for endpoint in options.endpoints.bind:
            if endpoint.name == listener and endpoint.protocol.uses_sasl:
                return self._login(options, listener)
        return None

    def _login(self, options: BrokerOptions, listener: str) -> Login:
        """Return the login of a listener: the same one, with its token, until options change."""
        from barnabas.broker.network.broker_login import broker_login
        from barnabas.client.authentication import Authentication
        from barnabas.security.sasl.mechanisms import login_entry

        mechanism = options.for_listener(listener).sasl_mechanism_inter_broker_protocol
        known = self._logins.get(listener)
        if known is None or known[0] is not options:
            entry = login_entry(options, listener, mechanism, self._sections)
            own = options.for_listener(listener, mechanism)
            converse = broker_login(listener, mechanism, entry, own, self._random, self._wall_ms)
            login = Authentication(mechanism, converse, self._random)
            known = self._logins[listener] = (options, login)
        return known[1]

    async def stop(self) -> None:
        """Fetch no more keys."""
        for keys in self._keys.values():
            await keys.stop()

    def _build(self, options: BrokerOptions, listener: str) -> dict[str, NewExchange]:
        from barnabas.security.sasl.mechanisms import SaslSources, mechanisms_of
        from barnabas.security.sasl.scram import ScramSecrets

        scram = ScramSecrets(
            self.credentials.find, self._tokens, self._salt_key, self._random_bytes
        )
        sources = SaslSources(scram=scram, signing_keys=self._signing_keys)
        return mechanisms_of(options, listener, self._sections, sources)

    def _signing_keys(self, options: BrokerOptions) -> SigningKeys:
        from barnabas.broker.network.signing_keys import FetchedKeys

        url = options.sasl_oauthbearer_jwks_endpoint_url
        assert url is not None
        found = self._keys.get(url)
        if found is None:
            found = self._keys[url] = FetchedKeys(
                url,
                options.sasl_oauthbearer_jwks_endpoint_refresh_ms,
                options.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms,
                options.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms,
            )
            if self._started:
                found.begin()
        return found.keys


def _read_text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
