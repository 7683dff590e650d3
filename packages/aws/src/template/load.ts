/** The template of a stack for load tests: one function, its role and its logs. */

import { attribute, type CfnParameter, type CfnTemplate, named, ref, sub } from "./cfn.ts";
import { BOUNDARY_IS_ARN, isSet } from "./conditions.ts";
import { allow, lambdaRole, TABLE_ACTIONS, tableKeyUse, writeLogs } from "./iam.ts";
import { RUNTIME, STAND_IN } from "./lambda.ts";

const ARN = `arn:\${AWS::Partition}:dynamodb:\${AWS::Region}:\${AWS::AccountId}:table/\${TableName}`;

/** The actions of a scenario on the table: all of limiters, and no scans. */
const ACTIONS = [...TABLE_ACTIONS, "BatchWriteItem"];

function text(Description: string, Default = ""): CfnParameter {
  return { Type: "String", Description, Default };
}

function number(Description: string, Default: number): CfnParameter {
  return { Type: "Number", Description, Default };
}

/** Returns a template in which nothing runs, or costs anything, while no test runs. */
export function loadTemplate(): CfnTemplate {
  return {
    AWSTemplateFormatVersion: "2010-09-09",
    Description: "zae-limiter: workers for load tests of a table",
    Parameters: {
      TableName: text("Table that is tested"),
      KMSKeyArn: text("Key of the table; empty means the keys of AWS"),
      PermissionBoundary: text("Name or ARN of the boundary of the role"),
      LambdaMemorySize: number("Megabytes; 1769 are one processor", 1769),
      LambdaTimeout: number("Seconds", 120),
    },
    Conditions: {
      HasKMSKey: isSet("KMSKeyArn"),
      HasPermissionBoundary: isSet("PermissionBoundary"),
      PermissionBoundaryIsArn: BOUNDARY_IS_ARN,
    },
    Resources: {
      WorkerLogGroup: {
        Type: "AWS::Logs::LogGroup",
        DeletionPolicy: "Delete",
        UpdateReplacePolicy: "Delete",
        Properties: {
          LogGroupName: sub(`/aws/lambda/\${AWS::StackName}-worker`),
          RetentionInDays: 7,
        },
      },
      WorkerRole: {
        Type: "AWS::IAM::Role",
        Properties: lambdaRole("worker", [
          writeLogs("WorkerLogGroup"),
          allow({
            sid: "UseTable",
            actions: ACTIONS,
            resource: [sub(ARN), sub(`${ARN}/index/*`)],
          }),
          tableKeyUse("write"),
        ]),
      },
      WorkerFunction: {
        Type: "AWS::Lambda::Function",
        // Otherwise the first invocation makes a log group that never deletes logs.
        DependsOn: "WorkerLogGroup",
        Properties: {
          FunctionName: named("worker"),
          Runtime: RUNTIME,
          Handler: "index.handler",
          Architectures: ["arm64"],
          MemorySize: ref("LambdaMemorySize"),
          Timeout: ref("LambdaTimeout"),
          Role: attribute("WorkerRole", "Arn"),
          Code: { ZipFile: STAND_IN },
        },
      },
    },
    Outputs: {
      FunctionName: { Description: "Workers", Value: ref("WorkerFunction") },
      TableName: { Description: "Table that is tested", Value: ref("TableName") },
    },
  };
}
