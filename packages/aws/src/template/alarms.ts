/** The alarms. Each one is sent to the topic. */

import { INDEX_NAMES } from "@zae-limiter/limiter/storage/table.ts";
import { attribute, type CfnResource, type CfnValue, choose, named, ref } from "./cfn.ts";
import { APPLICATION_TAG, TABLE } from "./table.ts";

const PERIOD_S = 300;
const ITERATOR_AGE_MS = 30_000;
/** The namespace of metrics that CloudWatch makes of the aggregator's log. */
const METRICS_NAMESPACE = "zae-limiter";

/** The operations that our clients send; AWS counts its own failures for each of them apart. */
const OPERATIONS = [
  "GetItem",
  "BatchGetItem",
  "Query",
  "PutItem",
  "UpdateItem",
  "TransactWriteItems",
];

const TOPIC = choose("HasSNSTopic", ref("AlarmSNSTopicArn"), ref("AlarmTopic"));

interface Metric {
  readonly namespace: string;
  readonly name: string;
  readonly dimensions: Readonly<Record<string, CfnValue>>;
}

interface Alarm {
  readonly condition: string;
  readonly suffix: string;
  readonly description: string;
  readonly threshold: CfnValue;
  readonly periods?: number;
}

/** Returns an alarm; `more` has the metric and the comparison. */
function alarm(settings: Alarm, more: Readonly<Record<string, CfnValue>>): CfnResource {
  return {
    Type: "AWS::CloudWatch::Alarm",
    Condition: settings.condition,
    Properties: {
      AlarmName: named(settings.suffix),
      AlarmDescription: settings.description,
      EvaluationPeriods: settings.periods ?? 2,
      ComparisonOperator: "GreaterThanThreshold",
      Threshold: settings.threshold,
      TreatMissingData: "notBreaching",
      AlarmActions: [TOPIC],
      ...more,
    },
  };
}

function single(
  metric: Metric,
  statistic: "Sum" | "Average" | "Maximum",
): Record<string, CfnValue> {
  return { ...metricOf(metric), Statistic: statistic, Period: PERIOD_S };
}

/** Sums of several metrics, by their ids, and what is made of them. */
function computed(
  expression: string,
  metrics: Readonly<Record<string, Metric>>,
): Record<string, CfnValue> {
  return {
    Metrics: [
      { Id: "result", Expression: expression, ReturnData: true },
      ...Object.entries(metrics).map(([id, metric]) => ({
        Id: id,
        ReturnData: false,
        MetricStat: { Metric: metricOf(metric), Period: PERIOD_S, Stat: "Sum" },
      })),
    ],
  };
}

function metricOf({ namespace, name, dimensions }: Metric): Record<string, CfnValue> {
  const Dimensions = Object.entries(dimensions).map(([Name, Value]) => ({ Name, Value }));
  return { Namespace: namespace, MetricName: name, Dimensions };
}

function ofFunction(functionId: string, name: string): Metric {
  return { namespace: "AWS/Lambda", name, dimensions: { FunctionName: ref(functionId) } };
}

function ofTable(name: string, more: Readonly<Record<string, CfnValue>> = {}): Metric {
  return { namespace: "AWS/DynamoDB", name, dimensions: { TableName: ref(TABLE), ...more } };
}

/** Returns the rate of errors in percent; 0 where nothing was invoked. */
function errorRate(functionId: string): Record<string, CfnValue> {
  return computed("IF(invocations > 0, 100 * errors / invocations, 0)", {
    errors: ofFunction(functionId, "Errors"),
    invocations: ofFunction(functionId, "Invocations"),
  });
}

/** Returns the throttles: indexes are throttled on their own, and then hold up the table. */
function throttles(name: string): Record<string, CfnValue> {
  const indexes = INDEX_NAMES.map((index) => [
    index.toLowerCase(),
    ofTable(name, { GlobalSecondaryIndexName: index }),
  ]);
  return computed("SUM(METRICS())", { table: ofTable(name), ...Object.fromEntries(indexes) });
}

function systemErrors(): Record<string, CfnValue> {
  const metrics = OPERATIONS.map((operation) => [
    operation[0]?.toLowerCase() + operation.slice(1),
    ofTable("SystemErrors", { Operation: operation }),
  ]);
  return computed("SUM(METRICS())", Object.fromEntries(metrics));
}

const AGGREGATOR = { condition: "DeployAggregatorAlarms" } as const;
const ALWAYS = { condition: "DeployAlarms" } as const;

export const ALARM_RESOURCES: Readonly<Record<string, CfnResource>> = {
  AlarmTopic: {
    Type: "AWS::SNS::Topic",
    Condition: "CreateAlarmTopic",
    Properties: { TopicName: named("alarms"), Tags: [APPLICATION_TAG] },
  },
  AlarmSubscription: {
    Type: "AWS::SNS::Subscription",
    Condition: "SubscribeEmail",
    Properties: { TopicArn: ref("AlarmTopic"), Protocol: "email", Endpoint: ref("AlarmEmail") },
  },
  AggregatorDLQAlarm: alarm(
    {
      ...AGGREGATOR,
      suffix: "aggregator-dlq-alarm",
      description: "Changes were given up and wait in the dead-letter queue",
      threshold: 0,
      periods: 1,
    },
    single(
      {
        namespace: "AWS/SQS",
        name: "ApproximateNumberOfMessagesVisible",
        dimensions: { QueueName: attribute("AggregatorDLQ", "QueueName") },
      },
      "Maximum",
    ),
  ),
  LambdaErrorRateAlarm: alarm(
    {
      ...AGGREGATOR,
      suffix: "aggregator-error-rate",
      description: "More than 1 % of the invocations of the aggregator fail",
      threshold: 1,
    },
    errorRate("AggregatorFunction"),
  ),
  LambdaDurationAlarm: alarm(
    {
      ...AGGREGATOR,
      suffix: "aggregator-duration",
      description: "The aggregator comes near its timeout",
      threshold: ref("LambdaDurationThreshold"),
    },
    single(ofFunction("AggregatorFunction", "Duration"), "Average"),
  ),
  StreamIteratorAgeAlarm: alarm(
    {
      ...AGGREGATOR,
      suffix: "stream-iterator-age",
      description: "The aggregator is more than 30 seconds behind",
      threshold: ITERATOR_AGE_MS,
    },
    single(ofFunction("AggregatorFunction", "IteratorAge"), "Maximum"),
  ),
  AggregatorSkippedAlarm: alarm(
    {
      ...AGGREGATOR,
      suffix: "aggregator-skipped",
      description: "The aggregator gave up changes that can never be counted: its log says which",
      threshold: 0,
      periods: 1,
    },
    single(
      { namespace: METRICS_NAMESPACE, name: "skipped", dimensions: { Table: ref(TABLE) } },
      "Sum",
    ),
  ),
  ProvisionerErrorAlarm: alarm(
    {
      condition: "DeployProvisionerAlarms",
      suffix: "provisioner-errors",
      description: "Limits of a template could not be applied",
      threshold: 0,
      periods: 1,
    },
    single(ofFunction("ProvisionerFunction", "Errors"), "Sum"),
  ),
  DynamoDBReadThrottleAlarm: alarm(
    { ...ALWAYS, suffix: "read-throttle", description: "DynamoDB throttles reads", threshold: 1 },
    throttles("ReadThrottleEvents"),
  ),
  DynamoDBWriteThrottleAlarm: alarm(
    { ...ALWAYS, suffix: "write-throttle", description: "DynamoDB throttles writes", threshold: 1 },
    throttles("WriteThrottleEvents"),
  ),
  DynamoDBSystemErrorAlarm: alarm(
    { ...ALWAYS, suffix: "system-errors", description: "DynamoDB fails to answer", threshold: 1 },
    systemErrors(),
  ),
};

/** Their names are exported, with the condition each has. */
export const ALARM_OUTPUTS = [
  ["AggregatorDLQAlarm", "DLQAlarmName"],
  ["LambdaErrorRateAlarm", "LambdaErrorRateAlarmName"],
  ["LambdaDurationAlarm", "LambdaDurationAlarmName"],
  ["StreamIteratorAgeAlarm", "StreamIteratorAgeAlarmName"],
  ["AggregatorSkippedAlarm", "AggregatorSkippedAlarmName"],
  ["ProvisionerErrorAlarm", "ProvisionerErrorAlarmName"],
  ["DynamoDBReadThrottleAlarm", "ReadThrottleAlarmName"],
  ["DynamoDBWriteThrottleAlarm", "WriteThrottleAlarmName"],
  ["DynamoDBSystemErrorAlarm", "SystemErrorAlarmName"],
] as const;
