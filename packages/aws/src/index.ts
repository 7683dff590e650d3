/** The entry point `zae-limiter/infra`: stacks on AWS, their template, and where they are. */

export type { AwsConnection } from "./client/aws.ts";
export type { ResourceChange } from "./deploy/change-set.ts";
export { type Deployed, type DeployRequest, deployStack } from "./deploy/deploy.ts";
export type { DeployPlan, SettingChange } from "./deploy/plan.ts";
export { type Upgraded, type UpgradeRequest, upgradeStack } from "./deploy/upgrade.ts";
export type { UpgradePlan } from "./deploy/upgrade-plan.ts";
export type { LambdaName } from "./lambda/function-names.ts";
export type { UploadedCode } from "./lambda/lambda-code.ts";
export { lambdaPackage } from "./lambda/lambda-package.ts";
export { MigrationError, MigrationRunningError } from "./migrations/migration-error.ts";
export {
  type MigrationPlan,
  type MigrationReport,
  type OpenTable,
  openTable,
  type PendingMigration,
  planMigrations,
  type RunOptions as MigrationOptions,
  rollbackMigrations,
  runMigrations,
} from "./migrations/migrations.ts";
export type { MigrationOutcome, MigrationProgress } from "./migrations/run.ts";
export type { StackOptions } from "./options/stack-options.ts";
export { deleteStack, type Teardown, type TeardownRequest } from "./stack/delete.ts";
export { listLimiters } from "./stack/discovery.ts";
export { LimiterInfo } from "./stack/limiter-info.ts";
export type { StackEvent } from "./stack/stack-events.ts";
export { type StackStatus, stackStatus } from "./stack/stack-status.ts";
export type { WrittenRecords } from "./stack/table-records.ts";
export type {
  CfnOutput,
  CfnParameter,
  CfnResource,
  CfnTemplate,
  CfnValue,
} from "./template/cfn.ts";
export { printTemplate, stackTemplate } from "./template/template.ts";
