/** Questions to IAM about a request to DynamoDB: actions, resources and partition keys. */

/** One question: may the caller do this? */
export interface Access {
  readonly action: string;
  readonly resource: string;
  /** Value of `dynamodb:LeadingKeys`; `undefined` if a request names no partition key. */
  readonly leadingKeys: readonly string[] | undefined;
}

interface Key {
  readonly PK?: { readonly S?: string };
}

/** The parts of requests that matter here. */
interface Request {
  readonly IndexName?: string;
  readonly Key?: Key;
  readonly Item?: Key;
  readonly KeyConditionExpression?: string;
  readonly ExpressionAttributeValues?: Readonly<Record<string, { readonly S?: string }>>;
  readonly RequestItems?: Readonly<Record<string, unknown>>;
  readonly TransactItems?: readonly Readonly<Record<string, Request>>[];
}

interface WriteRequest {
  readonly PutRequest?: { readonly Item: Key };
  readonly DeleteRequest?: { readonly Key: Key };
}

/** Transactions are no action of their own: each part is asked for as if it came alone. */
const TRANSACTION_ACTIONS: Readonly<Record<string, string>> = {
  Get: "GetItem",
  Put: "PutItem",
  Update: "UpdateItem",
  Delete: "DeleteItem",
  ConditionCheck: "ConditionCheckItem",
};

/** The questions that a request leads to. */
export function accessesOf(operation: string, body: unknown, tableArn: string): Access[] {
  const request = body as Request;
  if (request.TransactItems !== undefined) {
    return request.TransactItems.flatMap((item) =>
      Object.entries(item).map(([kind, part]) =>
        access(TRANSACTION_ACTIONS[kind] ?? kind, tableArn, keysOf(part)),
      ),
    );
  }
  if (operation === "Query") {
    const resource = request.IndexName === undefined ? "" : `/index/${request.IndexName}`;
    return [access(operation, tableArn + resource, [partitionOf(request)])];
  }
  if (request.RequestItems !== undefined) {
    return Object.values(request.RequestItems).map((part) =>
      access(operation, tableArn, batchKeys(part)),
    );
  }
  const keys = keysOf(request);
  return [access(operation, tableArn, keys.length === 0 ? undefined : keys)];
}

function access(action: string, resource: string, leadingKeys: Access["leadingKeys"]): Access {
  return { action: `dynamodb:${action}`, resource, leadingKeys };
}

function keysOf({ Key, Item }: Request): string[] {
  return [Key ?? Item].flatMap((key) => (key?.PK?.S === undefined ? [] : [key.PK.S]));
}

function batchKeys(part: unknown): string[] {
  if (Array.isArray(part)) {
    return (part as WriteRequest[]).flatMap(({ PutRequest, DeleteRequest }) =>
      keysOf({ Key: PutRequest?.Item ?? DeleteRequest?.Key ?? {} }),
    );
  }
  return (part as { Keys: Key[] }).Keys.flatMap((key) => keysOf({ Key: key }));
}

/** The first equality of a key condition is that of the partition. */
function partitionOf(request: Request): string {
  const placeholder = /=\s*(:\w+)/.exec(request.KeyConditionExpression ?? "")?.[1] ?? "";
  const value = request.ExpressionAttributeValues?.[placeholder]?.S;
  if (value === undefined) throw new Error(`no partition in ${request.KeyConditionExpression}`);
  return value;
}
