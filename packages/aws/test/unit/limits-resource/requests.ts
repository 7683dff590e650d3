/** CloudFormation as a custom resource sees it: sends requests, and waits for the answer. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type {
  LimitsHandler,
  LimitsLambdaContext,
} from "@zae-limiter/aws/limits-resource/lambda.ts";

export const STACK_ID =
  "arn:aws:cloudformation:us-east-1:123456789012:stack/tenant/11111111-2222-3333-4444-555555555555";

/** A function next to a table on this machine, where these tests play CloudFormation. */
export const LOCAL_PLACE = { region: "us-east-1", endpoint: "http://127.0.0.1:8000" } as const;

/** A request that was put at the address of the answer. */
export interface Reply {
  readonly Status: "SUCCESS" | "FAILED";
  readonly Reason?: string;
  readonly PhysicalResourceId: string;
  readonly StackId: string;
  readonly RequestId: string;
  readonly LogicalResourceId: string;
  readonly Data?: Readonly<Record<string, string | number>>;
}

export interface Request {
  readonly type: "Create" | "Update" | "Delete";
  readonly properties?: Record<string, unknown>;
  readonly physicalId?: string | undefined;
  readonly logicalId?: string;
  readonly stackId?: string;
}

/** Answers each PUT with the next status; 200 when there is none. */
export class CloudFormation {
  readonly replies: Reply[] = [];
  readonly requests: { method: string | undefined; type: string | undefined; bytes: number }[] = [];
  statuses: number[] = [];
  readonly #server: Server;
  #count = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<CloudFormation> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks);
        const { method, headers } = request;
        cloudFormation.requests.push({ method, type: headers["content-type"], bytes: body.length });
        response.statusCode = cloudFormation.statuses.shift() ?? 200;
        if (response.statusCode === 200) {
          cloudFormation.replies.push(JSON.parse(body.toString()) as Reply);
        }
        response.end();
      });
    });
    const cloudFormation = new CloudFormation(server);
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return cloudFormation;
  }

  /** The request as it would be sent. */
  event(request: Request): Record<string, unknown> {
    this.#count += 1;
    const { port } = this.#server.address() as AddressInfo;
    return {
      RequestType: request.type,
      ResponseURL: `http://127.0.0.1:${port}/answer?signature=secret`,
      StackId: request.stackId ?? STACK_ID,
      RequestId: `request-${this.#count}`,
      ResourceType: "Custom::ZaeLimiterLimits",
      LogicalResourceId: request.logicalId ?? "TenantLimits",
      ...(request.physicalId === undefined ? {} : { PhysicalResourceId: request.physicalId }),
      ResourceProperties: request.properties ?? {},
    };
  }

  /** Sends a request, and hands out the answer. */
  async send(
    handler: LimitsHandler,
    request: Request,
    context?: LimitsLambdaContext,
  ): Promise<Reply> {
    const before = this.replies.length;
    await handler(this.event(request), context);
    const [reply, ...others] = this.replies.slice(before);
    if (reply === undefined || others.length > 0) throw new Error("expected exactly one answer");
    return reply;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}
