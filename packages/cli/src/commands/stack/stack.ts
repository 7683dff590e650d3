/** `stack`: the stacks on AWS. Each command also works without the word `stack`. */

import type { Group } from "../../frame/command.ts";
import { cfnTemplate } from "./cfn-template.ts";
import { deleteStack } from "./delete.ts";
import { deploy } from "./deploy.ts";
import { lambdaExport } from "./lambda-export.ts";
import { list } from "./list.ts";
import { status } from "./status.ts";
import { upgrade } from "./upgrade.ts";
import { check, version } from "./version.ts";

export const stack: Group = {
  name: "stack",
  summary: "stacks on AWS: deploy, status, list, upgrade, delete",
  details:
    "The word stack may be left out: zae-limiter deploy is short for zae-limiter stack deploy.",
  commands: [deploy, status, list, upgrade, check, version, deleteStack, cfnTemplate, lambdaExport],
};
