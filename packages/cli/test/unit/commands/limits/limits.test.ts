/** `limits`: the form of its output, and what it refuses. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { limits } from "@zae-limiter/cli/commands/limits/limits.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { expectShape } from "../../shape.ts";

let folder: string;
let file: string;
let url: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-limits-"));
  file = join(folder, "limits.yaml");
  url = `sqlite:${join(folder, "limits.db")}`;
  writeFileSync(
    file,
    "namespace: default\nresources:\n  gpt-4: { limits: { rpm: { capacity: 5 } } }\n",
  );
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (name: string, ...more: string[]) => cli(["limits", name, ...more, "--url", url]);

/** Returns the output of a command with `--json`, in the form it promises. */
async function json(name: string, ...more: string[]): Promise<{ code: number; value: unknown }> {
  const { code, out } = await run(name, ...more, "--json");
  const value: unknown = JSON.parse(out);
  const leaf = limits.commands.find((command) => command.name === name);
  expectShape(leaf?.json ?? "nothing", value);
  return { code, value };
}

describe("limits", () => {
  test.each(limits.commands.map(({ name }) => name))(
    "the command %s explains itself",
    async (name) => {
      const { code, out } = await cli(["limits", name, "--help"]);
      expect(code).toBe(0);
      expect(out).toContain(`zae-limiter limits ${name}`);
      expect(out).toContain("--file");
    },
  );

  test("plan, apply and diff have their forms", async () => {
    expect(await json("plan", "-f", file)).toMatchObject({ code: 0, value: { create: 1 } });
    expect((await json("diff", "-f", file)).code).toBe(5);
    const applied = await json("apply", "-f", file, "--principal", "ci");
    expect(applied).toMatchObject({
      code: 0,
      value: { created: 1, changes: [{ level: "resource", target: "gpt-4", outcome: "applied" }] },
    });
    expect(await json("diff", "-f", file)).toMatchObject({ code: 0, value: { unchanged: 1 } });
    const repo = await Repository.open(url);
    const [event] = await repo.audit.list("$RESOURCE:gpt-4");
    expect(event?.principal).toBe("ci");
    await repo.limits.setResource("gpt-4", ["rpm:6"]);
    await repo.close();
    expect(await json("plan", "-f", file)).toMatchObject({
      value: {
        changes: [
          {
            action: "update",
            before: { limits: [{ capacity: 6 }] },
            after: { limits: [{ capacity: 5 }] },
          },
        ],
      },
    });
  });

  test("entities of a file are shown, created, and refused with their lines", async () => {
    const entities = "namespace: default\nentities:\n  ann: { parent: org, cascade: true }\n";
    writeFileSync(file, entities);
    for (const name of ["plan", "diff", "apply"]) {
      const { code, err } = await run(name, "-f", file);
      expect(code).toBe(1);
      expect(err).toContain(
        `${file}:3:18: entities.ann.parent: there is no entity "org", stored or in this file\n`,
      );
      expect(err).toContain(`${file} has 1 problem; no limits or entities were written`);
    }
    writeFileSync(file, `${entities}  org: { cascade: false }\n`);
    expect((await run("plan", "-f", file, "-q")).out).toBe(
      "2 changes in default (2 to create, 0 to update, 0 to delete)\n",
    );
    const applied = await run("apply", "-f", file);
    expect(applied.out).toBe(
      "  + create entity org\n      + cascade: false\n" +
        "  + create entity ann\n      + cascade: true\n      + parent: org\n" +
        "Applied to default: 2 created, 0 updated, 0 deleted\n",
    );
    expect(await json("diff", "-f", file)).toMatchObject({ code: 0, value: { unchanged: 2 } });
    const exported = await run("export");
    expect(exported.out).toContain("  ann:\n    parent: org\n    cascade: true\n");
  });

  test("plan on a fresh machine makes no file", async () => {
    const { code, err } = await run("plan", "-f", file);
    expect([code, err.includes("Nothing is stored")]).toEqual([0, true]);
    expect(() => readFileSync(join(folder, "limits.db"))).toThrow("ENOENT");
  });

  test("plan says what will be managed and what is gone", async () => {
    const repo = await Repository.open(url);
    await repo.limits.setResource("gpt-4", ["rpm:5"]);
    const adopted = await run("plan", "-f", file);
    expect(adopted.out).toContain("managed from now on: resource gpt-4.");
    expect((await run("apply", "-f", file)).out).toBe(
      "No changes: 1 entry in default as declared, 1 managed from now on\n",
    );
    await repo.limits.deleteResource("gpt-4");
    await repo.close();
    writeFileSync(file, "namespace: default\n");
    const gone = await run("plan", "-f", file);
    expect(gone.out).toContain("Neither declared nor stored any more: resource gpt-4.");
  });

  test("before and after are in colour where a person looks, and the file wins over -N", async () => {
    await run("apply", "-f", file);
    writeFileSync(file, "namespace: default\nresources: {}\n");
    const coloured = await cli(["limits", "plan", "-f", file, "--url", url], { isTerminal: true });
    expect(coloured.out).toContain("\u001b[31m- delete resource gpt-4\u001b[39m");
    const named = { env: { ZAEL_NAMESPACE: "other" } };
    const plain = await cli(["limits", "plan", "-f", file, "--url", url], named);
    expect(plain.out).toContain("  - delete resource gpt-4\n      - rpm: 5/min\n");
    const conflict = await run("plan", "-f", file, "-N", "other");
    expect([conflict.code, conflict.err]).toEqual([
      2,
      expect.stringContaining("leave --namespace"),
    ]);
  });

  test("a bad file is refused with all its lines by every command that reads it", async () => {
    writeFileSync(file, "namespace: default\nsystem: 5\nresources: { gpt-4: {} }\n");
    for (const name of ["plan", "apply", "diff"]) {
      const { code, out, err } = await run(name, "-f", file);
      expect([code, out]).toEqual([1, ""]);
      expect(err).toContain(`${file}:2:9: system: expected a mapping, got 5\n`);
      expect(err).toContain(`${file}:3:14: resources.gpt-4: expected limits`);
      const asJson = await run(name, "-f", file, "--json");
      expect(JSON.parse(asJson.err)).toMatchObject({ error: "FAILED" });
    }
    const { code, value } = await storelessJson("validate", "-f", file);
    expect([code, value]).toMatchObject([
      1,
      { valid: false, problems: [{ line: 2 }, { line: 3 }] },
    ]);
    expect((await cli(["limits", "cfn-template", "-f", file])).code).toBe(1);
  });

  test("validate, export and cfn-template have their forms", async () => {
    expect(await storelessJson("validate", "-f", file)).toEqual({
      code: 0,
      value: { valid: true, problems: [], warnings: [] },
    });
    expect(await storelessJson("cfn-template", "-f", file, "-n", "app")).toMatchObject({ code: 0 });
    await run("apply", "-f", file);
    const exported = await json("export");
    expect(exported.value).toMatchObject({
      file: null,
      manifest: {
        namespace: "default",
        resources: { "gpt-4": { limits: { rpm: { capacity: 5 } } } },
      },
    });
    const target = join(folder, "exported.yaml");
    expect((await json("export", "-f", target)).value).toMatchObject({ file: target });
    expect((await run("export", "-f", target)).code).toBe(1);
    expect((await run("export", "-f", target, "--force")).out).toBe(`Wrote ${target}\n`);
    expect((await run("export", "-N", "nowhere")).code).toBe(1);
    expect((await cli(["limits", "cfn-template", "-f", file, "-n", "my_app"])).code).toBe(1);
  });

  test("an apply that is interrupted says how far it came", async () => {
    writeFileSync(
      file,
      "namespace: default\nresources: { a: { limits: { rpm: { capacity: 1 } } }, b: { limits: { rpm: { capacity: 1 } } } }\n",
    );
    const ran = await cli(["limits", "apply", "-f", file, "--url", url], {
      isTerminal: true,
      onOutput: (text, interrupt) => {
        if (text.includes("Applying")) interrupt("SIGINT");
      },
    });
    expect(ran.code).toBe(130);
    expect(ran.err).toContain("Stopped after 1 change, before 1 more; apply again to continue");
    expect((await run("apply", "-f", file)).out).toContain("1 created");
  });
});

/** Returns the output with `--json` of a command without a store. */
async function storelessJson(
  name: string,
  ...more: string[]
): Promise<{ code: number; value: unknown }> {
  const { code, out } = await cli(["limits", name, ...more, "--json"]);
  const value: unknown = JSON.parse(out);
  const leaf = limits.commands.find((command) => command.name === name);
  expectShape(leaf?.json ?? "nothing", value);
  return { code, value };
}
