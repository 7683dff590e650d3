/** `local`: a local store in the background, without Docker. */

import type { Group } from "../../frame/command.ts";
import { env, logs } from "./local-read.ts";
import { down, status, up } from "./local-run.ts";

export const local: Group = {
  name: "local",
  summary: "a local DynamoDB, PostgreSQL or Valkey in the background",
  commands: [up, status, logs, env, down],
};
