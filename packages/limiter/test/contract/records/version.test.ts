/** The version record: which clients may use a table. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import {
  IncompatibleSchemaError,
  VersionMismatchError,
} from "@zae-limiter/limiter/domain/errors/version-errors.ts";
import { CLIENT_VERSION, SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { namespaceKey, versionKey } from "@zae-limiter/limiter/records/keys.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { describeStores, newName } from "@zae-limiter/test-support/stores.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { afterEach, expect, it } from "vitest";

/** As the Python library writes it. */
const REFERENCE = {
  GSI4PK: "_",
  GSI4SK: "_/SYSTEM#",
  schema_version: "0.10.0",
  lambda_version: "0.12.1",
  client_min_version: "0.0.0",
  updated_at: "2026-11-15T18:32:29Z",
  updated_by: "client:0.12.1",
} as const;

describeStores("the version of a table", (store) => {
  let ours: Item | undefined;
  /** Replaces the record until the test is over. */
  const pretend = async (attributes: Record<string, string | null>): Promise<void> => {
    ours ??= await store.items.get(versionKey(), { consistent: true });
    await store.items.put({ ...versionKey(), ...REFERENCE, ...attributes });
  };
  afterEach(async () => {
    if (ours !== undefined) await store.items.put(ours);
  });

  it("the version of a table is written when a store is made, without the version of a Lambda", async () => {
    const repo = await store.open();
    expect(await repo.version()).toEqual({
      schemaVersion: SCHEMA_VERSION,
      clientMinVersion: "0.0.0",
      updatedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      updatedBy: `client:${CLIENT_VERSION}`,
    });
    const item = await store.items.get(versionKey(), { consistent: true });
    // The Python library updates a Lambda whose version it can read.
    expect(item).toMatchObject({ lambda_version: null, GSI4PK: "_", GSI4SK: "_/SYSTEM#" });
  });

  it("the version of a table of the Python library fits, and stays as it is (A205)", async () => {
    await pretend({});
    const repo = await store.open();
    expect(await repo.version()).toEqual({
      schemaVersion: "0.10.0",
      lambdaVersion: "0.12.1",
      clientMinVersion: "0.0.0",
      updatedAt: "2026-11-15T18:32:29Z",
      updatedBy: "client:0.12.1",
    });
    await repo.limits.setSystem(["rpm:1"]);
    const item = await store.items.get(versionKey(), { consistent: true });
    expect(item).toEqual({ ...versionKey(), ...REFERENCE });
  });

  itUnless(store.embedded && "an embedded store has no aggregator")(
    "the version of a table is refused with an older aggregator where the client asks for that",
    async () => {
      const refuse: DynamoOptions = { outdatedLambda: "refuse" };
      await store.open(refuse);
      await pretend({ aggregator_version: CLIENT_VERSION });
      await store.open(refuse);
      await pretend({ aggregator_version: "0.0.9" });
      await store.open();
      const error = await store.open(refuse).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(VersionMismatchError);
      expect(error).toMatchObject({ lambdaVersion: "0.0.9", canAutoUpdate: true });
      expect(String(error)).toContain("zae-limiter stack upgrade --name");
      const odd = { outdatedLambda: "perhaps" } as unknown as DynamoOptions;
      await expect(store.open(odd)).rejects.toThrow(/expected "accept" or "refuse"/);
    },
  );

  it("the version of a table fits with an older Lambda, which is the deployer's business (A205)", async () => {
    await pretend({ lambda_version: "0.0.1" });
    expect((await (await store.open()).version())?.lambdaVersion).toBe("0.0.1");
    await pretend({ lambda_version: "what?" });
    expect((await (await store.open()).version())?.lambdaVersion).toBe("what?");
  });

  it("a table that asks for a newer client ends the calls of an open one (N10)", async () => {
    const repo = await store.open({ configCacheTtlSeconds: 0 });
    await repo.limits.setSystem(["rpm:10"]);
    const limiter = new RateLimiter(repo);
    const call = { entityId: "user-1", resource: "gpt-4", consume: { rpm: 1 } };
    await limiter.acquire(call);
    await pretend({ client_min_version: "0.99.0" });
    await expect(limiter.acquire(call)).rejects.toBeInstanceOf(IncompatibleSchemaError);
    await expect(limiter.status({ entityId: "user-1", resource: "gpt-4" })).rejects.toThrow("0.99");
    await pretend({});
    expect((await limiter.acquire(call)).statuses[0]?.available).toBe(8);
  });

  it.each<[string, { client_min_version?: string; schema_version?: string }]>([
    ["a newer client (A205)", { client_min_version: "0.99.0" }],
    ["another major version (A205)", { schema_version: "1.0.0" }],
    ["a client version that is none (B33)", { client_min_version: "1.2" }],
    ["a schema version that is none (B33)", { schema_version: "soon" }],
  ])("the version of a table does not fit when the table asks for %s", async (_, attributes) => {
    await pretend(attributes);
    const namespace = newName();
    const opening = store.open({ namespace });
    await expect(opening).rejects.toBeInstanceOf(IncompatibleSchemaError);
    await expect(opening).rejects.toMatchObject({
      clientVersion: CLIENT_VERSION,
      schemaVersion: attributes.schema_version ?? "0.10.0",
    });
    if (store.embedded) {
      // A client that may not use the table does not register anything in it either.
      const record = await store.items.get(namespaceKey(namespace), { consistent: true });
      expect(record).toBeUndefined();
    }
  });

  it("the version of a table may be missing where other tools create the table", async () => {
    await pretend({});
    const namespace = (await store.open()).namespaceName;
    await store.items.delete(versionKey());
    const repo = await store.open({ namespace });
    // An embedded store is our own, so we write it.
    expect((await repo.version())?.schemaVersion).toBe(store.embedded ? SCHEMA_VERSION : undefined);
  });
});
