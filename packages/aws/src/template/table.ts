/** The table, as `storage/table.ts` describes it. */

import {
  INDEXES,
  type IndexDefinition,
  TTL_ATTRIBUTE,
} from "@zae-limiter/limiter/storage/table.ts";
import { type CfnResource, type CfnValue, choose, onlyIf, ref, STACK_NAME } from "./cfn.ts";

/** The logical id of the table. */
export const TABLE = "LimiterTable";

/** Marks what is ours, in the consoles of AWS. */
export const APPLICATION_TAG: CfnValue = { Key: "Application", Value: "zae-limiter" };

/**
 * The policy that a stack keeps its data when it is deleted. Only a table that was never used,
 * because the creation of its stack failed, is deleted: it would block the next attempt.
 */
export const KEEP_DATA = {
  DeletionPolicy: "RetainExceptOnCreate",
  UpdateReplacePolicy: "Retain",
} as const satisfies Partial<CfnResource>;

/** Parts of a table that AWS cannot change in place. */
export interface TableShape {
  readonly AttributeDefinitions: CfnValue;
  readonly KeySchema: CfnValue;
  readonly GlobalSecondaryIndexes: CfnValue;
  readonly LocalSecondaryIndexes?: CfnValue;
}

/** How a table differs from the one that we make. */
export interface TableVariant {
  /** The shape of a table that another tool has created, which has to stay as it is. */
  readonly shape?: TableShape;
  /** It was there before its stack: not even a creation that fails may take it along. */
  readonly isKept?: boolean;
}

export function tableResource({ shape = ourShape(), isKept }: TableVariant = {}): CfnResource {
  return {
    Type: "AWS::DynamoDB::Table",
    ...KEEP_DATA,
    ...(isKept === true ? ({ DeletionPolicy: "Retain" } as const) : {}),
    Properties: {
      TableName: STACK_NAME,
      BillingMode: "PAY_PER_REQUEST",
      ...shape,
      StreamSpecification: { StreamViewType: "NEW_AND_OLD_IMAGES" },
      TimeToLiveSpecification: { AttributeName: TTL_ATTRIBUTE, Enabled: true },
      PointInTimeRecoverySpecification: {
        PointInTimeRecoveryEnabled: true,
        RecoveryPeriodInDays: onlyIf("HasPITRRecoveryPeriod", ref("PITRRecoveryPeriodDays")),
      },
      DeletionProtectionEnabled: choose("ProtectTable", true, false),
      SSESpecification: onlyIf("HasKMSKey", {
        SSEEnabled: true,
        SSEType: "KMS",
        KMSMasterKeyId: ref("KMSKeyArn"),
      }),
      Tags: [APPLICATION_TAG],
    },
  };
}

function ourShape(): TableShape {
  const attributes = ["PK", "SK", ...INDEXES.flatMap(({ partition, sort }) => [partition, sort])];
  return {
    AttributeDefinitions: attributeDefinitions(attributes),
    KeySchema: keySchema("PK", "SK"),
    GlobalSecondaryIndexes: INDEXES.map((index) =>
      index.name === "GSI2"
        ? indexDefinition(index, ref("GSI2Projection"))
        : indexDefinition(index),
    ),
  };
}

/** Returns the definitions of attributes, which are all texts. */
export function attributeDefinitions(names: readonly string[]): readonly CfnValue[] {
  return names.map((name) => ({ AttributeName: name, AttributeType: "S" }));
}

export function indexDefinition(
  { name, partition, sort, projection }: IndexDefinition,
  copied: CfnValue = projection,
): CfnValue {
  return {
    IndexName: name,
    KeySchema: keySchema(partition, sort),
    Projection: { ProjectionType: copied },
  };
}

function keySchema(partition: string, sort: string): CfnValue {
  return [
    { AttributeName: partition, KeyType: "HASH" },
    { AttributeName: sort, KeyType: "RANGE" },
  ];
}
