// An authorization server that nobody here wrote, as its users run it: with its own pages to log in and to agree on.
// The first argument is {resource, lives}: whom tokens are for, and for how many seconds. Says {issuer} when it listens.
import http from "node:http";

import Provider from "oidc-provider";

const { resource, lives } = JSON.parse(process.argv[2]);
const server = http.createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    scopes: ["offline_access"],
    cookies: { keys: ["of-this-test"] },
    rotateRefreshToken: true,
    features: {
      devInteractions: { enabled: true },
      deviceFlow: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (context, asked) => {
          if (asked !== resource) throw new Error(`nobody is at ${asked}`);
          return { scope: "notes:read", audience: resource, accessTokenFormat: "jwt", accessTokenTTL: lives };
        },
        useGrantedResource: () => true,
      },
    },
  });
  server.on("request", provider.callback());
  console.log(JSON.stringify({ issuer }));
});
