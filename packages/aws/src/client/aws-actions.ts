/** The requests to AWS that deploying takes, by the name IAM has for their permission. */

import type {
  InputIn,
  OperationIn,
  OutputIn,
} from "@zae-limiter/limiter/storage/dynamodb/transport/sdk-command.ts";
// Types only: an SDK is loaded when its first request is sent.
import type * as CloudFormation from "./sdk/cloudformation.ts";
import type * as DynamoDB from "./sdk/dynamodb.ts";
import type * as Lambda from "./sdk/lambda.ts";
import type * as S3 from "./sdk/s3.ts";
import type * as Tagging from "./sdk/tagging.ts";

/** The modules of `./sdk` by service. */
interface Services {
  cloudformation: typeof CloudFormation;
  dynamodb: typeof DynamoDB;
  lambda: typeof Lambda;
  s3: typeof S3;
  tag: typeof Tagging;
}

/** The part of an action before the colon. */
export type ServiceName = keyof Services;

/** `DescribeStacksCommand` of CloudFormation is `cloudformation:DescribeStacks`, and so on. */
export type ActionName = {
  [Service in ServiceName]: `${Service}:${OperationIn<Services[Service]>}`;
}[ServiceName];

export type Input<Name extends ActionName> =
  Name extends `${infer Service extends ServiceName}:${infer Operation}`
    ? InputIn<Services[Service], Operation>
    : never;

export type Output<Name extends ActionName> =
  Name extends `${infer Service extends ServiceName}:${infer Operation}`
    ? OutputIn<Services[Service], Operation>
    : never;
