/** Calls that are metered on a limiter in memory, without a provider. */

import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { type CallFacts, readFacts } from "@zae-limiter/limiter/llm/call.ts";
import { formatOf } from "@zae-limiter/limiter/llm/formats/format.ts";
import { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import { Metering } from "@zae-limiter/limiter/llm/metering.ts";
import { checkLlmOptions, type LlmOptions } from "@zae-limiter/limiter/llm/options.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";

const MODEL = "gpt-4o";

/** Returns the facts of a chat whose prompt has 10 tokens. */
export function factsOf(body: object = {}, path = "/v1/chat/completions"): CallFacts {
  const format = formatOf("POST", path);
  if (format === undefined) throw new Error(`${path} is not known`);
  const prompt = path.endsWith("responses") ? "input" : "messages";
  const fields: Record<string, unknown> = { model: MODEL, [prompt]: "x".repeat(40), ...body };
  const stream = fields["stream"] === true;
  const call = { api: format.api, model: String(fields["model"]), stream, body: fields };
  return readFacts(format, fields, call);
}

/** A limiter with ample limits, in virtual time. */
export class MeteredTest {
  readonly limiter: RateLimiter;
  readonly time: VirtualTime;

  private constructor(limiter: RateLimiter, time: VirtualTime) {
    this.limiter = limiter;
    this.time = time;
  }

  static async open(limits = ["rpm:100", "tpm:100000000"]): Promise<MeteredTest> {
    const time = new VirtualTime(1_700_000_000_000);
    const limiter = await RateLimiter.open("memory:", { clock: time.clock, timer: time.timer });
    await limiter.repository.limits.setSystem(limits);
    return new MeteredTest(limiter, time);
  }

  metering(options: Partial<LlmOptions> = {}): Metering {
    return new Metering(this.limiter, checkLlmOptions({ entityId: "a", ...options }));
  }

  /** Returns a call that was granted. */
  async begin(facts = factsOf(), metering = this.metering()): Promise<MeteredCall> {
    const begun = await metering.begin(facts);
    if (!(begun instanceof MeteredCall)) throw new Error("The call was refused");
    return begun;
  }

  /** Returns what was consumed of each limit so far. */
  async consumed(resource = MODEL, entityId = "a"): Promise<Record<string, number>> {
    const statuses = await this.limiter.status({ entityId, resource });
    return Object.fromEntries(
      statuses.map(({ limitName, limit, available }) => [limitName, limit.capacity - available]),
    );
  }

  /** Returns the tokens that were consumed so far. */
  async tokens(resource = MODEL, entityId = "a"): Promise<number | undefined> {
    return (await this.consumed(resource, entityId))["tpm"];
  }
}
