/** Parts of a repository that a limiter needs and users do not. Not exported from the package. */

import type { Clock, Timer } from "../base/time.ts";
import type { AlertWatch } from "../buckets/alert-watch.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import type { BucketWarning } from "../buckets/bucket-warning.ts";
import type { OnUnavailable } from "../domain/errors/unavailability.ts";
import type { Alert } from "../records/alerts/alert-item.ts";
import type { ConfigResolver } from "../records/config/config-resolver.ts";
import type { Notes } from "../records/notes.ts";
import type { RecordContext } from "../records/record-context.ts";
import type { RecordWarning } from "../records/record-warning.ts";
import type { CallListener } from "../storage/item-store.ts";
import type { DatabaseName } from "./backend.ts";

export const INTERNALS: unique symbol = Symbol("zae-limiter internals");

export interface RepositoryInternals {
  readonly buckets: BucketStore;
  readonly alerts: AlertWatch;
  readonly resolver: ConfigResolver;
  /** For records that are not on the repository itself. */
  readonly records: RecordContext;
  readonly notes: Notes;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly timeoutMs: number;
  /** The table or file, for messages. */
  readonly storeName: string;
  /** The store as telemetry names it. */
  readonly database: DatabaseName;
  /** Sends a request to the store that costs next to nothing. */
  ping(timeoutMs: number): Promise<unknown>;
  readonly onUnavailable: OnUnavailable | undefined;
  /** Listeners for splits and warnings in this namespace. */
  readonly listeners: Set<RepositoryListener>;
  /** Adds a listener for all requests to the store, in any namespace; the result removes it. */
  listen(listener: CallListener): () => void;
}

export interface RepositoryListener {
  /** Receives warnings; without any such listener they go to the process. */
  readonly onWarning?: ((warning: BucketWarning | RecordWarning) => void) | undefined;
  readonly onSplit?:
    | ((notice: { entityId: string; resource: string; shardCount: number }) => void)
    | undefined;
  readonly onAlert?: ((alert: Alert) => void) | undefined;
}
