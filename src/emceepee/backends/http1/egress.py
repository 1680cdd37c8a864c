"""How connections leave this machine: through which proxies, and which CAs vouch for servers."""

from dataclasses import dataclass
from pathlib import Path

from emceepee.backends.http1.proxies import DIRECT, ProxyRules
from emceepee.backends.http1.tls import TlsContexts


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressSettings:
    """As the operator says. The CAs of the bundle are trusted besides those of the system."""

    proxies: ProxyRules = DIRECT
    ca_bundle: Path | None = None

    def contexts(self) -> TlsContexts:
        return TlsContexts(self.ca_bundle)


NOTHING_SET = EgressSettings()
