/** The entry point `zae-limiter/infra`: stacks on AWS, their template, and where they are. */

export { MigrationError, MigrationRunningError } from "../migrations/migration-error.ts";
export {
  type MigrationPlan,
  type MigrationReport,
  type PendingMigration,
  planMigrations,
  type RunOptions as MigrationOptions,
  rollbackMigrations,
  runMigrations,
} from "../migrations/migrations.ts";
export { type OpenTable, openTable } from "../migrations/open-table.ts";
export type { MigrationOutcome, MigrationProgress } from "../migrations/run.ts";
export type { AwsConnection } from "./aws.ts";
export type { ResourceChange } from "./change-set.ts";
export { deleteStack, type Teardown, type TeardownRequest } from "./delete.ts";
export { type Deployed, type DeployRequest, deployStack } from "./deploy.ts";
export { listLimiters } from "./discovery.ts";
export type { LambdaName } from "./function-names.ts";
export type { UploadedCode } from "./lambda-code.ts";
export { lambdaPackage } from "./lambda-package.ts";
export { LimiterInfo } from "./limiter-info.ts";
export type { DeployPlan, SettingChange } from "./plan.ts";
export type { StackEvent } from "./stack-events.ts";
export type { StackOptions } from "./stack-options.ts";
export { type StackStatus, stackStatus } from "./stack-status.ts";
export type { WrittenRecords } from "./table-records.ts";
export type {
  CfnOutput,
  CfnParameter,
  CfnResource,
  CfnTemplate,
  CfnValue,
} from "./template/cfn.ts";
export { printTemplate, stackTemplate } from "./template/template.ts";
export { type Upgraded, type UpgradeRequest, upgradeStack } from "./upgrade.ts";
export type { UpgradePlan } from "./upgrade-plan.ts";
