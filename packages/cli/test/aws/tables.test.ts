/** Tables that were there before: kept ones, and one of the Python library, brought up to date. */

import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { Circumstances } from "@zae-limiter/test-support/captured.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import {
  DEFAULT_ID,
  tableWithoutNamespaces,
  unfinishedTable,
} from "@zae-limiter/test-support/old-tables.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { describeAws } from "./aws.ts";
import { Command } from "./command.ts";

const REGION = "eu-central-1";
const INDEXES = ["GSI1", "GSI2", "GSI3"];

/** From before there were namespaces: no GSI4. Python clients update a table, but not its stack. */
const OLD_STACK = [
  "Parameters:",
  "  EnableAggregator: {Type: String, Default: 'false'}",
  "  EnableIAM: {Type: String, Default: 'false'}",
  "  EnableAlarms: {Type: String, Default: 'false'}",
  "Conditions: {Aggregates: !Equals [!Ref EnableAggregator, 'true']}",
  "Resources:",
  "  RateLimitTable:",
  "    Type: AWS::DynamoDB::Table",
  "    Properties:",
  "      TableName: !Ref AWS::StackName",
  "      BillingMode: PAY_PER_REQUEST",
  "      KeySchema: [{AttributeName: PK, KeyType: HASH}, {AttributeName: SK, KeyType: RANGE}]",
  "      StreamSpecification: {StreamViewType: NEW_AND_OLD_IMAGES}",
  "      AttributeDefinitions:",
  ...["PK", "SK", ...INDEXES.flatMap((name) => [`${name}PK`, `${name}SK`])].map(
    (name) => `        - {AttributeName: ${name}, AttributeType: S}`,
  ),
  "      GlobalSecondaryIndexes:",
  ...INDEXES.flatMap((name) => [
    `        - IndexName: ${name}`,
    `          KeySchema: [{AttributeName: ${name}PK, KeyType: HASH}, {AttributeName: ${name}SK, KeyType: RANGE}]`,
    `          Projection: {ProjectionType: ${name === "GSI3" ? "KEYS_ONLY" : "ALL"}}`,
  ]),
  "Outputs:",
  "  TableArn: {Value: !GetAtt RateLimitTable.Arn}",
].join("\n");

/** Python programs are slow on a busy machine. */
vi.setConfig({ testTimeout: 180_000 });

await describeAws("tables on moto", (aws) => {
  let command: Command;
  beforeAll(() => {
    command = new Command(aws, REGION);
  });
  afterAll(() => command.remove());

  test("a table that a deleted stack has kept becomes part of the next one", async () => {
    const bare = ["--yes", "--no-iam", "--no-alarms"];
    await command.on("deploy", "-n", "kept", ...bare);
    await command.on("system", "set-defaults", "-l", "rpm:7", "-n", "kept");
    expect(await command.on("delete", "-n", "kept", "--yes")).toBe(
      "✓ Stack kept is deleted\n  Kept: table kept\n",
    );
    const again = await command.tries("deploy", "-n", "kept", ...bare);
    expect(again.err).toMatch(/The table kept exists already and becomes part of the stack/);
    expect(again.code).toBe(0);
    expect(await command.on("system", "get-defaults", "-n", "kept")).toContain("rpm: 7/min");
    expect(await command.json("deploy", "-n", "kept", "--yes")).toMatchObject({ kind: "nothing" });
    const gone = await command.on("delete", "-n", "kept", "--with-data", "--yes");
    expect(gone).toMatch(/Deleted: table kept with everything in it/);
    // A mistyped name does not delete a table of other software.
    await command.dynamodb("CreateTable", {
      TableName: "orders",
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
    });
    const refused = await command.tries("delete", "-n", "orders", "--with-data", "--yes");
    expect([refused.code, refused.err]).toEqual([1, expect.stringMatching(/not one of ours/)]);
  });

  itUnless(NIGHTLY_ONLY)(
    "a stack made with other tools gets code, a version and a namespace",
    async () => {
      const change = { StackName: "own-tools", ChangeSetName: "first", Version: "2010-05-15" };
      const TemplateBody = (await command.run("cfn-template")).out;
      const off = ["EnableIAM", "EnableAlarms", "EnableAggregator"].flatMap((name, at) => [
        [`Parameters.member.${at + 1}.ParameterKey`, name],
        [`Parameters.member.${at + 1}.ParameterValue`, "false"],
      ]);
      await command.query("cloudformation", {
        Action: "CreateChangeSet",
        ...change,
        ChangeSetType: "CREATE",
        TemplateBody,
        ...Object.fromEntries(off),
      });
      await command.query("cloudformation", { Action: "ExecuteChangeSet", ...change });
      const place = ["-n", "own-tools", "--yes"];
      const refused = await command.tries("upgrade", ...place);
      expect([refused.code, refused.err]).toEqual([1, expect.stringMatching(/upgrade --force/)]);
      await command.on("upgrade", ...place, "--force");
      await command.on("namespace", "register", "default", "-n", "own-tools");
      expect(await command.on("check", "-n", "own-tools")).toContain("✓ Compatible");
      await command.on("system", "set-defaults", "-l", "rpm:7", "-n", "own-tools");
      const taken = await command.json<{ granted: boolean }>(
        ...["acquire", "a", "b", "-c", "rpm=1", "-n", "own-tools"],
      );
      expect(taken.granted).toBe(true);
      await command.on("delete", ...place, "--with-data");
    },
  );

  /** A stack of the Python library, and what is in its table. */
  const createOld = async (StackName: string, puts: readonly Item[]): Promise<DynamoItemStore> => {
    await command.query("cloudformation", {
      Action: "CreateStack",
      StackName,
      TemplateBody: OLD_STACK,
      "Tags.member.1.Key": "team",
      "Tags.member.1.Value": "search",
    });
    const place = { table: StackName, endpoint: aws.endpoint, region: REGION, timeoutMs: 20_000 };
    const store = new DynamoItemStore(place);
    await store.writeMany({ puts });
    return store;
  };

  test("a table from before there were namespaces is left to the Python library", async () => {
    const items = tableWithoutNamespaces();
    const store = await createOld("oldest", items);
    for (const args of [
      ["deploy"],
      ["upgrade"],
      ["upgrade", "--dry-run"],
      ["upgrade", "--force"],
    ]) {
      const { code, err } = await command.tries(...args, "-n", "oldest", "--yes");
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(/cannot use schema 0\.8\.0.*namespaces.*release 0\.17\.0.*Python/),
      ]);
    }
    const { code, out } = await command.tries("version", "-n", "oldest");
    expect([code, out]).toEqual([1, expect.stringMatching(/0\.8\.0[\s\S]*✗.*release 0\.17\.0/)]);
    const left: Item[] = [];
    for await (const item of store.scan()) left.push(item);
    const keys = (all: readonly Item[]) => all.map(({ PK, SK }) => `${PK} ${SK}`).sort();
    expect(keys(left)).toEqual(keys(items));
    await store.close();
  });

  itUnless(NIGHTLY_ONLY)(
    "an old stack of the Python library gets its index, then our stack, then our schema",
    async () => {
      const entities = Array.from({ length: 60 }, (_, at): Item => {
        const PK = `${DEFAULT_ID}/ENTITY#many-${at}`;
        return { PK, SK: "#META", entity_id: `many-${at}`, name: `many-${at}` };
      });
      const store = await createOld("old", [...unfinishedTable("0.10.0"), ...entities]);
      await store.close();

      // Migrating comes second, and says so.
      const early = await command.tries("upgrade", "-n", "old", "--yes");
      expect(early.code).toBe(1);
      expect(early.err).toMatch(/index GSI4 .*zae-limiter stack deploy.* nothing was changed/);

      const deployed = await command.tries("deploy", "-n", "old", "--yes");
      expect(deployed.code).toBe(0);
      const [alone = "", rest = ""] = deployed.err.split("Waiting until the index GSI4 is filled");
      expect(alone).toMatch(
        /will change:\n +The table lacks the index GSI4\. It is added first, and alone\n +~ RateLimitTable AWS::DynamoDB::Table\nUpdating/,
      );
      expect(rest).toMatch(/will change:[\s\S]*Updating the stack/);
      expect(deployed.out).toMatch(
        /The table has schema 0\.10\.0: run zae-limiter stack upgrade --name old/,
      );

      const rehearsed = await command.on("upgrade", "-n", "old", "--dry-run");
      expect(rehearsed).toMatch(/Would do:[\s\S]*schema 0\.11\.0[\s\S]*0\.11\.0: \d+ items read/);

      // Ctrl-C reports that the upgrade is not done, and the next one continues.
      const pressed: Circumstances = {
        isTerminal: true,
        onOutput: (text, interrupt) => {
          if (/0\.11\.0: \d+ items read/.test(text)) interrupt("SIGINT");
        },
      };
      const stopped = await command.watched(pressed, "upgrade", "-n", "old", "--yes");
      const told =
        /Stopped on the way to 0\.11\.0: \d+ items read, \d+ changed\. Continue with: zae-limiter stack upgrade/;
      expect(stopped).toMatchObject({ code: 130, out: "", err: expect.stringMatching(told) });
      const halfway = await command.tries("version", "-n", "old");
      expect([halfway.code, halfway.out]).toEqual([
        0,
        expect.stringMatching(/0\.10\.0[\s\S]*an update is available/),
      ]);

      expect(await command.on("upgrade", "-n", "old", "--yes")).toMatch(/✓ Stack old is upgraded/);
      expect(await command.on("check", "-n", "old")).toContain("✓ Compatible");
      expect(
        await command.on("entity", "get-limits", "key-1", "-r", "gpt-4", "-n", "old"),
      ).toContain("rpm: 10/min");
      const taken = await command.json<{ granted: boolean }>(
        ...["acquire", "many-59", "gpt-4", "-c", "rpm=1", "-n", "old"],
      );
      expect(taken.granted).toBe(true);
      const { stacks } = await command.json<{ stacks: object[] }>("list");
      expect(stacks).toMatchObject([{ name: "old" }]);
    },
  );
});
