/** Sends hostile requests by kind, among valid calls, and compares what they cost. */

import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import { type FuzzedGateway, PLAN } from "./fuzzed-gateway.ts";
import { HOSTILE } from "./hostile-requests.ts";

/** The result of the requests of one kind. */
export interface FuzzReport {
  readonly kind: string;
  readonly requests: number;
  readonly meanBytes: number;
  /** Processor time for each request, in ordinary calls. */
  readonly calls: number;
  /** The most that they may be: some calls, and the price of their bytes in a prompt. */
  readonly callsMax: number;
  readonly heapGrowthBytes: number;
  readonly delayMs: number;
  /** Statuses of answers; 0 is none. */
  readonly statuses: Readonly<Record<number, number>>;
  /** Statuses of the valid calls among them. */
  readonly among: Readonly<Record<number, number>>;
}

const PARALLEL = 8;
/** A valid call follows one of this many hostile requests. */
const VALID_EACH = 10;
const WARM_UP = 100;
const CONTROLS = 100;
const LARGE_CONTROLS = 10;
const LARGE_BYTES = 1024 * 1024;
/** How many ordinary calls a request may cost, whatever its size. */
const CALLS_MAX = 20;
/** How many times the price of its bytes in the prompt of a valid call. */
const BYTES_FACTOR = 4;

export async function fuzz(
  gateway: FuzzedGateway,
  requests: number,
  seed: number,
): Promise<FuzzReport[]> {
  const random = seededRandom(seed);
  const source = { random, key: gateway.key, plan: PLAN };
  const price = await controlPrice(gateway);
  const reports: FuzzReport[] = [];
  for (const [kind, { share, draw }] of Object.entries(HOSTILE)) {
    const count = Math.ceil((requests * share) / 1000);
    const statuses: Record<number, number> = {};
    const among: Record<number, number> = {};
    let bytes = 0;
    let left = count;
    const before = await gateway.cost();
    const work = async () => {
      while (left > 0) {
        left -= 1;
        const isValid = left % VALID_EACH === 0;
        const hostile = draw(source);
        bytes += hostile.bytes.length;
        countOne(statuses, await gateway.send(hostile));
        if (isValid) countOne(among, await gateway.call());
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
    const after = await gateway.cost();
    const valid = Object.values(among).reduce((sum, each) => sum + each, 0);
    const cpuUs = after.cpuUs - before.cpuUs - valid * price.callUs;
    const meanBytes = bytes / count;
    reports.push({
      kind,
      requests: count,
      meanBytes: Math.round(meanBytes),
      calls: cpuUs / count / price.callUs,
      callsMax: CALLS_MAX + (BYTES_FACTOR * meanBytes * price.byteUs) / price.callUs,
      heapGrowthBytes: after.heapBytes - before.heapBytes,
      delayMs: after.delayNs / 1e6,
      statuses,
      among,
    });
  }
  return reports;
}

function countOne(counts: Record<number, number>, status: number): void {
  counts[status] = (counts[status] ?? 0) + 1;
}

/** Returns the processor time of an ordinary call, and of each further byte of its prompt. */
async function controlPrice(gateway: FuzzedGateway): Promise<{ callUs: number; byteUs: number }> {
  await calls(gateway, WARM_UP, 100);
  await calls(gateway, 2, LARGE_BYTES);
  const start = await gateway.cost();
  await calls(gateway, CONTROLS, 100);
  const small = await gateway.cost();
  await calls(gateway, LARGE_CONTROLS, LARGE_BYTES);
  const large = await gateway.cost();
  const callUs = (small.cpuUs - start.cpuUs) / CONTROLS;
  const largeUs = (large.cpuUs - small.cpuUs) / LARGE_CONTROLS;
  return { callUs, byteUs: (largeUs - callUs) / LARGE_BYTES };
}

async function calls(gateway: FuzzedGateway, count: number, bytes: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const status = await gateway.call(bytes);
    if (status !== 200) throw new Error(`A valid call was answered with ${status}`);
  }
}
