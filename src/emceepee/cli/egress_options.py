"""Egress settings (proxies and CA bundle) from flags and environment variables."""

from collections.abc import Mapping
from pathlib import Path

from emceepee.backends.http1.egress import EgressSettings
from emceepee.backends.http1.proxies import BadProxy, ProxyRules
from emceepee.backends.http1.tls_contexts import BadTlsFile
from emceepee.config.settings import ConfigError


def egress_settings(ca_bundle: Path | None, environment: Mapping[str, str]) -> EgressSettings:
    """Raises: ConfigError."""
    try:
        settings = EgressSettings(proxies=ProxyRules.of(environment), ca_bundle=ca_bundle)
        if ca_bundle is not None:
            settings.contexts().of(None)
    except BadProxy as error:
        raise ConfigError(str(error)) from None
    except BadTlsFile as error:
        raise ConfigError(f"--ca-bundle: {error}") from None
    return settings
