/**
 * The state of what `local up` has started, in a file. The file may come with a folder from
 * elsewhere, so nothing in it is believed that `local up` could not have written.
 */

import { isPlainObject, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkNamespace, checkStackName } from "@zae-limiter/limiter/domain/names.ts";
import type { BackgroundProcess } from "./background-process.ts";
import type { LocalStore, StorePlace } from "./stores/store.ts";
import { ENGINE_NAMES, storeByName, storeNameOf } from "./stores/stores.ts";

const PORT_MAX = 65_535;
const PID_MAX = 2 ** 31;

export interface LocalState extends StorePlace {
  readonly engine: string;
  readonly process: BackgroundProcess;
  readonly aggregator?: BackgroundProcess;
}

/** Checks what was read, and adds the words that the processes must have been started with. */
export function readState(value: unknown): LocalState {
  const fields = objectIn("state", value);
  const engine = ENGINE_NAMES.find((name) => name === fields.engine);
  if (engine === undefined) {
    throw refusal("engine", fields.engine, `one of ${ENGINE_NAMES.join(", ")}`);
  }
  const place = {
    engine,
    port: wholeNumberIn("port", fields.port, 1, PORT_MAX),
    ...(storeOf({ engine }).hasTables ? { table: checkStackName(fields.table) } : {}),
    namespace: checkNamespace(fields.namespace),
  };
  const aggregator = fields.aggregator;
  return {
    ...place,
    process: processIn("process", fields.process, [String(place.port)]),
    ...(aggregator === undefined
      ? {}
      : { aggregator: processIn("aggregator", aggregator, ["aggregate", urlOf(place)]) }),
  };
}

/** Returns the kind of store that runs. */
export function storeOf({ engine }: Pick<LocalState, "engine">): LocalStore {
  return storeByName(storeNameOf(engine));
}

export function endpointOf(state: Pick<LocalState, "engine" | "port">): string {
  return storeOf(state).endpoint(state.port);
}

/** Returns the address that `ZAEL_URL` takes. */
export function urlOf(state: StorePlace & Pick<LocalState, "engine">): string {
  return storeOf(state).url(state);
}

function processIn(field: string, value: unknown, words: readonly string[]): BackgroundProcess {
  const { pid, stamp } = objectIn(field, value);
  if (stamp !== undefined && typeof stamp !== "string") throw refusal(field, stamp, "text");
  return {
    pid: wholeNumberIn(`${field}.pid`, pid, 2, PID_MAX),
    ...(stamp === undefined ? {} : { stamp }),
    words,
  };
}

function objectIn(field: string, value: unknown): Record<string, unknown> {
  if (isPlainObject(value)) return value;
  throw refusal(field, value, "an object");
}

function wholeNumberIn(field: string, value: unknown, min: number, max: number): number {
  const number = Number.isSafeInteger(value) ? (value as number) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw refusal(field, value, `a whole number from ${min} to ${max}`);
}

function refusal(field: string, value: unknown, expected: string): ValidationError {
  return new ValidationError(field, value, `expected ${expected}, got ${show(value)}`);
}
