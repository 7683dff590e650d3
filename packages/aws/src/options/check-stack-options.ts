/** Checks the options of a deployment by their table. */

import { checkOptions, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { STACK_DEFAULTS, STACK_OPTIONS } from "./stack-option-table.ts";
import type { StackOptions } from "./stack-options.ts";

/** Options within their ranges, with the defaults filled in. */
export type CheckedStackOptions = typeof STACK_DEFAULTS & StackOptions;

/** Checks options from a user before anything is deployed, and fills in the defaults. */
export function checkStackOptions(options: StackOptions = {}): CheckedStackOptions {
  checkOptions("stack", options, "an object like { lambdaTimeout: 60 }");
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [option, value] of given) {
    if (!isOption(option)) {
      throw new ValidationError("stack", option, `there is no option ${show(option)}`);
    }
    STACK_OPTIONS[option].check(fieldOf(option), value);
  }
  const checked: CheckedStackOptions = { ...STACK_DEFAULTS, ...Object.fromEntries(given) };
  if (checked.createIamRoles && !checked.createIam) {
    throw new ValidationError("create_iam_roles", true, "roles cannot be created without IAM");
  }
  if (checked.alarmEmail !== undefined && checked.alarmSnsTopic !== undefined) {
    const reason = "is for the topic that the stack makes; subscribe to your own topic yourself";
    throw new ValidationError("alarm_email", checked.alarmEmail, reason);
  }
  return Object.freeze(checked);
}

function isOption(name: string): name is keyof StackOptions {
  return Object.hasOwn(STACK_OPTIONS, name);
}

/** Returns `lambda_timeout` for `lambdaTimeout`, like every field in our errors. */
function fieldOf(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
