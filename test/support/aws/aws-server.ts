/**
 * AWS on a socket, as far as commands ask for it: each request gets the answer a test has for it.
 */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The text of an answer and its status; 200 when absent. */
export interface Answer {
  readonly status?: number;
  readonly body: string;
}

export interface StackSketch {
  readonly name: string;
  readonly status: string;
  readonly created?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly parameters?: Readonly<Record<string, string>>;
}

const NOT_HERE: Answer = {
  status: 400,
  body: JSON.stringify({ __type: "ResourceNotFoundException", message: "not here" }),
};

export class AwsServer {
  readonly asked: string[] = [];
  /** Answers by operation, such as `DescribeStacks`; several are given one after the other. */
  answers: Record<string, Answer | readonly Answer[] | undefined> = {};
  /** Called for every request before it is answered. */
  onRequest: ((operation: string) => void) | undefined;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<AwsServer> {
    const server = createServer((request, response) => {
      void aws.#answer(request, response);
    });
    const aws = new AwsServer(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return aws;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Forgets what was asked, and has no answer any more. */
  reset(): void {
    this.answers = {};
    this.asked.length = 0;
    this.onRequest = undefined;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** The last of several answers stays. */
  #next(operation: string): Answer {
    const [answer = NOT_HERE, ...more] = [this.answers[operation] ?? []].flat();
    if (more.length > 0) this.answers[operation] = more;
    return answer;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request) text += String(chunk);
    const target = String(request.headers["x-amz-target"] ?? "").split(".")[1];
    const operation = target ?? new URLSearchParams(text).get("Action") ?? request.url ?? "";
    this.asked.push(operation);
    this.onRequest?.(operation);
    const { status = 200, body } = this.#next(operation);
    response.writeHead(status, { "content-type": "application/x-amz-json-1.0" }).end(body);
  }
}

export function describeStacks(...stacks: readonly StackSketch[]): Answer {
  const members = stacks.map(
    ({ name, status, created = "2026-01-02T03:04:05Z", tags = {}, parameters = {} }) =>
      `<member><StackId>arn:aws:cloudformation:us-east-1:1:stack/${name}/1</StackId>` +
      `<StackName>${name}</StackName><StackStatus>${status}</StackStatus>` +
      `<CreationTime>${created}</CreationTime>` +
      `<Tags>${list(tags, "Key", "Value")}</Tags>` +
      `<Parameters>${list(parameters, "ParameterKey", "ParameterValue")}</Parameters></member>`,
  );
  return result("DescribeStacks", `<Stacks>${members.join("")}</Stacks>`);
}

/** A change set of a stack `demo`, in a state. */
export function changeSet(status: string, reason = ""): Record<string, Answer> {
  const id = "<StackId>arn:aws:cloudformation:us-east-1:1:stack/demo/1</StackId>";
  return {
    CreateChangeSet: result("CreateChangeSet", `<Id>arn:change-set</Id>${id}`),
    DescribeChangeSet: result(
      "DescribeChangeSet",
      `<Status>${status}</Status><StatusReason>${reason}</StatusReason><Changes/>`,
    ),
    ExecuteChangeSet: result("ExecuteChangeSet", ""),
    DeleteChangeSet: result("DeleteChangeSet", ""),
    ListChangeSets: result(
      "ListChangeSets",
      `<Summaries><member><ChangeSetId>arn:change-set</ChangeSetId>${id}</member></Summaries>`,
    ),
    DeleteStack: { body: "<DeleteStackResponse/>" },
    DescribeStackEvents: result("DescribeStackEvents", "<StackEvents/>"),
  };
}

export function noStack(name: string): Answer {
  return failure(400, "ValidationError", `Stack with id ${name} does not exist`);
}

export function failure(status: number, code: string, message: string): Answer {
  const error = `<Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error>`;
  return { status, body: `<ErrorResponse>${error}</ErrorResponse>` };
}

function result(operation: string, content: string): Answer {
  const inner = `<${operation}Result>${content}</${operation}Result>`;
  return { body: `<${operation}Response>${inner}</${operation}Response>` };
}

function list(record: Readonly<Record<string, string>>, key: string, value: string): string {
  return Object.entries(record)
    .map(([name, text]) => `<member><${key}>${name}</${key}><${value}>${text}</${value}></member>`)
    .join("");
}
