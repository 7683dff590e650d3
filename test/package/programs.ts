/** Programs that use the installed package. */

/** Stores limits and resolves them; prints one line. */
export function storing(url: string): string {
  return `
    const repo = await Repository.open(${JSON.stringify(url)});
    await repo.limits.setSystem(["rpm:100"]);
    const { limits, source } = await repo.limits.resolve("key-1", "gpt-4");
    console.log(String(limits), source);
    await repo.close();`;
}

/** Acquires and prints what is left; a limit per day refills too slowly to see. */
export function taking(tokens: number, url?: string): string {
  return `
    ${url === undefined ? 'import { RateLimiter } from "zae-limiter";' : ""}
    const limiter = await RateLimiter.open(${url === undefined ? "" : JSON.stringify(url)});
    const call = { entityId: "key-1", resource: "gpt-4", limits: ["rpd:100/day"] };
    await limiter.run({ ...call, consume: { rpd: ${tokens} } }, () => undefined);
    console.log((await limiter.available(call)).rpd);
    await limiter.close();`;
}
