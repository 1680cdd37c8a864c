import pytest

from emceepee.backends.http1.cookies import LONGEST_COOKIE, MOST_COOKIES, CookieJar
from emceepee.backends.http1.origin import HttpOrigin
from support.fakes.clock import FakeClock

PLAIN, SECURE = HttpOrigin(False, "api.example.org", 80), HttpOrigin(True, "api.example.org", 443)


def jar(*lines: str, origin: HttpOrigin = SECURE, path: str = "/mcp", clock: FakeClock | None = None) -> CookieJar:
    made = CookieJar(origin, clock or FakeClock())
    made.take(list(lines), path)
    return made


def test_the_cookie_jar_sends_back_the_cookies_that_were_set() -> None:
    assert jar("AWSALB=abc=; Path=/", "AWSALBCORS=def; path=/; Secure; HttpOnly").header("/mcp") == (
        "AWSALB=abc=; AWSALBCORS=def"
    )


def test_an_empty_cookie_jar_is_falsy_and_a_filled_one_is_truthy() -> None:
    assert not jar()
    assert jar("a=1")


def test_the_last_value_of_a_cookie_replaces_earlier_ones() -> None:
    assert jar("a=1", "b=2", "a=3").header("/mcp") == "b=2; a=3"


@pytest.mark.parametrize(
    ("given", "asked", "is_sent"),
    [
        ("/", "/mcp", True),
        ("/mcp", "/mcp", True),
        ("/mcp", "/mcp/x", True),
        ("/mcp", "/mcpx", False),
        ("/mcp/", "/mcp/x", True),
        ("/mcp/", "/mcp", False),
        ("/other", "/mcp", False),
        ("nonsense", "/a/c", True),
        ("", "/b", False),
    ],
)
def test_a_cookie_is_sent_only_for_its_path(given: str, asked: str, is_sent: bool) -> None:
    assert bool(jar(f"a=1; Path={given}", path="/a/b").header(asked)) is is_sent


def test_a_cookie_without_a_path_applies_to_the_folder_of_its_request() -> None:
    made = jar("a=1", path="/v1/mcp")
    assert [made.header(path) for path in ("/v1/mcp", "/v1/x/y", "/v2")] == ["a=1", "a=1", ""]


def test_cookies_with_the_same_name_and_different_paths_are_sent_longest_path_first() -> None:
    assert jar("a=1; path=/", "a=2; path=/mcp").header("/mcp") == "a=2; a=1"


@pytest.mark.parametrize(
    "end", ["Max-Age=0", "max-age=-1", "Expires=Thu, 01 Jan 1970 00:00:00 GMT", "expires=Thu, 01-Jan-1970 00:00:00 GMT"]
)
def test_an_expired_cookie_deletes_the_stored_one(end: str) -> None:
    made = jar("a=1; path=/", "b=2; path=/")
    made.take([f"a=; path=/; {end}"], "/mcp")
    assert made.header("/mcp") == "b=2"


async def test_a_cookie_expires_at_its_max_age_or_expiry_date() -> None:
    clock = FakeClock()
    made = jar("a=1; Max-Age=60", "b=2; Expires=Thu, 01 Jan 2026 00:02:00 GMT", "c=3", clock=clock)
    assert made.header("/mcp") == "a=1; b=2; c=3"
    await clock.advance(61)
    assert made.header("/mcp") == "b=2; c=3"
    await clock.advance(60)
    assert made.header("/mcp") == "c=3"


def test_max_age_takes_precedence_over_the_expiry_date_of_a_cookie() -> None:
    assert jar("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT").header("/mcp") == "a=1"


@pytest.mark.parametrize("end", ["Max-Age=soon", "Max-Age=", "Max-Age=٣", "Expires=never", "Expires=", "Max-Age"])
def test_an_unparsable_cookie_expiry_is_ignored(end: str) -> None:
    assert jar(f"a=1; {end}").header("/mcp") == "a=1"


def test_an_enormous_max_age_keeps_the_cookie() -> None:
    assert jar("a=1; Max-Age=" + "9" * 400).header("/mcp") == "a=1"


def test_a_secure_cookie_is_rejected_over_a_plain_connection() -> None:
    assert not jar("a=1; Secure", origin=PLAIN)
    assert jar("a=1; Secure", origin=SECURE)


@pytest.mark.parametrize(
    ("domain", "is_taken"),
    [
        ("api.example.org", True),
        (".Example.org", True),
        ("example.org", True),
        ("", True),
        ("example.com", False),
        ("ample.org", False),
        ("x.api.example.org", False),
    ],
)
def test_a_cookie_for_another_domain_is_rejected(domain: str, is_taken: bool) -> None:
    assert bool(jar(f"a=1; Domain={domain}")) is is_taken


@pytest.mark.parametrize("line", ["", "a", "=1", ";a=1", "a=1\x01", "a=" + "x" * LONGEST_COOKIE, " = "])
def test_an_invalid_cookie_is_rejected(line: str) -> None:
    assert not jar(line)


def test_the_cookie_jar_evicts_its_oldest_cookies_when_it_is_full() -> None:
    made = jar(*(f"c{number}=x" for number in range(MOST_COOKIES + 5)))
    sent = made.header("/mcp").split("; ")
    assert len(sent) == MOST_COOKIES
    assert sent[0] == "c5=x"
