/** `loadtest run` as a process, with workers in other processes: no acquire is lost or doubled. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { Binary, collect, describeCliStores } from "@zae-limiter/test-support/binary.ts";
import { afterAll, describe, expect, test } from "vitest";

const EXAMPLES = fileURLToPath(new URL("../../../../examples/loadtest/", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-load-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Printed {
  readonly total: { readonly granted: number; readonly refused: number; readonly errors: number };
  readonly classes: readonly { readonly class: string; readonly granted: number }[];
  readonly consumed: Readonly<Record<string, number>>;
  readonly lost_workers: readonly { readonly worker: number; readonly reason: string }[];
}

/** Returns the sum in the store: `tc` of all shards of a limit. */
async function counted(
  repository: Repository,
  entityIds: readonly string[],
  limitName: string,
): Promise<number> {
  const states = await Promise.all(entityIds.map((id) => repository.buckets.list(id)));
  return states
    .flat()
    .filter((state) => state.limitName === limitName)
    .reduce((sum, state) => sum + state.totalConsumed, 0);
}

/** `--users` users of all classes. */
function usersOf(printed: Printed, count: number): string[] {
  return printed.classes.flatMap((each) =>
    Array.from({ length: count }, (_, user) => `${each.class}-${user}`),
  );
}

describeCliStores("loadtest run", (store) => {
  test("four workers report exactly what the store has counted, parents included", async () => {
    const file = join(EXAMPLES, "max-rps.mjs");
    const load = ["--users", "8", "--spawn-rate", "1000", "--duration", "0.4", "--workers", "4"];
    const printed = await store.json<Printed>("loadtest", "run", "-f", file, ...load);
    const { total, consumed, classes } = printed;
    expect(total.errors).toBe(0);
    expect(total.granted).toBeGreaterThanOrEqual(8);
    expect(consumed).toEqual({ rpm: total.granted });
    expect(await counted(store.repository, usersOf(printed, 8), "rpm")).toBe(total.granted);
    const cascading = classes.find((each) => each.class === "MaxRpsCascadeUser")?.granted;
    expect(cascading).toBeGreaterThan(0);
    expect(await counted(store.repository, ["loadtest-max-rps"], "rpm")).toBe(cascading);
  });
});

describe("a run that is disturbed", () => {
  const url = `sqlite:${join(folder, "limits.db")}`;
  const file = join(EXAMPLES, "max-rps.mjs");
  const long = ["loadtest", "run", "-f", file, "--users", "4", "--url", url, "--json"];

  test("Ctrl-C ends the workers and prints what there is", async () => {
    const child = new Binary().start([...long, "-w", "2", "-d", "60", "-N", "ended"]);
    const printed = collect(child);
    await consumedBy(url, "ended", "MaxRpsUser-0");
    child.kill("SIGINT");
    const { code, out, err } = await printed;
    expect({ code, err }).toEqual({ code: 130, err: "" });
    const { consumed, lost_workers, total } = JSON.parse(out) as Printed;
    expect(lost_workers).toEqual([]);
    const repository = await Repository.open(url, { namespace: "ended" });
    const users = ["MaxRpsUser-0", "MaxRpsUser-2", "MaxRpsCascadeUser-1", "MaxRpsCascadeUser-3"];
    expect(await counted(repository, users, "rpm")).toBe(total.granted);
    expect(consumed).toEqual({ rpm: total.granted });
    await repository.close();
  });

  test("a worker that is killed is named and replaced, and the others stay exact", async () => {
    const scenario = join(folder, "deadly.mjs");
    // One worker kills itself after its first report, the first time only.
    writeFileSync(
      scenario,
      `import { existsSync, writeFileSync } from "node:fs";
       const mark = ${JSON.stringify(join(folder, "killed"))};
       export default { users: { Caller: { wait: 5, task: async (session) => {
         const entityId = "worker-" + session.worker + "-" + process.pid;
         await session.acquire({ entityId, resource: "api", limits: ["n:1000000"], consume: { n: 1 } });
         if (session.worker !== 1 || existsSync(mark)) return;
         writeFileSync(mark, entityId);
         process.kill(process.pid, "SIGKILL");
       } } } };`,
    );
    const options = ["-f", scenario, "-u", "4", "--spawn-rate", "1000", "-w", "4", "-d", "1"];
    const store = ["--url", url, "-N", "killed", "--json"];
    const { code, out } = await new Binary().run(["loadtest", "run", ...options, ...store]);
    const { consumed, lost_workers } = JSON.parse(out) as Printed;
    expect(code).toBe(0);
    expect(lost_workers).toMatchObject([{ worker: 1, reason: "ended with SIGKILL" }]);
    const repository = await Repository.open(url, { namespace: "killed" });
    const all = await repository.buckets.capacity("api", "n");
    const dead = readFileSync(join(folder, "killed"), "utf8");
    const alive = all.entities.map(({ entityId }) => entityId).filter((id) => id !== dead);
    // Three that lived, and the one that replaced the fourth.
    expect(alive).toHaveLength(4);
    expect(consumed["n"]).toBe(await counted(repository, alive, "n"));
    await repository.close();
  });
});

/** Waits until an entity has consumed something. */
async function consumedBy(url: string, namespace: string, entityId: string): Promise<void> {
  const repository = await Repository.open(url, { namespace });
  while ((await repository.buckets.list(entityId)).length === 0) await pause(20);
  await repository.close();
}
