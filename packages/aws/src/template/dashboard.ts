/** A CloudWatch dashboard of the table, the aggregator and what waits for it. */

import { type CfnResource, STACK_NAME, sub } from "./cfn.ts";

/**
 * A metric in the notation of CloudWatch: the namespace, the name, and dimensions by name and
 * value; a dot repeats the value of the previous metric.
 */
type Metric = readonly (string | { readonly stat: string })[];

interface Widget {
  readonly title: string;
  readonly stat: "Sum" | "Maximum" | "Average";
  readonly metrics: readonly Metric[];
}

// Names and not references: the aggregator need not be part of the stack.
const TABLE_NAME = ["TableName", `\${AWS::StackName}`];
const FUNCTION_NAME = ["FunctionName", `\${AWS::StackName}-\${AggregatorSuffix}`];
const QUEUE_NAME = ["QueueName", `\${AWS::StackName}-aggregator-dlq`];

const WIDGETS: readonly Widget[] = [
  {
    title: "Capacity units",
    stat: "Sum",
    metrics: [
      ["AWS/DynamoDB", "ConsumedWriteCapacityUnits", ...TABLE_NAME],
      [".", "ConsumedReadCapacityUnits", ".", "."],
    ],
  },
  {
    title: "Throttled",
    stat: "Sum",
    metrics: [
      ["AWS/DynamoDB", "WriteThrottleEvents", ...TABLE_NAME],
      [".", "ReadThrottleEvents", ".", "."],
    ],
  },
  {
    title: "Aggregator: delay and duration, ms",
    stat: "Maximum",
    metrics: [
      ["AWS/Lambda", "IteratorAge", ...FUNCTION_NAME],
      [".", "Duration", ".", "."],
    ],
  },
  {
    title: "Not counted",
    stat: "Sum",
    metrics: [
      ["AWS/Lambda", "Errors", ...FUNCTION_NAME],
      ["AWS/SQS", "ApproximateNumberOfMessagesVisible", ...QUEUE_NAME, { stat: "Maximum" }],
      ["zae-limiter", "skipped", "Table", `\${AWS::StackName}`],
    ],
  },
];

function body(): string {
  const widgets = WIDGETS.map((properties) => ({
    type: "metric",
    width: 12,
    properties: { ...properties, region: `\${AWS::Region}` },
  }));
  return JSON.stringify({ widgets });
}

export const DASHBOARD_RESOURCES: Readonly<Record<string, CfnResource>> = {
  Dashboard: {
    Type: "AWS::CloudWatch::Dashboard",
    Condition: "DeployDashboard",
    Properties: { DashboardName: STACK_NAME, DashboardBody: sub(body()) },
  },
};
