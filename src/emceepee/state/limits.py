"""Every limit, declared once: its default, its meaning, and the name it has in the configuration file."""

from dataclasses import dataclass, field


def _limit(default: float, meaning: str) -> float:
    return field(default=float(default), metadata={"meaning": meaning})  # a float: fractions are welcome


def _count(default: int, meaning: str) -> int:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Durations are seconds, sizes bytes."""

    connect_seconds: float = _limit(30, "how long a backend may take to start and answer the handshake")
    list_patience_seconds: float = _limit(3, "how long a list over several servers waits for the slow ones")
    request_seconds: float = _limit(60, "how long a backend may take for a list, a completion or a log level")
    call_seconds: float = _limit(120, "how long execute_tool waits when the caller does not say")
    longest_call_seconds: float = _limit(900, "the longest wait a caller may ask for")
    notifications_per_server: int = _count(100, "notifications kept for get_notifications, a server")
    log_lines_per_server: int = _count(500, "log lines kept for get_logs, a server")
    buffered_item_bytes: int = _count(1 << 20, "the largest notification or log line kept whole; the rest is cut")
    list_pages: int = _count(1000, "pages of one backend's list that are followed")
    line_bytes: int = _count(256 << 20, "the longest line accepted from a caller or a backend on stdio")
