/**
 * JSON that the dashboard's handler and its page exchange. The page imports these types and, of the
 * package, only how money is written. Amounts are whole tokens, of money micro-dollars; times are
 * epoch milliseconds or `YYYY-MM-DDTHH:MM:SSZ`, limits are texts of the mini-language.
 */

/** The stored levels, the most specific first. */
type Source = "entity" | "entity_default" | "parent" | "parent_default" | "resource" | "system";

/** Data that the page needs before it shows anything. */
export interface SessionJson {
  readonly version: string;
  readonly store: string;
  readonly schemaVersion: string | null;
  readonly lambdaVersion: string | null;
  readonly namespace: string;
  readonly namespaces: readonly string[];
  readonly readOnly: boolean;
  readonly principal: string | null;
  /** Whether refusals of a limiter in the same process are shown live. */
  readonly live: boolean;
}

/** Why a limit of a bucket refuses nothing, or everything. */
export type MarkJson = "soft" | "bypass" | "disabled";

/** One limit of a bucket, shards summed. */
export interface BalanceJson {
  /** Absent where the limit is enforced, and in the ranking of the busiest. */
  readonly mark?: MarkJson;
  readonly entityId: string;
  readonly resource: string;
  readonly limitName: string;
  readonly available: number;
  readonly capacity: number;
  /** 0 for a quota or a session, which reset at once, and for slots. */
  readonly refillPerSecond: number;
  /** Slots in flight by process; absent for other limits. */
  readonly holders?: Readonly<Record<string, number>>;
  /** When a quota or a session resets, in words; absent for a rate. */
  readonly resets?: string;
  /** Time to the end of the period in force; absent where a session has not begun. */
  readonly resetsInSeconds?: number;
  /** When it is empty if the pace stays, in words; absent where it resets before that. */
  readonly empty?: string;
  readonly shardCount: number;
}

/** A bucket, or a sum over the buckets of a resource, for one limit name. */
export interface BusyJson {
  readonly name: string;
  /** The resource of the bucket, where the row is about one bucket of an entity. */
  readonly resource?: string;
  /** Consumed and not refilled yet. */
  readonly inUse: number;
  readonly capacity: number;
  readonly buckets: number;
}

export interface BusiestJson {
  readonly limitName: string;
  readonly entities: readonly BusyJson[];
  readonly resources: readonly BusyJson[];
}

/** Result of a walk over all buckets of the namespace. */
export interface OverviewJson {
  readonly atMs: number;
  /** False while the first walk is under way: the numbers are those of the buckets read so far. */
  readonly complete: boolean;
  readonly durationMs: number;
  readonly buckets: number;
  /** Limits of buckets without a whole token, and those of them that are in debt. */
  readonly emptyCount: number;
  readonly debtCount: number;
  /** Limits of buckets with less than a fifth left, without the empty ones. */
  readonly scarceCount: number;
  /** Levels of resources and entities that are switched off, and those that are bypassed. */
  readonly disabledCount: number;
  readonly bypassCount: number;
  readonly empty: readonly BalanceJson[];
  readonly scarce: readonly BalanceJson[];
  readonly busiest: readonly BusiestJson[];
}

/** One refusal of a limiter in the same process. */
export interface RefusalJson {
  readonly atMs: number;
  readonly entityId: string;
  readonly resource: string;
  /** The exceeded limit with the longest wait. */
  readonly limitName: string;
  /** The entity that has this limit, where it is an ancestor. */
  readonly ancestorId: string | null;
  /** Null when the request never fits. */
  readonly retryAfterSeconds: number | null;
}

/** Calls of the limiter in the same process since the dashboard listens. */
export interface LiveJson {
  readonly atMs: number;
  readonly granted: number;
  readonly refused: number;
  readonly degraded: number;
  /** The newest first. */
  readonly refusals: readonly RefusalJson[];
}

export interface EntityJson {
  readonly id: string;
  readonly name: string | null;
  readonly parentId: string | null;
  readonly cascade: boolean;
  readonly createdAt: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Only in lists. */
  readonly hasChildren?: boolean;
  /** Set where its parent does not exist. */
  readonly isOrphan?: boolean;
}

export interface EntityPageJson {
  readonly entities: readonly EntityJson[];
  readonly cursor: string | null;
}

/** Limits as texts. */
export interface LimitTextsJson {
  readonly limits: readonly string[];
  /** How limits come back, by their texts, where a text could mean both or does not say it. */
  readonly words?: Readonly<Record<string, string>>;
}

/** The limits that apply to an entity for one resource. */
export interface AllowanceJson extends LimitTextsJson {
  readonly resource: string;
  readonly source: Source | null;
  /** Empty while the entity has no bucket: then everything is available. */
  readonly balances: readonly BalanceJson[];
  /** How calls are decided: by the limits, or by a switch. */
  readonly state: "enforced" | "bypass" | "disabled";
  /** The level that switches it off; null where it is not. */
  readonly disabledAt: string | null;
  /** The buckets that a call consumes from as well, the parent's first. */
  readonly ancestors: readonly AncestorJson[];
}

/** The bucket of an ancestor that a call cascades to. */
export interface AncestorJson {
  readonly entityId: string;
  readonly state: "enforced" | "bypass" | "disabled";
  readonly balances: readonly BalanceJson[];
}

export interface EntityDetailJson {
  readonly id: string;
  /** Null when it was never created; it may have limits and buckets all the same. */
  readonly entity: EntityJson | null;
  /** The parent first. */
  readonly ancestors: readonly string[];
  readonly allowances: readonly AllowanceJson[];
  readonly atMs: number;
}

/** The place where limits are stored; of the levels of a parent, `entityId` is the parent. */
export interface PlaceJson {
  readonly level: Source;
  readonly resource?: string;
  readonly entityId?: string;
}

export interface StoredLimitsJson extends PlaceJson, LimitTextsJson {
  /** The switch stored at this level: `enabled`, `disabled` or `bypass`; null where nothing is. */
  readonly state?: string | null;
}

export interface LimitsJson {
  readonly system: readonly string[];
  readonly systemWords?: Readonly<Record<string, string>>;
  readonly onUnavailable: string | null;
  readonly resources: readonly StoredLimitsJson[];
  /** Limits that entities have of their own. */
  readonly entities: ListedResourcesJson;
  /** Limits that entities store for their children. */
  readonly children: ListedResourcesJson;
}

/** The resources for which some entity stores limits. */
export interface ListedResourcesJson {
  readonly resources: readonly string[];
  /** Whether some are stored for all resources. */
  readonly hasDefaults: boolean;
}

export interface EntityLimitsJson {
  readonly limits: readonly StoredLimitsJson[];
  readonly cursor: string | null;
}

/** A change of stored limits. Without limits, what is stored is removed. */
export interface ChangeJson extends PlaceJson {
  readonly limits: readonly string[];
  /** The limits that the page has shown; the change is refused when others are stored. */
  readonly expected: readonly string[];
  /** Whether limits of another kind may replace stored ones: a rate a quota. */
  readonly replaceKind?: boolean;
}

export interface DifferenceJson {
  readonly limitName: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** How one entity is affected. */
export interface EffectJson {
  readonly entityId: string;
  readonly resource: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** Limits of which an hour of the last day used more than the new limit allows in an hour. */
  readonly exceeded: readonly ExceededJson[];
}

export interface ExceededJson {
  readonly limitName: string;
  readonly used: number;
  readonly allowed: number;
  readonly hour: string;
}

/** A stored limit that one of another kind replaces. */
export interface KindChangeJson {
  readonly limitName: string;
  readonly before: string;
  readonly after: string;
}

export interface PreviewJson {
  /** Limits that change their kind, which needs `replaceKind`. */
  readonly kinds: readonly KindChangeJson[];
  /** Limits whose name states another period than they have, one sentence each. */
  readonly warnings: readonly string[];
  readonly differences: readonly DifferenceJson[];
  readonly affectedCount: number;
  readonly exceededCount: number;
  /** The entities that exceed first; at most a hundred. */
  readonly effects: readonly EffectJson[];
  /** False when there was too much to read all of it. */
  readonly complete: boolean;
  /** How many hourly snapshots the estimate is made from. */
  readonly snapshots: number;
}

/** Usage over time, in groups for a stacked chart. */
export interface UsageJson {
  readonly windows: readonly string[];
  /** The names of the limits that were consumed; acquires are counted under `requests`. */
  readonly limitNames: readonly string[];
  /** Such as `parallel at once`: the most slots that were held at once. Peaks do not add up. */
  readonly peakNames: readonly string[];
  readonly groups: readonly {
    readonly name: string;
    /** Per limit name and peak name, aligned with `windows`. */
    readonly values: Readonly<Record<string, readonly number[]>>;
  }[];
  readonly complete: boolean;
}

/** Alerts, the newest first. */
export interface AlertsJson {
  readonly alerts: readonly {
    readonly id: string;
    readonly entityId: string;
    readonly resource: string;
    readonly limitName: string;
    readonly percent: number;
    readonly used: number;
    readonly granted: number;
    /** ISO 8601. */
    readonly at: string;
    readonly state: "open" | "delivered" | "given_up";
    /** The answer to the last attempt to deliver it that failed. */
    readonly problem: string | null;
  }[];
}

/** Closed periods of quotas and sessions, those that ended last first. */
export interface PeriodsJson {
  readonly periods: readonly {
    readonly entityId: string;
    readonly resource: string;
    readonly limitName: string;
    /** Times as the clock of the zone shows them, with the name of the zone. */
    readonly start: string;
    readonly end: string;
    readonly used: number;
    readonly granted: number;
    readonly carried: number;
    readonly late?: number;
  }[];
  readonly countedBy: "store" | "aggregator";
  readonly complete: boolean;
}

export interface AuditEventJson {
  readonly eventId: string;
  readonly timestamp: string;
  readonly action: string;
  readonly subject: string;
  readonly principal: string | null;
  readonly resource: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  readonly differences: readonly DifferenceJson[];
}

export interface AuditJson {
  readonly events: readonly AuditEventJson[];
  /** The id after which the next page begins. */
  readonly after: string | null;
}

export interface NamespaceJson {
  readonly name: string;
  readonly namespaceId: string;
  readonly status: string;
  /** When it was created, or deleted when it is. */
  readonly since: string | null;
}

export interface NamespacesJson {
  readonly namespaces: readonly NamespaceJson[];
}

export interface ErrorJson {
  readonly error: string;
  readonly message: string;
}
