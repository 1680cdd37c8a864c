"""The callback address for logins to servers."""

import pytest

from emceepee.app.http_app import NO_PUBLIC_URL, set_callback
from emceepee.config.settings import HttpConfig
from emceepee.sessions.logins.server_logins import FixedCallback

PUBLIC = "https://emceepee.example/"


@pytest.mark.parametrize(
    ("host", "public_url", "address", "expected", "advice"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:8080", "http://127.0.0.1:8080/oauth/callback", ""),
        ("::1", None, "http://[::1]:8080", "http://[::1]:8080/oauth/callback", ""),
        ("0.0.0.0", None, "http://0.0.0.0:8080", "http://127.0.0.1:8080/oauth/callback", NO_PUBLIC_URL),
        ("::", None, "http://[::]:8080", "http://[::1]:8080/oauth/callback", NO_PUBLIC_URL),
        ("10.0.0.7", None, "http://10.0.0.7:8080", "http://127.0.0.1:8080/oauth/callback", NO_PUBLIC_URL),
        ("box.example", None, "http://box.example:8080", "http://127.0.0.1:8080/oauth/callback", NO_PUBLIC_URL),
        ("10.0.0.7", PUBLIC, "http://10.0.0.7:8080", "https://emceepee.example/oauth/callback", ""),
    ],
)
def test_the_login_callback_is_never_exposed_without_tls_beyond_this_machine(
    host: str, public_url: str | None, address: str, expected: str, advice: str
) -> None:
    callback = FixedCallback()
    set_callback(callback, HttpConfig(host=host, public_url=public_url), address)
    assert (callback.url, callback.advice) == (expected, advice)
