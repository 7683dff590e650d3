/** A call every now and then, by users of their own and by users that share a parent. */
import { defineLoad } from "zae-limiter/loadtest";

const PARENT = "loadtest-simple";
const RESOURCE = "api";

export default defineLoad({
  setup: async ({ repository }) => {
    // Far more than any machine can ask for: this scenario measures the limiter, not the limit.
    await repository.limits.setResource(RESOURCE, ["rpm:1000000000"]);
    await repository.entities.ensure({ id: PARENT });
  },
  users: {
    /** Entities of their own. */
    SimpleUser: {
      wait: [100, 1000],
      task: async (session) => {
        const lease = await session.acquire({
          entityId: session.userId,
          resource: RESOURCE,
          consume: { rpm: 1 },
        });
        await lease.commit();
      },
    },
    /** Children of one parent: every acquire consumes from both. */
    SimpleCascadeUser: {
      wait: [100, 1000],
      start: ({ limiter, userId }) =>
        limiter.repository.entities.ensure({ id: userId, parentId: PARENT, cascade: true }),
      task: async (session) => {
        const lease = await session.acquire({
          entityId: session.userId,
          resource: RESOURCE,
          consume: { rpm: 1 },
        });
        await lease.commit();
      },
    },
  },
});
