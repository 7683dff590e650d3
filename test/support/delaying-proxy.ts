/** A network between a client and an engine on this machine: every byte takes its time. */

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface DelayingProxy {
  readonly endpoint: string;
  close(): Promise<void>;
}

/** Requests and answers are each held back for `delayMs`, in order. Port 0 is a free one. */
export async function delayingProxy(
  target: string,
  delayMs: number,
  port = 0,
): Promise<DelayingProxy> {
  const to = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(to.port), to.hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on("data", (bytes) => setTimeout(() => to.write(bytes), delayMs));
      from.on("close", () => {
        sockets.delete(from);
        // After the last bytes, which are still on their way.
        setTimeout(() => to.destroySoon(), delayMs);
      });
      from.on("error", () => to.destroy());
    }
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
