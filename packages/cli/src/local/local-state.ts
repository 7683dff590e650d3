/**
 * The state of what `local up` has started, in a file. The file may come with a folder from
 * elsewhere, so nothing in it is believed that `local up` could not have written.
 */

import { isPlainObject, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkNamespace, checkStackName } from "@zae-limiter/limiter/domain/names.ts";
import type { BackgroundProcess } from "./background-process.ts";

const PORT_MAX = 65_535;
const PID_MAX = 2 ** 31;
const ENGINES = ["dynoxide", "dynamodb-local"] as const;

export interface LocalState {
  readonly engine: string;
  readonly process: BackgroundProcess;
  readonly port: number;
  readonly table: string;
  readonly namespace: string;
  readonly aggregator?: BackgroundProcess;
}

/** Checks what was read, and adds the words that the processes must have been started with. */
export function readState(value: unknown): LocalState {
  const fields = objectIn("state", value);
  const engine = ENGINES.find((name) => name === fields.engine);
  if (engine === undefined) throw refusal("engine", fields.engine, `one of ${ENGINES.join(", ")}`);
  const place = {
    port: wholeNumberIn("port", fields.port, 1, PORT_MAX),
    table: checkStackName(fields.table),
    namespace: checkNamespace(fields.namespace),
  };
  const aggregator = fields.aggregator;
  return {
    engine,
    ...place,
    process: processIn("process", fields.process, [String(place.port)]),
    ...(aggregator === undefined
      ? {}
      : { aggregator: processIn("aggregator", aggregator, ["aggregate", urlOf(place)]) }),
  };
}

export function endpointOf({ port }: Pick<LocalState, "port">): string {
  return `http://127.0.0.1:${port}`;
}

/** Returns the address that `ZAEL_URL` takes. */
export function urlOf(state: Pick<LocalState, "port" | "table" | "namespace">): string {
  const { table, namespace } = state;
  const tenant = namespace === "default" ? "" : `&namespace=${encodeURIComponent(namespace)}`;
  return `dynamodb://${table}?endpoint=${endpointOf(state)}${tenant}`;
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
