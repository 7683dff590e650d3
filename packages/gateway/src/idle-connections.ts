/** Connections to one upstream, which are used again. */

import { Agent, type ClientRequest } from "node:http";
import { Agent as SecureAgent } from "node:https";
import type { Socket } from "node:net";

/** How node:http talks to an agent, and an agent to a request. */
interface Opening {
  addRequest(request: Assignable, options: object): void;
}
type Assignable = ClientRequest & { onSocket(socket: Socket): void };

/**
 * Returns an agent for the requests to one upstream. An agent of node:http looks for an idle
 * connection by a name that it makes of copies of all options, which takes a sixth of the time of a
 * request. Here all connections go to the same place, so the one used last is taken.
 */
export function agentFor(protocol: string): Agent {
  const agent = new (protocol === "https:" ? SecureAgent : Agent)({ keepAlive: true });
  const opening = agent as Agent & Opening;
  const open = opening.addRequest.bind(opening);
  const idle: Socket[] = [];
  const known = new WeakSet<Socket>();
  agent.removeAllListeners("free");
  agent.on("free", (socket: Socket) => {
    idle.push(socket);
    if (known.has(socket)) return;
    known.add(socket);
    // Without a listener, the error of an idle connection would end the process.
    socket.on("error", () => {});
    socket.on(
      "close",
      () => void idle.splice(0, idle.length, ...idle.filter((each) => each.writable)),
    );
  });
  opening.addRequest = (request, options) => {
    let socket = idle.pop();
    while (socket?.writable === false) socket = idle.pop();
    if (socket === undefined) return open(request, options);
    request.reusedSocket = true;
    request.onSocket(socket);
  };
  return agent;
}

/**
 * Whether a request failed on a connection that was idle before. The upstream has most likely
 * closed it just as it was used again; where the body is long, the write fails before the read.
 */
export function wasClosed(request: ClientRequest, { code }: NodeJS.ErrnoException): boolean {
  return request.reusedSocket && (code === "ECONNRESET" || code === "EPIPE");
}
