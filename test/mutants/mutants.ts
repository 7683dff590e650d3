/** All mutants, by the folder of the sources that they break. */

import { ACQUIRE } from "./acquire.ts";
import { AGGREGATOR } from "./aggregator.ts";
import { BUCKETS } from "./buckets.ts";
import { GATEWAY } from "./gateway.ts";
import { HTTP } from "./http.ts";
import { LLM } from "./llm.ts";
import type { Mutant } from "./mutant.ts";
import { RECORDS } from "./records.ts";

export const MUTANTS: Readonly<Record<string, readonly Mutant[]>> = {
  acquire: ACQUIRE,
  aggregator: AGGREGATOR,
  buckets: BUCKETS,
  gateway: GATEWAY,
  http: HTTP,
  llm: LLM,
  records: RECORDS,
};
