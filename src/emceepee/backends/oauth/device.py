"""The device authorization grant: a person enters a code in any browser (RFC 8628)."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from emceepee.backends.oauth.oauth_messages import HttpAnswer, answered_object, error_in, plain
from emceepee.backends.oauth.tokens import TokenRefused, Unavailable

INTERVAL, SLOWER = 5.0, 5.0  # seconds between polls; seconds added after slow_down
SHORTEST, LONGEST = 1.0, 60.0
LIFE, LONGEST_LIFE = (
    timedelta(minutes=10),
    timedelta(hours=1),
)  # the default lifetime of a code, and the maximum that is accepted from a server
LONGEST_CODE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """The user code shown to a person, and the device code for polling. `complete_uri` includes the user code."""

    device_code: str = field(repr=False)
    user_code: str
    verification_uri: str
    complete_uri: str | None = None
    expires_at: datetime
    interval: float = INTERVAL


def read_device_answer(answer: HttpAnswer, now: datetime) -> DeviceCode | TokenRefused | Unavailable:
    if answer.status >= 500:
        return Unavailable(f"HTTP {answer.status}")
    if (error := error_in(answer)) is not None:
        return TokenRefused(str(error), error)
    document = answered_object(answer)
    if answer.status != 200 or document is None:
        return TokenRefused(f"HTTP {answer.status}")
    code, user_code = document.get("device_code"), document.get("user_code")
    address = document.get("verification_uri", document.get("verification_url"))
    if not isinstance(code, str) or not isinstance(user_code, str) or not isinstance(address, str):
        return TokenRefused("the answer has no device_code, user_code or verification_uri")
    complete = document.get("verification_uri_complete")
    return DeviceCode(
        device_code=code,
        user_code=plain(user_code)[:LONGEST_CODE],
        verification_uri=address,
        complete_uri=complete if isinstance(complete, str) else None,
        expires_at=now + _life(document.get("expires_in")),
        interval=_interval(document.get("interval")),
    )


def _life(value: object) -> timedelta:
    if not isinstance(value, int | float) or not value > 0:
        return LIFE
    return timedelta(seconds=min(value, LONGEST_LIFE.total_seconds()))


def _interval(value: object) -> float:
    if not isinstance(value, int | float) or not value > 0:
        return INTERVAL
    return float(min(max(value, SHORTEST), LONGEST))
