/** A table of local DynamoDB, and clients that share nothing but this table. */

import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { createTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import type { RunningEngine } from "@zae-limiter/test-engines/engine.ts";

/** Other tests use the machine too, so time limits prove nothing here. */
const TIMEOUT_MS = 20_000;

export class ContendedTable implements AsyncDisposable {
  readonly #open: RateLimiter[] = [];

  private constructor(
    readonly name: string,
    readonly endpoint: string,
    readonly root: Repository,
  ) {}

  static async create({ endpoint }: RunningEngine, limit: string): Promise<ContendedTable> {
    const name = `contention-${crypto.randomUUID()}`;
    await createTable({ table: name, endpoint, stream: false });
    const root = await Repository.createTable(name, { endpoint });
    await root.limits.setSystem([limit]);
    return new ContendedTable(name, endpoint, root);
  }

  /** Connected clients with the limits at hand: the time that takes is not what is measured. */
  async clients(count: number, endpoint: string = this.endpoint): Promise<RateLimiter[]> {
    const limiters = await Promise.all(
      Array.from({ length: count }, async () => {
        const repo = await Repository.connect(this.name, { endpoint, timeoutMs: TIMEOUT_MS });
        const limiter = new RateLimiter(repo);
        await limiter.status({ entityId: "warm", resource: "api" });
        return limiter;
      }),
    );
    this.#open.push(...limiters);
    return limiters;
  }

  /** Creates a parent with the limit, and `count` children that cascade to it. */
  async family(parentId: string, limit: string, childIds: readonly string[]): Promise<void> {
    const { entities, limits } = this.root;
    await entities.create({ id: parentId });
    await limits.setEntity(parentId, [limit]);
    for (const id of childIds) await entities.create({ id, parentId, cascade: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#open.map((limiter) => limiter.close()));
    await this.root.close();
  }
}
