// Which addresses a button may lead to.

import assert from "node:assert/strict";
import { test } from "node:test";

import { loginLink, parseWebAddress } from "../../src/emceepee/console/page/lib/web-address.js";

test("http and https addresses can be opened", () => {
  assert.equal(parseWebAddress("https://login.example/authorize?x=1")?.host, "login.example");
  assert.equal(parseWebAddress("http://127.0.0.1:8080/")?.host, "127.0.0.1:8080");
});

test("addresses of other schemes cannot be opened", () => {
  for (const address of [undefined, "", "nowhere", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"])
    assert.equal(parseWebAddress(address), null);
});

test("the displayed host is the host that the browser opens", () => {
  assert.equal(parseWebAddress("https://login.example@evil.example/")?.host, "evil.example");
  assert.match(parseWebAddress("https://lоgin.example/")?.host ?? "", /^xn--/);
});

test("the login button names an authorization server on another site", () => {
  const authorizationUrl = "https://login.example/authorize?x=1";
  const linked = loginLink({ authorizationUrl, authorizationServer: "https://login.example/tenant" });
  assert.deepEqual(linked, { href: authorizationUrl, label: "Log in at login.example" });
  const other = loginLink({ authorizationUrl, authorizationServer: "https://evil.example" });
  assert.equal(other?.label, "Log in at login.example for evil.example");
  assert.equal(loginLink({ authorizationUrl })?.label, "Log in at login.example");
  assert.equal(loginLink({}), null);
});
