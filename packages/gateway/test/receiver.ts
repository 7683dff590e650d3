/** A receiver of webhooks on this machine, with a certificate that only tests trust. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { CERTIFICATE, PRIVATE_KEY } from "@zae-limiter/test-support/certificate.ts";

/** A request that came. */
export interface Received {
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export class Receiver {
  readonly received: Received[] = [];
  readonly port: number;
  readonly #close: () => Promise<void>;

  private constructor(port: number, close: () => Promise<void>) {
    this.port = port;
    this.#close = close;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  /** Starts one that answers requests by `answer`, by their number from 1; with 204 when absent. */
  static async start(
    answer: (response: ServerResponse, count: number) => void = (response) => {
      response.writeHead(204).end();
    },
    isTls = false,
  ): Promise<Receiver> {
    const handle = (request: IncomingMessage, response: ServerResponse) => {
      let body = "";
      request.setEncoding("utf8");
      request.on("data", (part: string) => {
        body += part;
      });
      request.on("end", () => {
        receiver.received.push({ headers: request.headers, body });
        answer(response, receiver.received.length);
      });
    };
    const server = isTls
      ? createTlsServer({ key: PRIVATE_KEY, cert: CERTIFICATE }, handle)
      : createServer(handle);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const receiver = new Receiver(port, async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    });
    return receiver;
  }

  close(): Promise<void> {
    return this.#close();
  }
}
