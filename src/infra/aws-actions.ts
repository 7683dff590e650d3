/** The requests to AWS that deploying takes, by the name IAM has for their permission. */

// Types only: an SDK is loaded when its first request is sent.
import type * as CloudFormation from "@aws-sdk/client-cloudformation";
import type * as DynamoDB from "@aws-sdk/client-dynamodb";
import type * as Lambda from "@aws-sdk/client-lambda";
import type * as Tagging from "@aws-sdk/client-resource-groups-tagging-api";
import type * as S3 from "@aws-sdk/client-s3";

interface Action<Input, Output> {
  readonly input: Input;
  readonly output: Output;
}

interface Actions {
  "cloudformation:DescribeStacks": Action<
    CloudFormation.DescribeStacksCommandInput,
    CloudFormation.DescribeStacksCommandOutput
  >;
  "cloudformation:DescribeStackEvents": Action<
    CloudFormation.DescribeStackEventsCommandInput,
    CloudFormation.DescribeStackEventsCommandOutput
  >;
  "cloudformation:GetTemplate": Action<
    CloudFormation.GetTemplateCommandInput,
    CloudFormation.GetTemplateCommandOutput
  >;
  "cloudformation:CreateChangeSet": Action<
    CloudFormation.CreateChangeSetCommandInput,
    CloudFormation.CreateChangeSetCommandOutput
  >;
  "cloudformation:DescribeChangeSet": Action<
    CloudFormation.DescribeChangeSetCommandInput,
    CloudFormation.DescribeChangeSetCommandOutput
  >;
  "cloudformation:ExecuteChangeSet": Action<
    CloudFormation.ExecuteChangeSetCommandInput,
    CloudFormation.ExecuteChangeSetCommandOutput
  >;
  "cloudformation:ListChangeSets": Action<
    CloudFormation.ListChangeSetsCommandInput,
    CloudFormation.ListChangeSetsCommandOutput
  >;
  "cloudformation:DeleteChangeSet": Action<
    CloudFormation.DeleteChangeSetCommandInput,
    CloudFormation.DeleteChangeSetCommandOutput
  >;
  "cloudformation:DeleteStack": Action<
    CloudFormation.DeleteStackCommandInput,
    CloudFormation.DeleteStackCommandOutput
  >;
  "dynamodb:DescribeTable": Action<
    DynamoDB.DescribeTableCommandInput,
    DynamoDB.DescribeTableCommandOutput
  >;
  "dynamodb:DeleteTable": Action<
    DynamoDB.DeleteTableCommandInput,
    DynamoDB.DeleteTableCommandOutput
  >;
  "lambda:GetFunction": Action<Lambda.GetFunctionCommandInput, Lambda.GetFunctionCommandOutput>;
  "lambda:UpdateFunctionCode": Action<
    Lambda.UpdateFunctionCodeCommandInput,
    Lambda.UpdateFunctionCodeCommandOutput
  >;
  "lambda:Invoke": Action<Lambda.InvokeCommandInput, Lambda.InvokeCommandOutput>;
  "lambda:TagResource": Action<Lambda.TagResourceCommandInput, Lambda.TagResourceCommandOutput>;
  "lambda:ListEventSourceMappings": Action<
    Lambda.ListEventSourceMappingsCommandInput,
    Lambda.ListEventSourceMappingsCommandOutput
  >;
  "s3:CreateBucket": Action<S3.CreateBucketCommandInput, S3.CreateBucketCommandOutput>;
  "s3:PutObject": Action<S3.PutObjectCommandInput, S3.PutObjectCommandOutput>;
  "s3:ListObjectVersions": Action<
    S3.ListObjectVersionsCommandInput,
    S3.ListObjectVersionsCommandOutput
  >;
  "s3:DeleteObjects": Action<S3.DeleteObjectsCommandInput, S3.DeleteObjectsCommandOutput>;
  "s3:DeleteBucket": Action<S3.DeleteBucketCommandInput, S3.DeleteBucketCommandOutput>;
  "tag:GetResources": Action<Tagging.GetResourcesCommandInput, Tagging.GetResourcesCommandOutput>;
}

export type ActionName = keyof Actions;
export type Input<Name extends ActionName> = Actions[Name]["input"];
export type Output<Name extends ActionName> = Actions[Name]["output"];

/** The part before the colon. */
export type ServiceName = ActionName extends `${infer Service}:${string}` ? Service : never;
