/**
 * A client that asks one server for the same small answer, over connections that stay open. It costs
 * a fraction of what a general client costs: the server must be what limits the throughput.
 */

import { once } from "node:events";
import { connect } from "node:net";

const REQUEST = Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
const STATUS_LINE = Buffer.from("HTTP/1.1 200 ");
const END_OF_HEAD = Buffer.from("\r\n\r\n");

export class KeepAliveClient {
  #port;
  #connections;
  #sockets = [];

  constructor(endpoint, connections) {
    this.#port = Number(new URL(endpoint).port);
    this.#connections = connections;
  }

  /** Opens the connections anew: a server closes those that have been idle for some seconds. */
  async open() {
    this.close();
    this.#sockets = await Promise.all(
      Array.from({ length: this.#connections }, async () => {
        const socket = connect(this.#port, "127.0.0.1");
        await once(socket, "connect");
        return socket.setNoDelay(true);
      }),
    );
  }

  /** Makes so many requests of each connection, one at a time; tells `took` how long each took. */
  async ask(each, took) {
    await Promise.all(this.#sockets.map((socket) => asks(socket, each, took)));
  }

  close() {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets = [];
  }
}

function asks(socket, count, took) {
  return new Promise((resolve, reject) => {
    let left = count;
    let askedAt = 0;
    const ask = () => {
      if (took !== undefined) askedAt = performance.now();
      socket.write(REQUEST);
    };
    const closed = () => reject(new Error("The server closed a connection"));
    const read = (answer) => {
      // These servers write an answer at once; one in pieces would be a change of what is measured.
      if (answer.indexOf(STATUS_LINE) !== 0 || answer.indexOf(END_OF_HEAD) < 0) {
        reject(new Error(`The server answered ${answer.toString("latin1")}`));
        return;
      }
      took?.((performance.now() - askedAt) * 1000);
      left -= 1;
      if (left > 0) return ask();
      socket.off("data", read).off("close", closed);
      resolve();
    };
    socket.on("data", read).on("close", closed);
    ask();
  });
}
