/** A template that is too long for a request, on moto: CloudFormation reads it from a bucket. */

import { connectAws } from "@zae-limiter/aws/client/aws.ts";
import { createChangeSet, discardChangeSet } from "@zae-limiter/aws/deploy/change-set.ts";
import { uploadTemplate } from "@zae-limiter/aws/deploy/change-set-plan.ts";
import { compactTemplate, stackTemplate } from "@zae-limiter/aws/template/template.ts";
import { systemTimer } from "@zae-limiter/limiter/base/time.ts";
import { expect, test } from "vitest";
import { describeAws } from "./aws.ts";

await describeAws("a long template", (moto) => {
  // By this name moto knows that the bucket is behind it.
  const endpoint = moto.endpoint.replace("127.0.0.1", "localhost");

  test("a long template goes through a bucket, and nothing stays of it", async () => {
    const aws = connectAws({ endpoint });
    const body = compactTemplate(stackTemplate());
    const uploaded = await uploadTemplate(aws, body, { random: () => 0, endpoint, bytesMax: 1 });
    const wanted = {
      stackName: "uploaded",
      name: "uploaded",
      type: "CREATE",
      template: uploaded.template,
      parameters: { SchemaVersion: "0.11.0" },
      kept: [],
      tags: {},
      adopt: false,
    } as const;
    const changeSet = await createChangeSet(aws, wanted, systemTimer);
    expect(changeSet.changes?.map(({ resource }) => resource)).toContain("LimiterTable");
    await discardChangeSet(aws, wanted, changeSet);
    await uploaded.remove();
    const Bucket = `zae-limiter-${"a".repeat(20)}`;
    await expect(aws.send("s3:ListObjectVersions", { Bucket })).rejects.toThrow(
      /bucket does not exist/,
    );
    aws.close();
  });
});
