"""Metrics: the durations of requests and sessions. Attribute values are bounded for any names that others choose."""

from opentelemetry.metrics import Histogram, Meter

from emceepee.telemetry.label_values import LabelValues
from emceepee.telemetry.otel import conventions as names
from emceepee.telemetry.otel.conventions import Attributes

BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)  # from the conventions
# Maximum number of values per attribute that others choose. Unlisted attributes are not exported.
_MOST_VALUES = {
    names.METHOD: 100,
    names.TOOL: 1000,
    names.PROMPT: 200,
    names.ERROR_TYPE: 50,
    names.STATUS_CODE: 50,
    names.PROTOCOL_VERSION: 20,
    names.BACKEND: 100,
    names.SERVER_ADDRESS: 100,
}
_AS_THEY_ARE = (names.OPERATION, names.TRANSPORT, names.APPLICATION_PROTOCOL, names.SERVER_PORT)
# Callers can send any name: the target of a failed request may not exist. Methods and our own tools are known in
# advance.
_OF_SERVERS = (names.TOOL, names.PROMPT)
_SERVERS = (names.BACKEND,)


class Instruments:
    """The metrics of a process."""

    def __init__(self, meter: Meter) -> None:
        self._values = {key: LabelValues(most) for key, most in _MOST_VALUES.items()}
        self._incoming = _seconds(meter, "mcp.server.operation.duration", "How long requests of callers took.")
        self._outgoing = _seconds(meter, "mcp.client.operation.duration", "How long servers took for a request.")
        self._sessions = _seconds(meter, "mcp.server.session.duration", "How long sessions of callers lasted.")
        self._links = _seconds(meter, "mcp.client.session.duration", "How long connections to servers lasted.")

    def record_incoming(self, seconds: float, attributes: Attributes, *, was_server_asked: bool) -> None:
        """`was_server_asked`: whether a server with that name was asked, or at least connected."""
        self._incoming.record(seconds, self._bounded(attributes, () if was_server_asked else _SERVERS))

    def record_outgoing(self, seconds: float, attributes: Attributes) -> None:
        self._outgoing.record(seconds, self._bounded(attributes, _OF_SERVERS))

    def record_session(self, seconds: float) -> None:
        self._sessions.record(seconds)

    def record_link(self, seconds: float, attributes: Attributes) -> None:
        self._links.record(seconds, self._bounded(attributes))

    def _bounded(self, attributes: Attributes, need_proof: tuple[str, ...] = ()) -> Attributes:
        """Return the attributes with bounded values. A failed request adds no new values for keys in `need_proof`."""
        has_failed = names.ERROR_TYPE in attributes
        told: Attributes = {key: attributes[key] for key in _AS_THEY_ARE if key in attributes}
        for key, values in self._values.items():
            if key in attributes:
                may_be_new = not (has_failed and key in need_proof)
                told[key] = values.value_of(str(attributes[key]), may_be_new=may_be_new)
        return told


def _seconds(meter: Meter, name: str, description: str) -> Histogram:
    return meter.create_histogram(
        name, unit="s", description=description, explicit_bucket_boundaries_advisory=list(BOUNDS)
    )
