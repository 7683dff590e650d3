/**
 * Calls to language models: each consumes an estimate, streams an answer for a while, and settles
 * what it really used. Requests and tokens are limited per model.
 */
import { defineLoad } from "zae-limiter/loadtest";

/** Requests and tokens per minute, for each user. */
const MODELS = {
  "gpt-large": ["rpm:100", "tpm:200000"],
  "gpt-small": ["rpm:2000", "tpm:4000000"],
  "claude-large": ["rpm:100", "tpm:400000"],
  "claude-small": ["rpm:1000", "tpm:2000000"],
};
const ESTIMATE = 800;
const FIRST_TOKEN_MS = [150, 600];
const CHUNK_MS = [20, 60];
const TOKENS_PER_CHUNK = 40;

const between = (random, [low, high]) => low + random() * (high - low);

/** Makes one call; the lease is open until the answer is complete. */
async function chat(session, tokens) {
  const models = Object.keys(MODELS);
  const resource = models[Math.floor(session.random() * models.length)];
  const request = { entityId: session.userId, resource, consume: { rpm: 1, tpm: ESTIMATE } };
  await session.run(request, async (lease) => {
    const used = Math.round(between(session.random, tokens));
    await session.sleep(between(session.random, FIRST_TOKEN_MS));
    for (let sent = 0; sent < used && !session.signal.aborted; sent += TOKENS_PER_CHUNK) {
      await session.sleep(between(session.random, CHUNK_MS));
    }
    lease.settle({ tpm: used });
  });
}

export default defineLoad({
  setup: async ({ repository }) => {
    for (const [model, limits] of Object.entries(MODELS)) {
      await repository.limits.setResource(model, limits);
    }
  },
  users: {
    /** Asks, reads, asks again. */
    ChatUser: {
      weight: 15,
      wait: [500, 2000],
      task: (session) => chat(session, [200, 2000]),
    },
    /** A program in a loop, with long answers. */
    AgentUser: {
      weight: 2,
      task: (session) => chat(session, [1000, 4000]),
    },
  },
});
