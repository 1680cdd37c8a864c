"""The first part of a login: find the authorization server, and select or register a client there."""

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from emceepee.backends.oauth.authorization import S256
from emceepee.backends.oauth.flow import (
    ClientRegistration,
    FlowFailed,
    Grantor,
    KeepRegistration,
    LoginTerms,
    ResourceLookup,
    SendRequest,
    ServerLookup,
    Step,
)
from emceepee.backends.oauth.metadata.metadata import (
    Malformed,
    ResourceMetadata,
    ServerMetadata,
    guessed_metadata,
    read_resource_metadata,
    read_server_metadata,
)
from emceepee.backends.oauth.metadata.scopes import join, scopes_to_request, with_offline_access
from emceepee.backends.oauth.metadata.well_known import (
    canonical_resource,
    covers,
    is_openable,
    is_trustworthy,
    origin_of,
    resource_metadata_urls,
    same_issuer,
    server_metadata_urls,
)
from emceepee.backends.oauth.oauth_client import NoClient, OAuthClient, RegistrationRequest, identify, read_registration
from emceepee.backends.oauth.oauth_messages import HttpAnswer, error_in, get, post_json
from emceepee.backends.oauth.oauth_settings import GRANT_TYPES, Grant
from emceepee.backends.oauth.redirect_address import redirect_address
from emceepee.backends.oauth.token_request import fail, start_token_request, unreachable


def begin(terms: LoginTerms) -> Step:
    urls = resource_metadata_urls(terms.server_url, terms.demand.resource_metadata)
    first, *left = [url for url in urls if is_trustworthy(url, terms.server_url)] or [""]
    if not first:  # a server on a Unix socket has no URL at which it could publish metadata
        return _choose_server(terms, None, (terms.settings.issuer or origin_of(terms.server_url),))
    return ResourceLookup(terms=terms, asked=first, left=tuple(left)), (SendRequest(get(first)),)


def handle_resource_metadata(state: ResourceLookup, answer: HttpAnswer) -> Step:
    terms = state.terms
    if answer.status >= 500:  # a server error does not show whether the document exists
        return unreachable(state.asked, f"HTTP {answer.status}")
    if answer.status == 200:
        try:
            found = read_resource_metadata(answer.body)
        except Malformed:
            pass
        else:
            return _use_resource(terms, found)
    if state.left:
        first, *left = state.left
        return replace(state, asked=first, left=tuple(left)), (SendRequest(get(first)),)
    return _choose_server(terms, None, (terms.settings.issuer or origin_of(terms.server_url),))


def _use_resource(terms: LoginTerms, found: ResourceMetadata) -> Step:
    if not covers(found.resource, terms.server_url):
        return fail(
            f"The server's own metadata is for another resource ({found.resource}): a token for that could be used"
            " elsewhere. Ask its operator to correct it"
        )
    return _choose_server(terms, found, found.authorization_servers)


def _choose_server(terms: LoginTerms, resource: ResourceMetadata | None, issuers: tuple[str, ...]) -> Step:
    only = terms.settings.issuer or terms.pinned_issuer
    allowed = tuple(each for each in issuers if only is None or same_issuer(each, only))
    if not allowed:
        return fail(
            f"The server wants a login at {', '.join(issuers)}, and the client that is configured belongs to {only}. If"
            " the server has moved, put the new issuer with its client_id into the server's oauth settings"
        )
    return _ask_server(terms, resource, tuple(sorted(allowed, key=lambda each: each not in terms.registrations)))


def _ask_server(terms: LoginTerms, resource: ResourceMetadata | None, issuers: tuple[str, ...], why: str = "") -> Step:
    issuer, *others = issuers
    if not is_trustworthy(issuer, terms.server_url):
        why = f"The authorization server {issuer} is not at an https address"
        return _ask_server(terms, resource, tuple(others), why) if others else fail(why)
    first, *left = server_metadata_urls(issuer)
    state = ServerLookup(
        terms=terms,
        resource=resource,
        issuer=issuer,
        asked=first,
        left=tuple(left),
        other_issuers=tuple(others),
        why=why,
    )
    return state, (SendRequest(get(first)),)


def handle_server_metadata(state: ServerLookup, answer: HttpAnswer, now: datetime) -> Step:
    if answer.status >= 500:
        return try_next_server(state, f"{state.asked} answered HTTP {answer.status}")
    if answer.status != 200:
        return try_next_server(state, "", now)
    try:
        server = read_server_metadata(answer.body)
    except Malformed as error:
        return try_next_server(state, f"{state.asked} is not the metadata of an authorization server: {error}")
    if not same_issuer(server.issuer, state.issuer):
        return try_next_server(state, f"{state.asked} is the metadata of {server.issuer}, not of {state.issuer}")
    return _use_server(state.terms, state.resource, server, now)


def try_next_server(state: ServerLookup, why: str, now: datetime | None = None) -> Step:
    """Try the next address of the metadata, else the next issuer. `why` is empty if a document is merely missing."""
    why = why or state.why
    if state.left:
        first, *left = state.left
        return replace(state, asked=first, left=tuple(left), why=why), (SendRequest(get(first)),)
    if state.other_issuers:
        return _ask_server(state.terms, state.resource, state.other_issuers, why)
    if not why and now is not None and state.resource is None and state.terms.settings.issuer is None:
        return _use_server(state.terms, None, guessed_metadata(state.issuer), now)
    why = why or f"{state.issuer} publishes no metadata of an authorization server"
    return FlowFailed(reason=f"The login requirements could not be determined: {why}", may_try_again=True), ()


def _use_server(terms: LoginTerms, resource: ResourceMetadata | None, server: ServerMetadata, now: datetime) -> Step:
    if (objection := _objection(terms, server)) is not None:
        return fail(objection)
    needs_person = terms.settings.grant.needs_person
    offered = resource.scopes_supported if resource is not None else None
    scopes = scopes_to_request(
        challenged=terms.demand.scopes,
        configured=terms.settings.scopes,
        offered=offered,
        asked_before=terms.asked_before,
    )
    grantor = Grantor(
        resource=resource.resource if resource is not None else canonical_resource(terms.server_url),
        server=server,
        scopes=with_offline_access(scopes, server.scopes_supported) if needs_person else scopes,
        is_proven=_wants_dpop(terms, resource),
    )
    identity = identify(
        terms.settings,
        server,
        terms.registrations,
        redirect_uri=redirect_address(terms.redirect_uri, terms.settings, server),
        by_hand=terms.redirect_uri,
        own_document=terms.own_document,
        scopes=grantor.scopes,
        registered_scopes=join(grantor.scopes, offered),
        now=now,
    )
    match identity:
        case OAuthClient():
            return start_token_request(terms, grantor, identity)
        case RegistrationRequest():
            bare = None if identity.bare is None else post_json(identity.url, identity.bare)
            registering = ClientRegistration(terms=terms, grantor=grantor, bare=bare)
            return registering, (SendRequest(post_json(identity.url, identity.body)),)
        case NoClient():
            return fail(identity.reason)
        case _:
            assert_never(identity)


def _objection(terms: LoginTerms, server: ServerMetadata) -> str | None:
    """Return why this authorization server must not or cannot be used, or None."""
    grant = terms.settings.grant
    endpoints = {
        "token_endpoint": server.token_endpoint,
        "registration_endpoint": server.registration_endpoint,
        "revocation_endpoint": server.revocation_endpoint,
        "authorization_endpoint": server.authorization_endpoint,
        "device_authorization_endpoint": server.device_authorization_endpoint,
    }
    for name, url in endpoints.items():
        is_fit = is_openable if name == "authorization_endpoint" else is_trustworthy
        if url is not None and not is_fit(url, terms.server_url):
            return f"The {name} of the authorization server {server.issuer} is not at an https address"
    supported = server.grant_types_supported
    if supported is not None and GRANT_TYPES[grant] not in supported:
        return (
            f"The authorization server {server.issuer} does not offer the grant {grant}, but {', '.join(supported)}."
            " Choose another in the server's oauth settings"
        )
    if grant is Grant.DEVICE_CODE and server.device_authorization_endpoint is None:
        return f"The authorization server {server.issuer} does not offer logins with a device code"
    if grant is not Grant.AUTHORIZATION_CODE:
        return None
    if server.authorization_endpoint is None:
        return f"The authorization server {server.issuer} has no authorization_endpoint"
    if not server.is_guessed and S256 not in (server.challenge_methods_supported or ()):
        return (
            f"The authorization server {server.issuer} does not say that it supports PKCE with {S256}, so a login there"
            " could be stolen on its way. Ask its operator to turn that on"
        )
    return None


def _wants_dpop(terms: LoginTerms, resource: ResourceMetadata | None) -> bool:
    demand = terms.demand
    is_required = resource is not None and resource.requires_dpop
    return terms.settings.wants_dpop or is_required or (demand.accepts_dpop and not demand.accepts_bearer)


def handle_registration(state: ClientRegistration, answer: HttpAnswer) -> Step:
    terms, grantor = state.terms, state.grantor
    issuer = grantor.server.issuer
    if answer.status >= 500:
        return unreachable(issuer, f"HTTP {answer.status}")
    refusal = error_in(answer)
    if refusal is not None and refusal.code == "invalid_client_metadata" and state.bare is not None:
        return replace(state, bare=None), (SendRequest(state.bare),)
    try:
        if answer.status not in (200, 201):
            raise Malformed(str(refusal or f"HTTP {answer.status}"))
        registration = read_registration(
            answer.body,
            issuer=issuer,
            redirect_uri=redirect_address(terms.redirect_uri, terms.settings, grantor.server),
            grant=terms.settings.grant,
            server=grantor.server,
        )
    except Malformed as error:
        return fail(
            f"{issuer} did not register emceepee: {error}. Register it there by hand, with the redirect address"
            f" {terms.redirect_uri}, and put client_id (and client_secret) into the server's oauth settings; or put a"
            " token into its headers"
        )
    next_state, effects = start_token_request(terms, grantor, registration.client)
    return next_state, (KeepRegistration(registration), *effects)
