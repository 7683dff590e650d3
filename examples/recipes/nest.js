import { rateLimit } from "zae-limiter/express";

/** A module whose routes are limited; on Fastify register `zae-limiter/fastify` instead. */
export class ChatModule {
  configure(consumer) {
    consumer
      .apply(
        rateLimit({
          limits: ["rpm:60", "tpm:10000"],
          entityId: (request) => request.headers["x-api-key"],
        }),
      )
      .forRoutes("chat");
  }
}
// In a controller: `chat(@Req() request) { request.lease?.settle({ tpm: 730 }); }`
