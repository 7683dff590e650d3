/** The template of a stack, and how it is printed. */

import { AGGREGATOR_RESOURCES } from "./aggregator.ts";
import { ALARM_RESOURCES } from "./alarms.ts";
import type { CfnTemplate } from "./cfn.ts";
import { CONDITIONS } from "./conditions.ts";
import { DASHBOARD_RESOURCES } from "./dashboard.ts";
import { OUTPUTS } from "./outputs.ts";
import { PARAMETERS } from "./parameters.ts";
import { POLICY_RESOURCES } from "./policies.ts";
import { PROVISIONER_RESOURCES } from "./provisioner.ts";
import { ROLE_RESOURCES } from "./roles.ts";
import { TABLE, type TableVariant, tableResource } from "./table.ts";
import { toYaml } from "./yaml.ts";

/**
 * The template of every stack; options are its parameters.
 *
 * @example
 * ```ts
 * import { stackTemplate } from 'zae-limiter/infra';
 * const { Resources } = stackTemplate();
 * console.log(Resources.LimiterTable?.Type); // AWS::DynamoDB::Table
 * ```
 */
export function stackTemplate(variant?: TableVariant): CfnTemplate {
  return {
    AWSTemplateFormatVersion: "2010-09-09",
    Description: "zae-limiter: a table for rate limits, and what counts and archives its changes",
    Parameters: PARAMETERS,
    Conditions: CONDITIONS,
    Resources: {
      [TABLE]: tableResource(variant),
      ...AGGREGATOR_RESOURCES,
      ...PROVISIONER_RESOURCES,
      ...POLICY_RESOURCES,
      ...ROLE_RESOURCES,
      ...ALARM_RESOURCES,
      ...DASHBOARD_RESOURCES,
    },
    Outputs: OUTPUTS,
  };
}

/**
 * The template as text.
 *
 * @example
 * ```ts
 * import { printTemplate, stackTemplate } from 'zae-limiter/infra';
 * const yaml = printTemplate(stackTemplate(), 'yaml');
 * console.log(yaml.split('\n')[0]); // AWSTemplateFormatVersion: "2010-09-09"
 * ```
 */
export function printTemplate(template: CfnTemplate, format: "yaml" | "json"): string {
  if (format === "json") return `${JSON.stringify(template, undefined, 2)}\n`;
  return toYaml(template);
}

/** As short as it can be, to be sent. */
export function compactTemplate(template: object): string {
  return JSON.stringify(template);
}
