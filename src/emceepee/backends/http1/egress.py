"""The operator's settings for outgoing connections: proxies, and additional CAs."""

from dataclasses import dataclass
from pathlib import Path

from emceepee.backends.http1.proxies import DIRECT, ProxyRules
from emceepee.backends.http1.tls_contexts import TlsContexts


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressSettings:
    """The operator's settings. The CAs of the bundle are trusted in addition to the system's CAs."""

    proxies: ProxyRules = DIRECT
    ca_bundle: Path | None = None

    def contexts(self) -> TlsContexts:
        return TlsContexts(self.ca_bundle)


NOTHING_SET = EgressSettings()
