/** Reads an answer of DynamoDB: the output of a request, or the error that the SDK would throw. */

import { crc32 } from "node:zlib";
import { type HttpAnswer, headerOf } from "./exchange.ts";
import type { OperationName } from "./operations.ts";
import { type StoredAnswer, storedAnswerIn } from "./stored-item.ts";

/** The body was damaged on its way, or is not an answer of DynamoDB. */
class BrokenAnswer extends Error {
  override readonly name = "BrokenAnswer";
}

/** An error of DynamoDB with the fields that the SDK gives it. */
export interface ServiceError extends Error {
  readonly $fault: "client" | "server";
  readonly $metadata: {
    readonly httpStatusCode: number;
    readonly requestId: string | undefined;
    clockSkewCorrected?: boolean;
  };
}

type Fields = Record<string, unknown>;

/** The output of a request that went well; throws a `ServiceError` for one that did not. */
export function readAnswer(answer: HttpAnswer): Fields {
  const { status, headers, body } = answer;
  checkSum(headerOf(headers, "x-amz-crc32"), body);
  if (status < 300 && body.length === 0) throw new BrokenAnswer("the body is empty");
  if (status < 300) return storedItem(body) ?? present(parse(body));
  throw serviceError(answer);
}

function checkSum(header: string | undefined, body: Buffer): void {
  if (header === undefined || Number(header) === crc32(body)) return;
  throw new BrokenAnswer(`the body has the checksum ${crc32(body)}, but the server says ${header}`);
}

/** Reads the answer that nearly every write gets. */
function storedItem(body: Buffer): (Fields & StoredAnswer) | undefined {
  return storedAnswerIn(body.toString()) as (Fields & StoredAnswer) | undefined;
}

function parse(body: Buffer): Fields {
  if (body.length === 0) return {};
  const fields: unknown = JSON.parse(body.toString());
  if (typeof fields === "object" && fields !== null) return fields as Fields;
  throw new BrokenAnswer("the body is not an object");
}

/** The SDK leaves out what is null. */
function present(fields: Fields): Fields {
  for (const name of Object.keys(fields)) {
    if (fields[name] === null) delete fields[name];
  }
  return fields;
}

function serviceError({ status, headers, body }: HttpAnswer): ServiceError {
  const fields = errorFields(body);
  const { __type, Message, message = Message, ...rest } = fields;
  const code = __type ?? fields.code ?? fields.Code ?? headerOf(headers, "x-amzn-errortype");
  return Object.assign(new Error(String(message ?? "UnknownError")), {
    ...present(rest),
    name: nameIn(String(code ?? "Unknown")),
    $fault: status < 500 ? ("client" as const) : ("server" as const),
    $metadata: { httpStatusCode: status, requestId: headerOf(headers, "x-amzn-requestid") },
  });
}

/** A load balancer in between may answer in its own words; the status says enough then. */
function errorFields(body: Buffer): Fields {
  try {
    return parse(body);
  } catch {
    return { message: body.toString() };
  }
}

/** `com.amazonaws.dynamodb.v20120810#ThrottlingException:…` is a `ThrottlingException`. */
function nameIn(code: string): string {
  const [first = ""] = code.split(/[,:]/);
  return first.slice(first.indexOf("#") + 1);
}

/**
 * The field without which an answer says nothing. A proxy or a broken server may answer `200` with
 * an empty body: that is no answer, and must not be taken for "there is nothing".
 */
const REQUIRED: Readonly<Partial<Record<OperationName, string>>> = {
  BatchGetItem: "Responses",
  Query: "Items",
  Scan: "Items",
  TransactGetItems: "Responses",
};

/** An answer without the field that says what was found. */
export class EmptyAnswer extends Error {
  override readonly name = "EmptyAnswer";

  constructor(operation: OperationName) {
    super(`the answer to ${operation} has no ${REQUIRED[operation]}`);
  }
}

/** Whether an answer says what was found. */
export function isComplete(operation: OperationName, output: object): boolean {
  const field = REQUIRED[operation];
  return field === undefined || (output as Record<string, unknown>)[field] !== undefined;
}
