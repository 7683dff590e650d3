/** The common parts of both Lambdas. */

import { FUNCTION_SUFFIXES, type LambdaName } from "../lambda/function-names.ts";
import { type CfnResource, type CfnValue, choose, ref, sub } from "./cfn.ts";

/** The newest that AWS keeps up to date for years to come. */
export const RUNTIME = "nodejs22.x";

/**
 * The placeholder until `deploy` uploads the code, when the stack is complete. Batches that fail
 * here are delivered again. The text must never change: CloudFormation would replace the uploaded
 * code by it.
 */
export const STAND_IN =
  'exports.handler=async()=>{throw new Error("The code is not there yet: run zae-limiter deploy")};';

interface LambdaSettings {
  readonly condition: string;
  readonly name: CfnValue;
  readonly role: CfnValue;
  readonly logGroup: string;
  readonly memory: CfnValue;
  readonly timeout: CfnValue;
  readonly codeCondition: string;
  readonly codeKey: string;
  readonly variables: Readonly<Record<string, CfnValue>>;
  readonly tracing?: CfnValue;
}

export function lambdaResource(settings: LambdaSettings): CfnResource {
  return {
    Type: "AWS::Lambda::Function",
    Condition: settings.condition,
    // Otherwise the first invocation makes a log group that never deletes logs.
    DependsOn: settings.logGroup,
    Properties: {
      FunctionName: settings.name,
      Runtime: RUNTIME,
      Handler: "index.handler",
      Architectures: [ref("LambdaArchitecture")],
      MemorySize: settings.memory,
      Timeout: settings.timeout,
      Role: settings.role,
      Code: choose(
        settings.codeCondition,
        { S3Bucket: ref("LambdaCodeBucket"), S3Key: ref(settings.codeKey) },
        { ZipFile: STAND_IN },
      ),
      Environment: { Variables: settings.variables },
      TracingConfig: settings.tracing === undefined ? undefined : { Mode: settings.tracing },
    },
  };
}

/** Returns the name that `functionNameOf` computes from the name of the stack. */
export function functionName(lambda: LambdaName): CfnValue {
  return sub(nameText(lambda));
}

export function logGroupResource(condition: string, lambda: LambdaName): CfnResource {
  return {
    Type: "AWS::Logs::LogGroup",
    Condition: condition,
    DeletionPolicy: "Delete",
    UpdateReplacePolicy: "Delete",
    Properties: {
      LogGroupName: sub(`/aws/lambda/${nameText(lambda)}`),
      RetentionInDays: ref("LogRetentionDays"),
    },
  };
}

function nameText(lambda: LambdaName): string {
  return `\${AWS::StackName}-\${${FUNCTION_SUFFIXES[lambda].parameter}}`;
}
