/** `local`: a local DynamoDB in the background, without Docker. */

import type { Group } from "../../frame/command.ts";
import { env, logs } from "./local-read.ts";
import { down, status, up } from "./local-run.ts";

export const local: Group = {
  name: "local",
  summary: "a local DynamoDB in the background",
  commands: [up, status, logs, env, down],
};
