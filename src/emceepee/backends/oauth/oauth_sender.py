"""Sends the requests of a login. It logs nothing about them and follows no redirects."""

import asyncio
from dataclasses import dataclass, replace

from emceepee.backends.http1.http_client import HttpClient
from emceepee.backends.http1.http_failures import HttpFailure
from emceepee.backends.http1.origin import Address
from emceepee.backends.http1.pool import ConnectionPool
from emceepee.backends.http1.tls_contexts import TlsSettings
from emceepee.backends.oauth.flow import ExchangeAnswered, ExchangeUnanswered
from emceepee.backends.oauth.login_reach import LoginReach
from emceepee.backends.oauth.oauth_messages import DeferredPart, HttpAnswer, OAuthRequest
from emceepee.backends.oauth.proofs import BadKey, client_assertion, dpop_proof
from emceepee.clock import Clock

EXCHANGE_SECONDS = 15.0  # timeout of one exchange
LARGEST_ANSWER = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSender:
    """Sends requests over a pool. `owner`, `reach`, and `tls` belong to the server that the login is for."""

    pool: ConnectionPool
    clock: Clock
    owner: str = ""
    reach: LoginReach = LoginReach()
    tls: TlsSettings | None = None

    async def send(
        self, request: OAuthRequest, *, dpop_key: str | None = None
    ) -> ExchangeAnswered | ExchangeUnanswered:
        try:
            async with asyncio.timeout(EXCHANGE_SECONDS):
                answer = await self._exchange(request, dpop_key)
        except TimeoutError:
            return ExchangeUnanswered(f"no answer within {EXCHANGE_SECONDS:g} s")
        except HttpFailure as error:
            return ExchangeUnanswered(self.reach.describe_failure(error))
        except BadKey as error:
            return ExchangeUnanswered(str(error))
        except ValueError:  # the text may contain the invalid header, which may be a secret
            return ExchangeUnanswered("the request cannot be sent")
        return ExchangeAnswered(answer=answer, at=self.clock.now())

    async def _exchange(self, request: OAuthRequest, dpop_key: str | None) -> HttpAnswer:
        form, headers, now = request, dict(request.headers), self.clock.now()
        if DeferredPart.ASSERTION in request.missing and request.client is not None:
            assertion = client_assertion(request.client, audience=request.audience, now=now)
            form = request.with_field("client_assertion", assertion)
        if DeferredPart.PROOF in request.missing and dpop_key is not None:
            headers["dpop"] = dpop_proof(dpop_key, method=request.method, url=request.url, now=now, nonce=request.nonce)
        tls = login_tls(self.tls, request.url, server_url=self.reach.server_url, issuer=self.reach.issuer)
        is_public = await self.reach.needs_public_address(request.url, self.pool.connector)
        http = HttpClient(self.pool, request.url, headers, owner=self.owner, is_public=is_public, tls=tls)
        response = await http.request(request.method, form.encoded_body())
        body = await response.read(LARGEST_ANSWER)
        return HttpAnswer(status=response.status, headers=response.headers, body=body)


def login_tls(tls: TlsSettings | None, url: str, *, server_url: str, issuer: str | None) -> TlsSettings | None:
    """Return the TLS settings for a request to `url` during a login to the server at `server_url`.

    A CA that is configured for a server is also trusted for its logins, in addition to the system's CAs: many servers
    in a private network have a public authorization server. A client certificate is a credential, and a server can name
    any authorization server. So the client certificate goes only to the server's own origin and to the configured
    issuer.
    """
    if tls is None or _is_same_origin(url, server_url):
        return tls
    if issuer is not None and _is_same_origin(url, issuer):
        return replace(tls, server_name=None, insecure=False, is_added=True)
    return None if tls.ca is None else TlsSettings(ca=tls.ca, is_added=True)


def _is_same_origin(one: str, other: str) -> bool:
    try:
        return Address.of(one).origin == Address.of(other).origin
    except ValueError:
        return False
