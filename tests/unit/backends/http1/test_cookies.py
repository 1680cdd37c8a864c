import pytest

from emceepee.backends.http1.cookies import LONGEST_COOKIE, MOST_COOKIES, CookieJar
from emceepee.backends.http1.origin import HttpOrigin
from support.fakes.clock import FakeClock

PLAIN, SECURE = HttpOrigin(False, "api.example.org", 80), HttpOrigin(True, "api.example.org", 443)


def jar(*lines: str, origin: HttpOrigin = SECURE, path: str = "/mcp", clock: FakeClock | None = None) -> CookieJar:
    made = CookieJar(origin, clock or FakeClock())
    made.take(list(lines), path)
    return made


def test_what_was_set_is_given_back() -> None:
    assert jar("AWSALB=abc=; Path=/", "AWSALBCORS=def; path=/; Secure; HttpOnly").header("/mcp") == (
        "AWSALB=abc=; AWSALBCORS=def"
    )


def test_an_empty_jar_is_false_and_a_filled_one_true() -> None:
    assert not jar()
    assert jar("a=1")


def test_the_last_value_of_a_name_counts() -> None:
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
def test_a_cookie_is_for_its_path(given: str, asked: str, is_sent: bool) -> None:
    assert bool(jar(f"a=1; Path={given}", path="/a/b").header(asked)) is is_sent


def test_without_a_path_a_cookie_is_for_what_lies_beside_the_request() -> None:
    made = jar("a=1", path="/v1/mcp")
    assert [made.header(path) for path in ("/v1/mcp", "/v1/x/y", "/v2")] == ["a=1", "a=1", ""]


def test_the_same_name_may_have_two_paths_and_the_longer_goes_first() -> None:
    assert jar("a=1; path=/", "a=2; path=/mcp").header("/mcp") == "a=2; a=1"


@pytest.mark.parametrize(
    "end", ["Max-Age=0", "max-age=-1", "Expires=Thu, 01 Jan 1970 00:00:00 GMT", "expires=Thu, 01-Jan-1970 00:00:00 GMT"]
)
def test_a_cookie_is_taken_back_by_one_that_has_ended(end: str) -> None:
    made = jar("a=1; path=/", "b=2; path=/")
    made.take([f"a=; path=/; {end}"], "/mcp")
    assert made.header("/mcp") == "b=2"


async def test_a_cookie_ends_when_it_said() -> None:
    clock = FakeClock()
    made = jar("a=1; Max-Age=60", "b=2; Expires=Thu, 01 Jan 2026 00:02:00 GMT", "c=3", clock=clock)
    assert made.header("/mcp") == "a=1; b=2; c=3"
    await clock.advance(61)
    assert made.header("/mcp") == "b=2; c=3"
    await clock.advance(60)
    assert made.header("/mcp") == "c=3"


def test_of_two_ends_the_age_counts() -> None:
    assert jar("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT").header("/mcp") == "a=1"


@pytest.mark.parametrize("end", ["Max-Age=soon", "Max-Age=", "Max-Age=٣", "Expires=never", "Expires=", "Max-Age"])
def test_an_end_that_cannot_be_understood_is_none(end: str) -> None:
    assert jar(f"a=1; {end}").header("/mcp") == "a=1"


def test_an_age_beyond_measure_is_a_long_one() -> None:
    assert jar("a=1; Max-Age=" + "9" * 400).header("/mcp") == "a=1"


def test_a_secure_cookie_is_not_taken_over_a_plain_connection() -> None:
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
def test_a_cookie_for_another_host_is_not_taken(domain: str, is_taken: bool) -> None:
    assert bool(jar(f"a=1; Domain={domain}")) is is_taken


@pytest.mark.parametrize("line", ["", "a", "=1", ";a=1", "a=1\x01", "a=" + "x" * LONGEST_COOKIE, " = "])
def test_what_is_no_cookie_is_not_taken(line: str) -> None:
    assert not jar(line)


def test_of_too_many_the_oldest_go() -> None:
    made = jar(*(f"c{number}=x" for number in range(MOST_COOKIES + 5)))
    sent = made.header("/mcp").split("; ")
    assert len(sent) == MOST_COOKIES
    assert sent[0] == "c5=x"
