// A store that costs nothing: it hands the first UpdateItem to an engine, and gives the answer of
// that to all that follow, as cheaply as it can. What is left is the client. Everything else, which
// is what comes before the measurement, goes to the engine.

import { request } from "node:http";
import { createServer } from "node:net";

const engine = new URL(process.argv[2]);
const HEAD_END = Buffer.from("\r\n\r\n");
const UPDATE = "DynamoDB_20120810.UpdateItem";
let canned;

function forward(head, body) {
  const headers = Object.fromEntries(
    head
      .split("\r\n")
      .slice(1)
      .map((line) => line.split(/: (.*)/s).slice(0, 2)),
  );
  return new Promise((resolve, reject) => {
    const { hostname, port } = engine;
    const sent = request({ hostname, port, method: "POST", path: "/", headers }, (answer) => {
      const chunks = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("end", () => resolve(answerOf(answer, Buffer.concat(chunks))));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

function answerOf({ statusCode, headers }, body) {
  const lines = ["x-amz-crc32", "date", "content-type"]
    .filter((name) => headers[name] !== undefined)
    .map((name) => `${name}: ${headers[name]}\r\n`);
  const head = `HTTP/1.1 ${statusCode} Answer\r\n${lines.join("")}content-length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

async function answer(head, body) {
  const isUpdate = head.includes(UPDATE);
  const bytes = await forward(head, body);
  if (isUpdate && bytes.includes("HTTP/1.1 200")) canned = bytes;
  return bytes;
}

/** Reads requests one after the other; nobody sends the next before the answer. */
function serve(socket) {
  let buffered = Buffer.alloc(0);
  socket.on("error", () => undefined);
  socket.on("data", (bytes) => {
    buffered = buffered.length === 0 ? bytes : Buffer.concat([buffered, bytes]);
    const end = buffered.indexOf(HEAD_END);
    if (end < 0) return;
    const head = buffered.latin1Slice(0, end);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    const total = end + HEAD_END.length + length;
    if (buffered.length < total) return;
    const body = buffered.subarray(end + HEAD_END.length, total);
    buffered = buffered.subarray(total);
    if (canned !== undefined && head.includes(UPDATE)) socket.write(canned);
    else void answer(head, body).then((reply) => socket.write(reply));
  });
}

const server = createServer({ noDelay: true }, serve);
server.listen(0, "127.0.0.1", () => process.send(server.address().port));
process.on("disconnect", () => process.exit());
