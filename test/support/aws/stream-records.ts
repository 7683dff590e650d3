/**
 * The records of a table's stream, as the engine writes them: the form in which Lambda has them.
 */

export interface StreamRecord {
  readonly eventID?: string;
  readonly eventName?: string;
  readonly dynamodb?: { readonly Keys?: Readonly<Record<string, unknown>> };
}

interface Answer {
  readonly Table?: { readonly LatestStreamArn: string };
  readonly StreamDescription?: { readonly Shards: readonly { readonly ShardId: string }[] };
  readonly ShardIterator?: string;
  readonly NextShardIterator?: string;
  readonly Records?: readonly StreamRecord[];
}

/** A local DynamoDB checks the form of a signature, not the signature. */
const AUTHORIZATION =
  "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, " +
  "SignedHeaders=host, Signature=0";

/** All that the stream holds now. */
export async function streamRecords(table: string, endpoint: string): Promise<StreamRecord[]> {
  const ask = async (target: string, body: object): Promise<Answer> => {
    const response = await fetch(endpoint, {
      method: "POST",
      headers: {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": target,
        "x-amz-date": "20260101T000000Z",
        authorization: AUTHORIZATION,
      },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${target}: ${await response.text()}`);
    return (await response.json()) as Answer;
  };
  const streams = (operation: string, body: object) =>
    ask(`DynamoDBStreams_20120810.${operation}`, body);
  const { Table } = await ask("DynamoDB_20120810.DescribeTable", { TableName: table });
  const StreamArn = Table?.LatestStreamArn;
  const { StreamDescription } = await streams("DescribeStream", { StreamArn });
  const records: StreamRecord[] = [];
  for (const { ShardId } of StreamDescription?.Shards ?? []) {
    const from = { StreamArn, ShardId, ShardIteratorType: "TRIM_HORIZON" };
    let next = (await streams("GetShardIterator", from)).ShardIterator;
    while (next !== undefined) {
      const page: Answer = await streams("GetRecords", { ShardIterator: next });
      records.push(...(page.Records ?? []));
      // No client writes meanwhile: an empty page is the end.
      next = (page.Records ?? []).length === 0 ? undefined : page.NextShardIterator;
    }
  }
  return records;
}
