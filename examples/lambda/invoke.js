/** Calls the handler as API Gateway would, to try it on this machine. */

import { handler } from "./handler.js";

for (let call = 1; call <= 3; call += 1) {
  const { statusCode, headers, body } = await handler({
    rawPath: "/chat",
    headers: { "x-api-key": "key-1" },
    requestContext: { domainName: "localhost", http: { method: "GET" } },
  });
  console.log(statusCode, headers.ratelimit, body);
}
