import pytest

from emceepee.backends.http1.origin import Address, HttpOrigin
from emceepee.backends.http1.proxies import BadProxy, Proxy, ProxyRules

HTTP_PROXY = "http://plain.example:3128"
HTTPS_PROXY = "http://secure.example:3129"


def proxy_of(url: str, **environment: str) -> str | None:
    proxy = ProxyRules.of(environment).proxy_for(Address.of(url).origin)
    return None if proxy is None else str(proxy)


def goes_through(url: str, no_proxy: str) -> bool:
    return proxy_of(url, HTTP_PROXY=HTTP_PROXY, HTTPS_PROXY=HTTPS_PROXY, NO_PROXY=no_proxy) is not None


def test_the_proxy_is_chosen_by_the_scheme_of_the_server_url() -> None:
    both = {"HTTP_PROXY": HTTP_PROXY, "HTTPS_PROXY": HTTPS_PROXY}
    assert proxy_of("http://mcp.example/x", **both) == "plain.example:3128"
    assert proxy_of("https://mcp.example/x", **both) == "secure.example:3129"
    assert proxy_of("http://mcp.example/x", HTTPS_PROXY=HTTPS_PROXY) is None
    assert proxy_of("https://mcp.example/x", HTTP_PROXY=HTTP_PROXY) is None
    assert proxy_of("https://mcp.example/x") is None


def test_proxy_variables_are_read_in_both_cases_and_lower_case_wins() -> None:
    assert proxy_of("https://mcp.example/x", https_proxy=HTTPS_PROXY) == "secure.example:3129"
    assert proxy_of("https://mcp.example/x", https_proxy=HTTPS_PROXY, HTTPS_PROXY="other:1") == "secure.example:3129"
    assert proxy_of("https://mcp.example/x", https_proxy="", HTTPS_PROXY=HTTPS_PROXY) is None
    assert proxy_of("https://mcp.example/x", https_proxy=HTTPS_PROXY, no_proxy="mcp.example") is None


@pytest.mark.parametrize(
    "url",
    [
        "https://localhost/x",
        "https://LocalHost:8443/x",
        "https://localhost./x",
        "https://tracker.localhost/x",
        "https://127.0.0.1/x",
        "https://127.9.9.9/x",
        "https://127.1/x",
        "https://2130706433/x",
        "https://[::1]/x",
        "https://[::ffff:127.0.0.1]/x",
        "https://0.0.0.0/x",
        "https://[fe80::1%25eth0]/x",
        "http://localhost/x",
        "unix:///run/x.sock:/mcp",
    ],
)
def test_requests_to_this_machine_never_go_through_a_proxy(url: str) -> None:
    assert not goes_through(url, "")


@pytest.mark.parametrize(
    ("no_proxy", "direct", "proxied"),
    [
        ("*", ["https://mcp.example/", "http://10.0.0.1/"], []),
        ("mcp.example", ["https://mcp.example/", "https://a.b.mcp.example/"], ["https://notmcp.example/"]),
        (".mcp.example", ["https://mcp.example/", "https://a.mcp.example/"], ["https://amcp.example/"]),
        ("*.mcp.example", ["https://a.mcp.example/"], ["https://amcp.example/"]),
        ("MCP.Example", ["https://mcp.EXAMPLE/"], []),
        ("mcp.example.", ["https://mcp.example/", "https://mcp.example./"], []),
        ("a.example, b.example c.example", ["https://b.example/", "https://c.example/"], ["https://d.example/"]),
        ("mcp.example:8443", ["https://mcp.example:8443/"], ["https://mcp.example/"]),
        ("mcp.example:443", ["https://mcp.example/"], ["https://mcp.example:8443/"]),
        ("10.0.0.0/8", ["https://10.1.2.3/"], ["https://11.1.2.3/", "https://10.example/"]),
        ("10.1.2.3", ["https://10.1.2.3/", "https://[::ffff:10.1.2.3]/"], ["https://10.1.2.4/", "https://110.1.2.3/"]),
        ("10.1.2.3:80", ["http://10.1.2.3/"], ["https://10.1.2.3/"]),
        ("fd00::/8", ["https://[fd00::1]/"], ["https://[fe00::1]/"]),
        ("[2001:db8::1]:8443", ["https://[2001:db8::1]:8443/"], ["https://[2001:db8::1]/"]),
        ("2001:db8::1", ["https://[2001:db8:0::1]/"], ["https://[2001:db8::2]/"]),
        ("1.2.3.4/33,/,:,.,[],*.", [], ["https://1.2.3.4/", "https://mcp.example/"]),
        ("", [], ["https://mcp.example/", "http://10.0.0.1/"]),
    ],
)
def test_the_no_proxy_variable_lists_hosts_by_name_address_network_and_port(
    no_proxy: str, direct: list[str], proxied: list[str]
) -> None:
    assert [url for url in direct if goes_through(url, no_proxy)] == []
    assert [url for url in proxied if not goes_through(url, no_proxy)] == []


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("http://proxy.example:3128", HttpOrigin(False, "proxy.example", 3128)),
        ("proxy.example:3128", HttpOrigin(False, "proxy.example", 3128)),
        ("proxy.example", HttpOrigin(False, "proxy.example", 80)),
        ("https://proxy.example/", HttpOrigin(True, "proxy.example", 443)),
        ("http://[::1]:3128", HttpOrigin(False, "::1", 3128)),
        ("http://bücher.example:1", HttpOrigin(False, "xn--bcher-kva.example", 1)),
    ],
)
def test_a_proxy_is_configured_by_its_url(text: str, origin: HttpOrigin) -> None:
    assert Proxy.of(text, "HTTPS_PROXY") == Proxy(origin=origin, variable="HTTPS_PROXY")


def test_a_proxy_password_is_sent_to_the_proxy_and_shown_nowhere_else() -> None:
    proxy = Proxy.of("http://us%40er:p%3Ass@proxy.example:3128", "HTTPS_PROXY")
    assert proxy.credentials == "Basic dXNAZXI6cDpzcw=="
    assert str(proxy) == "proxy.example:3128"
    assert "dXNA" not in repr(proxy)
    assert "dXNA" not in repr(ProxyRules(https=proxy))


@pytest.mark.parametrize(
    "text",
    [
        "socks5://u:s3cret@proxy:1080",
        "http://",
        "http://u:s3cret@:1",
        "http://proxy:99999",
        "http://[::1",
        "a b",
        "http://u:1#s3cret@proxy:3128",
        "http://u:1/s3cret@proxy:3128",
    ],
)
def test_an_invalid_proxy_url_is_rejected_without_showing_its_password(text: str) -> None:
    with pytest.raises(BadProxy, match=r"^HTTPS_PROXY: expected http://\[USER:PASSWORD@\]HOST") as refused:
        ProxyRules.of({"https_proxy": text})
    assert "s3cret" not in str(refused.value)
    assert ("socks5:// are not supported" in str(refused.value)) == text.startswith("socks5")
