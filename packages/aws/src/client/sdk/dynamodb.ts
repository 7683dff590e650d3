/** The part of the AWS SDK for tables as a whole. Naming it lets the bundler drop the rest. */

export {
  DeleteTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
} from "@aws-sdk/client-dynamodb";
