/** A receiver of webhooks on this machine, with a certificate that only tests trust. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";

/** Certifies `receiver.test`, a name that no server of the internet has. */
export const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBoTCCAUegAwIBAgIUUtPkmWn6X68qXo2s30XedlnT61QwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNcmVjZWl2ZXIudGVzdDAgFw0yNjExMTkwMTMzMTVaGA8yMTI2
MTAyNjAxMzMxNVowGDEWMBQGA1UEAwwNcmVjZWl2ZXIudGVzdDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABA87j5aXarJCh/Cb+QDawuA1eBKdqmg5Jt8VUUyMPgDq
IsZB7ErCi+BzLVWyul/MmJtUc5ezo25QRukPofc0R82jbTBrMB0GA1UdDgQWBBSl
EMZMyDoRXAjWy32U0XGcbGz6KTAfBgNVHSMEGDAWgBSlEMZMyDoRXAjWy32U0XGc
bGz6KTAPBgNVHRMBAf8EBTADAQH/MBgGA1UdEQQRMA+CDXJlY2VpdmVyLnRlc3Qw
CgYIKoZIzj0EAwIDSAAwRQIgOqUbT6XIXW80/rObI3W17y8RRdv9XLppEnu83Ioa
wR8CIQCgRnpO9gynpfuckEhmBP8qYF2b36pmrLqtBqLwHXJ0xw==
-----END CERTIFICATE-----`;
const PRIVATE_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg3aT266KnF2bT0Jdo
5mZwbLlm8a6Ev+fIxp8PtaX2h6+hRANCAAQPO4+Wl2qyQofwm/kA2sLgNXgSnapo
OSbfFVFMjD4A6iLGQexKwovgcy1VsrpfzJibVHOXs6NuUEbpD6H3NEfN
-----END PRIVATE KEY-----`;

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
