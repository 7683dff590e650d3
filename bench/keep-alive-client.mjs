/**
 * A client that asks one server for the same small answer, over connections that stay open. It costs
 * a fraction of what a general client costs: the server must be what limits the throughput.
 */

import { once } from "node:events";
import { connect } from "node:net";

const REQUEST = Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
const STATUS_LINE = Buffer.from("HTTP/1.1 200 ");
const END_OF_HEAD = Buffer.from("\r\n\r\n");
/** Answers here are some hundreds of bytes. */
const ANSWER_BYTES_MAX = 4096;

export class KeepAliveClient {
  #port;
  #connections;
  #asking = [];

  constructor(endpoint, connections) {
    this.#port = Number(new URL(endpoint).port);
    this.#connections = connections;
  }

  /** Opens the connections anew: a server closes those that have been idle for some seconds. */
  async open() {
    this.close();
    this.#asking = await Promise.all(
      Array.from({ length: this.#connections }, () => Asking.over(this.#port)),
    );
  }

  /**
   * Makes `count` requests, one at a time on each connection, and calls `took` with the time of
   * each. The connections share them, so that all are at work to the end.
   */
  async ask(count, took) {
    const work = { left: count, took };
    await Promise.all(this.#asking.map((asking) => asking.ask(work)));
  }

  close() {
    for (const asking of this.#asking) asking.close();
    this.#asking = [];
  }
}

/** One connection. It reads into one buffer, which costs half of what events with new ones do. */
class Asking {
  #socket;
  #work;
  #askedAt = 0;
  #resolve = () => {};
  #reject = () => {};

  static async over(port) {
    const asking = new Asking();
    const buffer = Buffer.alloc(ANSWER_BYTES_MAX);
    const callback = (bytes) => asking.#read(buffer.subarray(0, bytes));
    const socket = connect({ port, host: "127.0.0.1", onread: { buffer, callback } });
    await once(socket, "connect");
    asking.#socket = socket.setNoDelay(true);
    socket.on("close", () => asking.#reject(new Error("The server closed a connection")));
    return asking;
  }

  ask(work) {
    this.#work = work;
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#ask();
    });
  }

  close() {
    this.#socket.destroy();
  }

  #ask() {
    if (this.#work.left === 0) {
      this.#resolve();
      return;
    }
    this.#work.left -= 1;
    if (this.#work.took !== undefined) this.#askedAt = performance.now();
    this.#socket.write(REQUEST);
  }

  /** Returns whether to go on reading. */
  #read(answer) {
    // These servers write an answer at once; one in pieces would be a change of what is measured.
    if (answer.indexOf(STATUS_LINE) !== 0 || answer.indexOf(END_OF_HEAD) < 0) {
      this.#reject(new Error(`The server answered ${answer.toString("latin1")}`));
      return true;
    }
    this.#work.took?.((performance.now() - this.#askedAt) * 1000);
    this.#ask();
    return true;
  }
}
