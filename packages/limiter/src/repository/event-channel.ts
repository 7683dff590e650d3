/**
 * The channel on which everything that happens is published, for telemetry of any vendor. A channel
 * without subscribers costs one property read; nothing is computed for it.
 */

import { channel } from "node:diagnostics_channel";

/** Carries `{ limiter?, namespaceId, event }`; see docs/reference/events.md. */
export const eventChannel = channel("zae-limiter:event");
