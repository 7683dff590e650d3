/** Warnings of limits that an entity loses, because its own limits replace the others. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryStore } from "../temporary.ts";

const store = temporaryStore();
const LOSS = "key-1/gpt-4 loses tpm, which resource gpt-4 has";
const WARNING = `Warning: ${LOSS}. The limits of an entity replace all others\n`;

describe("commands that set limits", () => {
  test("an entity that is set to less than its resource has is warned of", async () => {
    const { run, json } = store.namespace();
    await run("resource", "set-defaults", "gpt-4", "-l", "rpm:5", "-l", "tpm:100");
    const set = ["entity", "set-limits", "key-1", "-r", "gpt-4", "-l", "rpm:9"];
    expect(await run(...set)).toMatchObject({ code: 0, err: WARNING });
    expect(await json(...set)).toMatchObject({ warnings: [LOSS] });
    expect(await run(...set, "-l", "tpm:9")).toMatchObject({ code: 0, err: "" });
  });

  test("a resource without limits is passed over: the system is the next level", async () => {
    const { run } = store.namespace();
    await run("system", "set-defaults", "-l", "rpm:5", "-l", "tpm:100");
    const { err } = await run("entity", "set-limits", "key-1", "-r", "gpt-4", "-l", "rpm:9");
    expect(err).toContain("key-1/gpt-4 loses tpm, which the system has");
    await run("resource", "set-defaults", "gpt-4", "-l", "rpm:5");
    const fine = await run("entity", "set-limits", "key-1", "-r", "gpt-4", "-l", "rpm:9");
    expect(fine.err).toBe("");
  });

  test("limits for all resources hide those of each resource and of the system", async () => {
    const { run, json } = store.namespace();
    await run("system", "set-defaults", "-l", "rpd:5");
    await run("resource", "set-defaults", "gpt-4", "-l", "rpm:5", "-l", "tpm:100");
    expect(await json("entity", "set-limits", "key-1", "-l", "rpm:9")).toMatchObject({
      warnings: [
        "key-1/_default_ loses tpm, which resource gpt-4 has",
        "key-1/_default_ loses rpd, which the system has",
      ],
    });
  });

  test("a new limit of a resource or of the system names the entities that do not get it", async () => {
    const { run, json } = store.namespace();
    await run("entity", "set-limits", "key-1", "-r", "gpt-4", "-l", "rpm:9");
    await run("entity", "set-limits", "key-2", "-l", "rpm:9");
    const resource = ["resource", "set-defaults", "gpt-4", "-l", "rpm:5", "-l", "tpm:100"];
    expect(await json(...resource)).toMatchObject({
      warnings: [LOSS, "key-2/_default_ loses tpm, which resource gpt-4 has"],
    });
    expect(await json("system", "set-defaults", "-l", "rpd:1")).toMatchObject({
      warnings: ["key-2/_default_ loses rpd, which the system has"],
    });
  });
});

describe("limits plan and apply", () => {
  const PAGE = readFileSync(
    new URL("../../../../../docs/reference/limits-file.md", import.meta.url),
    "utf8",
  );
  const [, EXAMPLE = ""] = /```yaml\n([\s\S]*?)```/.exec(PAGE) ?? [];

  function fileIn(namespace: string, text: string): string {
    const file = join(store.folder, `${namespace}.yaml`);
    writeFileSync(file, text.replace("namespace: default", `namespace: ${namespace}`));
    return file;
  }

  test("the example of the documents loses nothing, and its calls are granted", async () => {
    const { name, run } = store.namespace();
    const file = fileIn(name, EXAMPLE);
    for (const command of ["plan", "apply"]) {
      expect(await run("limits", command, "-f", file)).toMatchObject({ code: 0, err: "" });
    }
    const call = ["acquire", "key-1", "gpt-4", "-c", "rpm=1", "-c", "tpm=500"];
    expect(await run(...call)).toMatchObject({ code: 0, err: "" });
  });

  test("limits plan and apply warn before and after, in words and in JSON", async () => {
    const { name, run, json } = store.namespace();
    const file = fileIn(name, EXAMPLE.replace(", tpm: { capacity: 100000 }", ""));
    expect((await run("limits", "plan", "-f", file)).err).toBe(WARNING);
    expect(await json("limits", "plan", "-f", file)).toMatchObject({ warnings: [LOSS] });
    expect(await json("limits", "apply", "-f", file)).toMatchObject({ warnings: [LOSS] });
    expect((await run("limits", "apply", "-f", file)).err).toBe(WARNING);
  });

  test("a name that states another period warns, in a command and in a file", async () => {
    const { name, run, json } = store.namespace();
    const warning = "the limit rpd refills per min, and its name says per day: ";
    const set = ["system", "set-limits", "-l", "rpd:10/min"];
    expect((await run(...set)).err).toContain(`Warning: ${warning}`);
    expect(await json(...set)).toMatchObject({ warnings: [expect.stringContaining(warning)] });
    expect((await run("system", "set-limits", "-l", "rpd:10")).out).toContain("rpd: 10/day");
    const limits = "{ rpd: { capacity: 5, refill_period: 60 }, tpd: { capacity: 5 } }";
    const file = fileIn(name, `namespace: default\nresources: { a: { limits: ${limits} } }\n`);
    for (const command of ["validate", "plan", "apply"]) {
      const { err } = await run("limits", command, "-f", file);
      expect(err).toContain(`Warning: resource a: ${warning}`);
      expect(err).not.toContain("tpd refills");
    }
    expect((await run("resource", "get-limits", "a")).out).toContain("tpd: 5/day");
  });

  test("limits that are stored and not in the file count, unless the plan removes them", async () => {
    const { name, run } = store.namespace();
    const entity =
      "entities: { key-1: { resources: { gpt-4: { limits: { rpm: { capacity: 1 } } } } } }";
    await run("resource", "set-defaults", "gpt-4", "-l", "tpm:5");
    const file = fileIn(name, `namespace: default\n${entity}\n`);
    expect((await run("limits", "plan", "-f", file)).err).toBe(WARNING);
    const all = `namespace: default\nresources: { gpt-4: { limits: { tpm: { capacity: 5 } } } }\n${entity}\n`;
    await run("limits", "apply", "-f", fileIn(name, all));
    fileIn(name, `namespace: default\n${entity}\n`);
    expect((await run("limits", "plan", "-f", file)).err).toBe("");
  });
});
