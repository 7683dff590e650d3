/**
 * One change of stored limits, as one transaction.
 *
 * Every change reads what it needs as of one moment, and writes only if nothing of it has changed
 * since; otherwise it starts again. The `config_version` of the system config counts the changes of
 * the namespace: it is how caches and live buckets notice that something happened.
 */

import { entryOf } from "../../base/entry.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import { type Item, type Key, numberAt } from "../../storage/item.ts";
import type { Change, Condition, ItemStore, Write } from "../../storage/item-store.ts";
import { inNamespace, namespaceIdKey, systemConfigKey } from "../keys.ts";
import { refuseInactive, whileActive } from "../namespaces/namespace-state.ts";
import type { RecordContext } from "../record-context.ts";

export const CONFIG_VERSION = "config_version";

/** Each lost attempt means that another client succeeded; this many in a row are an error. */
const ATTEMPTS_MAX = 100;

/** Changes of one process run one by one: concurrent ones would only make each other retry. */
const lines = new WeakMap<ItemStore, OneByOne>();

/** Arguments of a plan: the items it asked for, in order, and the system config. */
interface ConfigSituation {
  readonly items: readonly (Item | undefined)[];
  readonly system: Item | undefined;
}

/** Writes of a change; `system` is applied to the system config together with the bump. */
interface ConfigPlan {
  readonly writes: readonly Write[];
  readonly system?: Change;
}

/** Returns the version that a config item shows; 0 before the first change. */
export function configVersion(item: Item | undefined): number {
  return item === undefined ? 0 : (numberAt(item, CONFIG_VERSION) ?? 0);
}

/** Passes only while an item is as it was read, judged by its version. */
export function unchanged(item: Item | undefined): Condition {
  if (item === undefined) return [{ is: "absent", name: "PK" }];
  const version = numberAt(item, CONFIG_VERSION);
  return version === undefined
    ? [
        { is: "exists", name: "PK" },
        { is: "absent", name: CONFIG_VERSION },
      ]
    : [{ is: "=", name: CONFIG_VERSION, value: version }];
}

/**
 * Reads, plans and writes until it succeeds. Returns the version the change has made, or
 * `undefined` when the plan was to change nothing.
 */
export async function changeConfig(
  context: RecordContext,
  keys: readonly Key[],
  plan: (situation: ConfigSituation) => ConfigPlan | undefined,
): Promise<number | undefined> {
  const line = entryOf(lines, context.store, () => new OneByOne());
  return line.run(context.namespaceId, () => attemptChange(context, keys, plan));
}

async function attemptChange(
  context: RecordContext,
  keys: readonly Key[],
  plan: (situation: ConfigSituation) => ConfigPlan | undefined,
): Promise<number | undefined> {
  const { store, namespaceId } = context;
  const systemKey = systemConfigKey(namespaceId);
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const asked = [...keys, systemKey, namespaceIdKey(namespaceId)];
    const found = await store.getMany(asked, { snapshot: true });
    const [system, namespace] = found.slice(keys.length);
    refuseInactive(namespaceId, namespace);
    const planned = plan({ items: found.slice(0, keys.length), system });
    if (planned === undefined) return undefined;
    const result = await store.transact([
      ...planned.writes,
      {
        update: systemKey,
        change: {
          ...planned.system,
          setIfAbsent: inNamespace(namespaceId, systemKey.PK),
          add: { [CONFIG_VERSION]: 1 },
        },
        condition: unchanged(system),
      },
      whileActive(namespaceId),
    ]);
    if (result.ok) return configVersion(system) + 1;
  }
  throw new RateLimiterUnavailable(
    `The stored limits changed ${ATTEMPTS_MAX} times while this change was written. Try again`,
    { reason: "throttled", nothingWritten: true },
  );
}

/** Runs pieces of work one by one, because concurrent ones would make each other retry. */
class OneByOne {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Starts when all earlier work under the same name is done, however it ended. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const mine = before === undefined ? work() : before.then(work, work);
    this.#last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(name) === mine) this.#last.delete(name);
    }
  }
}
