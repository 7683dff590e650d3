/** The part of the AWS SDK for the feed of changes. Naming it lets the bundler drop the rest. */

export {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
} from "@aws-sdk/client-dynamodb-streams";
