import { hashKey, rateLimit } from "zae-limiter/express";

/** The customer of each key, by the key's name: a table of yours. A made-up key has none: 401. */
const customers = new Map([[hashKey("key-1"), "customer-1"]]);

/** A module whose routes are limited; on Fastify register `zae-limiter/fastify` instead. */
export class ChatModule {
  configure(consumer) {
    consumer
      .apply(
        rateLimit({
          limits: ["rpm:60", "tpm:10000"],
          entityId: (request) => customers.get(hashKey(request.headers["x-api-key"])),
        }),
      )
      .forRoutes("chat");
  }
}
// In a controller: `chat(@Req() request) { request.lease?.settle({ tpm: 730 }); }`
