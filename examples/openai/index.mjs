/** Limits calls of the OpenAI client. Needs OPENAI_API_KEY; OPENAI_BASE_URL names another server. */

import OpenAI from "openai";
import { RateLimiter } from "zae-limiter";
import { limitFetch } from "zae-limiter/llm";

const limiter = await RateLimiter.open("memory:");
await limiter.repository.limits.ensureSystem(["rpd:1000/day", "tpd:10000/day"]);
const openai = new OpenAI({ fetch: limitFetch(limiter, { entityId: "team-a" }) });

const model = "gpt-4o-mini";
const messages = [{ role: "user", content: "Say hello in three languages." }];
for await (const part of await openai.chat.completions.create({ model, messages, stream: true })) {
  process.stdout.write(part.choices[0]?.delta.content ?? "");
}

const left = await limiter.available({ entityId: "team-a", resource: model });
console.log(`\n${left.rpd} requests and ${left.tpd} tokens are left today`);
await limiter.close();
