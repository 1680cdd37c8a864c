"""Key names in Redis. In a cluster, the hash tag (the part in braces) determines the node of a key."""

import hashlib
import json
from zlib import crc32

from emceepee.state.session_key import SessionKey

CLUSTER_PARTITIONS = 64


class KeyNames:
    """All key names. Sessions are spread over at most `partitions` nodes."""

    def __init__(self, prefix: str, partitions: int = 1) -> None:
        self._tags = [f"{{{prefix}:{number}}}" for number in range(partitions)]
        self.channel = f"{prefix}:changes"
        # Names for replicas.
        self.replicas = f"{{{prefix}:replicas}}"
        self.registry, self.epochs = f"{self.replicas}:registry", f"{self.replicas}:epochs"
        # Names for shared state.
        shared = f"{{{prefix}:shared}}"
        self.servers_of_all, self.logins = f"{shared}:servers", f"{shared}:logins"
        self.principals, self.revision = f"{shared}:principals", f"{shared}:revision"
        self.positions, self.format = f"{shared}:positions", f"{shared}:format"
        self.key_check, self.secret = f"{shared}:key", f"{shared}:secret"
        self._secrets, self._locks = f"{shared}:secrets", f"{shared}:lock"
        self.secret_revisions = f"{shared}:secret-revisions"

    # Names for sessions.

    @property
    def tags(self) -> list[str]:
        """Return the hash tag of each partition. All key names of a partition start with its tag."""
        return self._tags

    def tag_of(self, principal: str) -> str:
        return self._tags[crc32(principal.encode()) % len(self._tags)] if len(self._tags) > 1 else self._tags[0]

    def slot(self, number: int) -> str:
        return f"{self.replicas}:slot:{number}"

    def servers(self, principal: str) -> str:
        return f"{self.servers_of_all}:{hashlib.sha256(principal.encode()).hexdigest()}"

    def secrets(self, principal: str) -> str:
        return f"{self._secrets}:{hashlib.sha256(principal.encode()).hexdigest()}"

    def lock(self, name: str) -> str:
        return f"{self._locks}:{hashlib.sha256(name.encode()).hexdigest()}"


def session_name(tag: str, session_id: str) -> str:
    return f"{tag}:session:{session_id}"


def chunks_name(tag: str, session_id: str) -> str:
    return f"{tag}:chunks:{session_id}"


def digest(key: SessionKey) -> str:
    """Return the digest that names a key in Redis. Names must not show a value that grants access."""
    return hashlib.sha256(json.dumps([key.principal, str(key.kind), key.value]).encode()).hexdigest()
