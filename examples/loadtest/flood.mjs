/** More calls than the limits allow: most are refused, and what is granted must not exceed them. */
import { defineLoad } from "zae-limiter/loadtest";

const SHARED = "loadtest-flood";
const RESOURCE = "flood";

export default defineLoad({
  setup: async ({ repository }) => {
    await repository.limits.setResource(RESOURCE, ["rps:100/sec"]);
    await repository.entities.ensure({ id: SHARED });
  },
  users: {
    /** All of them call as one entity, and never wait. */
    FloodUser: {
      weight: 4,
      task: async (session) => {
        const request = { entityId: SHARED, resource: RESOURCE, consume: { rps: 1 } };
        const decision = await session.tryAcquire(request);
        if (decision.granted) await decision.lease.commit();
        else await session.sleep(1);
      },
    },
    /** Waits in the queue for its tokens. */
    PatientUser: {
      weight: 1,
      wait: 50,
      task: async (session) => {
        const request = {
          entityId: SHARED,
          resource: RESOURCE,
          consume: { rps: 1 },
          maxWaitSeconds: 5,
        };
        const lease = await session.acquire(request);
        await lease.commit();
      },
    },
  },
});
