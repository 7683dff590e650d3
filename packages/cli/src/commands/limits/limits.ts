/** `limits`: what a file declares, compared with what is stored, and brought there. */

import type { Group } from "../../frame/command.ts";
import { apply } from "./limits-apply.ts";
import { cfnTemplate, exportFile, validate } from "./limits-files.ts";
import { diff, plan } from "./limits-plan.ts";

export const limits: Group = {
  name: "limits",
  summary: "limits declared in a file",
  commands: [plan, apply, diff, exportFile, validate, cfnTemplate],
};
