/**
 * A gate before an engine of DynamoDB: it asks about every request what IAM would be asked, answers
 * the refused ones as AWS would, and lets the others through. The engine, like all local ones,
 * would allow every action to every principal.
 */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Access, accessesOf } from "./accesses.ts";

export interface Gate {
  readonly endpoint: string;
  /** Everything that was asked for, in order. */
  readonly accesses: readonly Access[];
  /** The principal of the next requests. */
  admit(judge: (access: Access) => boolean): void;
  close(): Promise<void>;
}

/** Allows every request until a principal is set. */
export async function openGate(target: string, tableArn: string): Promise<Gate> {
  const accesses: Access[] = [];
  let judge: (access: Access) => boolean = () => true;
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await bytesOf(request);
    const operation = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
    const asked = accessesOf(operation, JSON.parse(body.toString() || "{}"), tableArn);
    accesses.push(...asked);
    const refused = asked.find((access) => !judge(access));
    if (refused !== undefined) return refuse(response, refused);
    const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
    const passed = await fetch(target, { method: "POST", headers: headers as never, body });
    response.writeHead(passed.status, {
      "content-type": passed.headers.get("content-type") ?? "application/x-amz-json-1.0",
      ...(passed.headers.has("x-amz-crc32") && {
        "x-amz-crc32": passed.headers.get("x-amz-crc32") ?? "",
      }),
    });
    response.end(Buffer.from(await passed.arrayBuffer()));
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: Error) => {
      response.writeHead(500).end(error.message);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accesses,
    admit: (next) => {
      judge = next;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function refuse(response: ServerResponse, { action, resource }: Access): void {
  response.writeHead(400, { "content-type": "application/x-amz-json-1.0" }).end(
    JSON.stringify({
      __type: "com.amazon.coral.service#AccessDeniedException",
      Message: `User is not authorized to perform: ${action} on resource: ${resource}`,
    }),
  );
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
