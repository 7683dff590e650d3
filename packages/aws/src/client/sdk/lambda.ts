/** The part of the AWS SDK for functions. Naming it lets the bundler drop the rest. */

export {
  GetFunctionCommand,
  InvokeCommand,
  LambdaClient,
  ListEventSourceMappingsCommand,
  TagResourceCommand,
  UpdateFunctionCodeCommand,
} from "@aws-sdk/client-lambda";
