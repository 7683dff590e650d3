import { afterAll, beforeAll, test } from "vitest";
import { describeAws } from "./aws.ts";
import { Command } from "./command.ts";
import { wholeLife } from "./whole-life.ts";

await describeAws("what test:aws-account runs", (aws) => {
  const region = "eu-west-3";
  let command: Command;
  beforeAll(() => {
    command = new Command(aws, region);
  });
  afterAll(() => command.remove());

  test("a stack is deployed, used, upgraded and deleted, and nothing of it is left", {
    timeout: 180_000,
  }, async () => {
    await wholeLife({
      name: "whole-life",
      region,
      endpoint: aws.endpoint,
      folder: command.folder,
      index: command.index,
      // moto registers functions and does not run them.
      runsLambdas: false,
      run: (...args) => command.tries(...args),
    });
  });
});
