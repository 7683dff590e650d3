/** The facts that discovery returns about a deployed limiter. */

const HEALTHY_STATUSES: readonly string[] = ["CREATE_COMPLETE", "UPDATE_COMPLETE"];

/**
 * A deployed limiter: its names, its versions, and the state of its stack.
 *
 * @example
 * ```ts
 * import { LimiterInfo } from 'zae-limiter/infra';
 * const info = new LimiterInfo({
 *   stackName: 'my-app', userName: 'my-app', region: 'us-east-1',
 *   stackStatus: 'UPDATE_ROLLBACK_IN_PROGRESS', creationTime: '2025-01-01T00:00:00Z',
 * });
 * console.log(info.isHealthy, info.isInProgress, info.isFailed); // false true true
 * ```
 */
export class LimiterInfo {
  /** The name of the stack in CloudFormation. */
  readonly stackName: string;
  /** The name the user knows it by: the stack's, without the prefix of very old versions. */
  readonly userName: string;
  readonly region: string;
  /** As CloudFormation says it, such as `CREATE_COMPLETE`. */
  readonly stackStatus: string;
  /** `YYYY-MM-DDTHH:MM:SSZ`. */
  readonly creationTime: string;
  /** `YYYY-MM-DDTHH:MM:SSZ`; `undefined` when it was never updated. */
  readonly lastUpdatedTime: string | undefined;
  /** The version of the package that deployed it, by its tag. */
  readonly version: string | undefined;
  /** The version of the aggregator, by its tag. */
  readonly lambdaVersion: string | undefined;
  /** The schema version of the table, by its tag. */
  readonly schemaVersion: string | undefined;
  /** The kind of stack, by its tag: `limiter`, or the kind of a load test. */
  readonly stackType: string | undefined;

  constructor(fields: {
    stackName: string;
    userName: string;
    region: string;
    stackStatus: string;
    creationTime: string;
    lastUpdatedTime?: string | undefined;
    version?: string | undefined;
    lambdaVersion?: string | undefined;
    schemaVersion?: string | undefined;
    stackType?: string | undefined;
  }) {
    this.stackName = fields.stackName;
    this.userName = fields.userName;
    this.region = fields.region;
    this.stackStatus = fields.stackStatus;
    this.creationTime = fields.creationTime;
    this.lastUpdatedTime = fields.lastUpdatedTime;
    this.version = fields.version;
    this.lambdaVersion = fields.lambdaVersion;
    this.schemaVersion = fields.schemaVersion;
    this.stackType = fields.stackType;
    Object.freeze(this);
  }

  /** Whether the last operation on the stack succeeded. */
  get isHealthy(): boolean {
    return HEALTHY_STATUSES.includes(this.stackStatus);
  }

  /** Whether an operation is under way. */
  get isInProgress(): boolean {
    return this.stackStatus.includes("IN_PROGRESS");
  }

  /** Whether an operation failed; while it is rolled back, it is in progress too. */
  get isFailed(): boolean {
    return this.stackStatus.includes("FAILED") || this.stackStatus.includes("ROLLBACK");
  }
}
