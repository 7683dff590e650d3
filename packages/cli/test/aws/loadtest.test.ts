/** Load tests with workers on AWS: the stack on moto, the workers in processes. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeAws } from "./aws.ts";
import { Command } from "./command.ts";
import { LocalLambda } from "./local-lambda.ts";

const WORKERS = 8;
/** A process that takes the place of another has to start within this, on a busy machine too. */
const SECONDS = 12;

await describeAws("load tests on AWS", (aws) => {
  let command: Command;
  let lambda: LocalLambda;
  let place: readonly string[];
  let scenario: string;
  let mark: string;
  beforeAll(async () => {
    command = new Command(aws, "us-east-1");
    lambda = await LocalLambda.start(aws.endpoint);
    place = ["--name", "tested", "--endpoint-url", lambda.endpoint, "--region", "us-east-1"];
    scenario = join(command.folder, "deadly.mjs");
    mark = join(command.folder, "killed");
    // Worker 3 kills itself after its first acquire, once.
    writeFileSync(
      scenario,
      `import { existsSync, writeFileSync } from "node:fs";
       import { defineLoad } from "zae-limiter/loadtest";
       const mark = ${JSON.stringify(mark)};
       export default defineLoad({ users: { Caller: { wait: 1000, task: async (session) => {
         const entityId = "worker-" + session.worker + "-" + process.pid;
         await session.acquire({ entityId, resource: "api", limits: ["n:1000000"], consume: { n: 1 } });
         if (session.worker !== 3 || existsSync(mark)) return;
         writeFileSync(mark, entityId);
         process.kill(process.pid, "SIGKILL");
       } } } });`,
    );
  });
  afterAll(async () => {
    await lambda.stop();
    command.remove();
  });

  test("a name that is too long and a missing table are reported before anything is created", async () => {
    const long = ["--name", "a".repeat(51), "--endpoint-url", lambda.endpoint];
    const refused = await command.run("loadtest", "deploy", "-f", scenario, ...long, "--yes");
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toMatch(/a name of at most 50 characters, got 51/);
    const missing = await command.run("loadtest", "deploy", "-f", scenario, ...place, "--yes");
    expect(missing).toMatchObject({ code: 1, out: "" });
    expect(missing.err).toMatch(/There is no table "tested"/);
  });

  itUnless(NIGHTLY_ONLY)(
    "eight workers, one of them killed: it is named and replaced, and all counts are exact",
    {
      timeout: 120_000,
    },
    async () => {
      const connection = { endpoint: lambda.endpoint, region: "us-east-1", timeoutMs: 20_000 };
      const repository = await Repository.createTable("tested", connection);
      const deployed = await command.run("loadtest", "deploy", "-f", scenario, ...place, "--yes");
      expect(deployed.out).toMatch(/^✓ Stack tested-load is created$/m);
      expect(deployed.err).toMatch(/It costs nothing while no test runs/);
      const load = [
        "-u",
        "8",
        "--spawn-rate",
        "1000",
        "-d",
        String(SECONDS),
        "-w",
        String(WORKERS),
      ];
      const args = ["loadtest", "run", "-f", scenario, ...place, "--timeout", "20", ...load];
      const { code, out, err } = await command.run(...args, "--lambda", "--yes", "--json");
      expect(code).toBe(0);
      expect(err).toMatch(/^8 Lambda workers for 12 s cost about \$0\.00, and \$0\.63 per million/);
      const { consumed, lost_workers, total, workers } = JSON.parse(out);
      expect({ workers, errors: total.errors }).toEqual({ workers: WORKERS, errors: 0 });
      expect(lost_workers).toMatchObject([{ worker: 3 }]);
      expect(lost_workers[0].reason).toMatch(/Runtime exited with error: SIGKILL/);
      const dead = readFileSync(mark, "utf8");
      const { entities } = await repository.buckets.capacity("api", "n");
      const alive = entities.map(({ entityId }) => entityId).filter((id) => id !== dead);
      // Every worker has reported, the third by the one that took its place.
      const numbers = new Set(alive.map((id) => id.split("-")[1]));
      expect(numbers.size).toBe(WORKERS);
      const states = await Promise.all(alive.map((id) => repository.buckets.list(id)));
      const counted = states.flat().reduce((sum, state) => sum + state.totalConsumed, 0);
      expect(consumed).toEqual({ n: counted });
      expect(total.granted).toBe(counted);
      await repository.close();
    },
  );

  itUnless(NIGHTLY_ONLY)(
    "push uploads only what has changed; list names the stack, and delete removes it alone",
    {
      timeout: 60_000,
    },
    async () => {
      const again = await command.run("loadtest", "push", "-f", scenario, ...place, "--json");
      expect(JSON.parse(again.out)).toMatchObject({
        function: "tested-load-worker",
        changed: false,
      });
      writeFileSync(scenario, "export default { users: { Other: { task() {} } } };");
      const pushed = await command.run("loadtest", "push", "-f", scenario, ...place);
      expect(pushed.out).toMatch(/^✓ tested-load-worker: [\d.]+ KB$/m);
      const unknown = join(command.folder, "unknown.mjs");
      writeFileSync(unknown, "export default { users: { A: { task() {} } } };");
      const run = ["loadtest", "run", "-f", unknown, ...place, "-d", "1", "--lambda", "--yes"];
      const refused = await command.run(...run);
      expect(refused).toMatchObject({ code: 1, out: "" });
      expect(refused.err).toMatch(/the workers have no scenario unknown\.mjs, only deadly\.mjs/);
      const listed = await command.run("loadtest", "list", ...place.slice(2), "--json");
      expect(JSON.parse(listed.out).stacks).toMatchObject([
        { name: "tested", stack_name: "tested-load", status: "CREATE_COMPLETE" },
      ]);
      const deleted = await command.run("loadtest", "delete", ...place, "--yes");
      expect(deleted.out).toMatch(/✓ Stack tested-load is deleted/);
      expect(
        JSON.parse((await command.run("loadtest", "list", ...place.slice(2), "--json")).out).stacks,
      ).toEqual([]);
    },
  );
});
