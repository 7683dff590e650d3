/** Own prices of models: stored, found again, audited, and gone with their namespace. */

import { NamespaceStateError, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { describeStores, newName } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

const PRICE = {
  input: "1.25",
  cachedInput: "0.125",
  output: "10",
  longContext: [{ above: 200_000, input: "2.5" }],
  tiers: { flex: { input: "0.625", output: "5" } },
} as const;

describeStores("prices", (store) => {
  const opened = async () => store.open({ namespace: newName() });

  it("prices are stored by model and upstream, and listed by model", async () => {
    const { prices } = await opened();
    expect(await prices.list()).toEqual([]);
    await prices.set("gpt-5", PRICE);
    await prices.set("gpt-5*", { input: "1" });
    await prices.set("gpt-5", { free: true }, { upstream: "127.0.0.1:8000" });
    expect(await prices.get("gpt-5")).toEqual(PRICE);
    expect(await prices.get("gpt-5", { upstream: "127.0.0.1:8000" })).toEqual({ free: true });
    expect(await prices.get("gpt-5", { upstream: "api.openai.com" })).toBeUndefined();
    expect(await prices.list()).toEqual([
      { model: "gpt-5", price: PRICE },
      { model: "gpt-5", upstream: "127.0.0.1:8000", price: { free: true } },
      { model: "gpt-5*", price: { input: "1" } },
    ]);
    await prices.set("gpt-5", { input: "2" });
    expect(await prices.get("gpt-5")).toEqual({ input: "2" });
  });

  it("a price is deleted once, and both changes are in the audit log", async () => {
    const repo = await opened();
    await repo.prices.set("gpt-5", { input: "1" }, { principal: "ann" });
    expect(await repo.prices.delete("gpt-5", { principal: "bob" })).toBe(true);
    expect(await repo.prices.delete("gpt-5")).toBe(false);
    expect(await repo.prices.get("gpt-5")).toBeUndefined();
    const events = await repo.audit.list("$SYSTEM");
    expect(
      events.map(({ action, principal, details }) => ({ action, principal, details })),
    ).toEqual([
      {
        action: "price_deleted",
        principal: "bob",
        details: { model: "gpt-5", upstream: null },
      },
      {
        action: "price_set",
        principal: "ann",
        details: { model: "gpt-5", upstream: null, price: { input: "1" } },
      },
    ]);
  });

  it("a price that is not valid is refused before anything is written", async () => {
    const { prices } = await opened();
    const set = prices.set.bind(prices) as (...given: readonly unknown[]) => Promise<void>;
    for (const given of [
      ["gpt-5", { input: 1 }],
      ["gpt-5", {}],
      ["g*t", { input: "1" }],
      [undefined, { input: "1" }],
      ["gpt-5", { input: "1" }, { upstream: "a b" }],
      ["gpt-5", { input: "1" }, { provider: "openai" }],
    ]) {
      await expect(set(...given)).rejects.toThrow(ValidationError);
    }
    expect(await prices.list()).toEqual([]);
  });

  it("a namespace that was deleted takes no prices", async () => {
    const root = await store.open();
    const name = newName();
    await root.namespaces.register(name);
    const repo = await root.namespace(name);
    await repo.prices.set("gpt-5", { input: "1" });
    await root.namespaces.delete(name);
    await expect(repo.prices.set("gpt-5", { input: "2" })).rejects.toThrow(NamespaceStateError);
    await expect(repo.prices.delete("gpt-5")).rejects.toThrow(NamespaceStateError);
  });
});
