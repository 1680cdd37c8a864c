"""The state that the next link needs to resume a session of a handshake-era backend without another handshake."""

from dataclasses import dataclass

from emceepee.backends.link import LinkError, ServerFacts
from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Resumption:
    """A resumable session. Its id is a secret: its holder can impersonate us."""

    session_id: str
    facts: ServerFacts

    def __repr__(self) -> str:
        return f"<Resumption {self.facts.protocol_version}>"

    def to_record(self) -> JsonObject:
        facts = self.facts
        return {
            "sessionId": self.session_id,
            "protocolVersion": facts.protocol_version,
            "serverInfo": facts.server_info,
            "capabilities": facts.capabilities,
            "instructions": facts.instructions,
        }

    @classmethod
    def from_record(cls, record: JsonObject) -> "Resumption":
        """Raises: KeyError, TypeError, ValueError."""
        try:
            facts = ServerFacts(
                protocol_version=record["protocolVersion"],
                server_info=record["serverInfo"],
                capabilities=record["capabilities"],
                instructions=record["instructions"],
            )
        except LinkError as error:
            raise ValueError(str(error)) from None
        return cls(record["sessionId"], facts)
