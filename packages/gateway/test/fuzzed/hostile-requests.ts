/** Requests that no honest client sends, as bytes, drawn from a seed. */

import { bodyFor } from "../attacked-gateway.ts";

export interface Hostile {
  readonly bytes: Buffer;
  /** Whether the gateway can answer: the request has an end, or is refused before it. */
  readonly isWhole: boolean;
}

/** The inputs from which a request is drawn. */
interface Source {
  readonly random: () => number;
  /** A key that is valid. */
  readonly key: string;
  /** A plan that answers at once. */
  readonly plan: string;
}

export interface HostileKind {
  /** How many of a thousand requests. */
  readonly share: number;
  draw(source: Source): Hostile;
}

const CHAT = "/v1/chat/completions";
const MIB = 1024 * 1024;

function number({ random }: Source, from: number, to: number): number {
  return from + Math.floor(random() * (to - from + 1));
}

function of<Value>({ random }: Source, values: readonly Value[]): Value {
  return values[Math.floor(random() * values.length)] as Value;
}

function whole(...parts: (string | Buffer)[]): Hostile {
  return { bytes: Buffer.concat(parts.map((part) => Buffer.from(part))), isWhole: true };
}

function open(...parts: (string | Buffer)[]): Hostile {
  return { ...whole(...parts), isWhole: false };
}

/** Returns the head of a request. */
function head(line: string, headers: readonly string[] = []): string {
  return `${[`${line} HTTP/1.1`, "Host: a", ...headers].join("\r\n")}\r\n\r\n`;
}

function auth({ key }: Source): string {
  return `Authorization: Bearer ${key}`;
}

/** Returns a call whose body is any text. */
function post(source: Source, body: string | Buffer, more: readonly string[] = []): Hostile {
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  return whole(head(`POST ${CHAT}`, [auth(source), length, ...more]), body);
}

const valid = (source: Source) => JSON.stringify(bodyFor(CHAT, source.plan));

const ESCAPES = [
  "%ff",
  "%20",
  "%C3%A9",
  "%2e",
  "%2f",
  "%00",
  ";",
  "//",
  "/..",
  "%25",
  "%",
  "é",
  "\\",
];
const METHODS = [
  "TRACE",
  "CONNECT",
  "OPTIONS",
  "PUT",
  "PATCH",
  "DELETE",
  "HEAD",
  "PROPFIND",
  "GET",
];
const PATHS = [
  CHAT,
  "/v1/messages",
  "/v1/responses",
  "/v1/files",
  "/v1/models",
  "/healthz",
  "*",
  "/",
];

export const HOSTILE: Readonly<Record<string, HostileKind>> = {
  "long paths": {
    share: 120,
    draw: (source) => {
      const part = of(
        source,
        ESCAPES.filter((each) => each !== "é"),
      );
      const path = `${of(source, ["/", CHAT])}${part.repeat(number(source, 1, 5000))}b`;
      const headers = source.random() < 0.5 ? [auth(source)] : [];
      return whole(head(`GET ${path}`, headers));
    },
  },
  "escaped paths": {
    share: 120,
    draw: (source) => {
      const at = number(source, 1, CHAT.length - 1);
      const path = CHAT.slice(0, at) + of(source, ESCAPES) + CHAT.slice(at);
      const body = valid(source);
      const length = `Content-Length: ${Buffer.byteLength(body)}`;
      return whole(head(`POST ${path}`, [auth(source), length]), body);
    },
  },
  "long headers": {
    share: 60,
    draw: (source) => {
      const name = of(source, ["x", "authorization", "cookie", "x-api-key", "connection"]);
      const value = of(source, ["a", " ", "\t", ",", "é"]).repeat(number(source, 1, 60_000));
      return whole(head(`POST ${CHAT}`, [`${name}: ${value}`, "Content-Length: 0"]));
    },
  },
  "headers without end": {
    share: 60,
    draw: (source) => open(`POST ${CHAT} HTTP/1.1\r\nx: ${"y".repeat(number(source, 0, 60_000))}`),
  },
  "many headers": {
    share: 40,
    draw: (source) => {
      const headers = Array.from({ length: number(source, 100, 900) }, (_, at) => `x-${at}: y`);
      return whole(head("GET /v1/models", [auth(source), ...headers]));
    },
  },
  "wrong lengths": {
    share: 100,
    draw: (source) => {
      const body = valid(source);
      const lengths = ["-1", "1e3", "99999999999999999999", "0x10", "12, 13", "5", "", "1000000"];
      const length = `Content-Length: ${of(source, lengths)}`;
      const second = source.random() < 0.3 ? ["Content-Length: 7"] : [];
      const chunked = source.random() < 0.3 ? ["Transfer-Encoding: chunked"] : [];
      return open(head(`POST ${CHAT}`, [auth(source), length, ...second, ...chunked]), body);
    },
  },
  "bad chunks": {
    share: 100,
    draw: (source) => {
      const chunks = [
        "zz\r\nabc\r\n",
        "ffffffffffffffff\r\nabc",
        "5;ext=1\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
        "3\r\nabcdef\r\n0\r\n\r\n",
        "0\r\n\r\nGET /v1/files HTTP/1.1\r\nHost: a\r\n\r\n",
        `1;${"x".repeat(20_000)}\r\na\r\n0\r\n\r\n`,
        "-1\r\n\r\n",
        "3\nabc\n0\n\n",
      ];
      const coding = of(source, ["chunked", "chunked, identity", "gzip, chunked", "xchunked"]);
      const headers = [auth(source), `Transfer-Encoding: ${coding}`];
      return open(head(`POST ${CHAT}`, headers), of(source, chunks));
    },
  },
  pipelined: {
    share: 50,
    draw: (source) => {
      const one = post(source, valid(source)).bytes;
      const odd = Buffer.from(head("GET /v1/files", [auth(source)]));
      return whole(...Array.from({ length: 8 }, () => of(source, [one, odd])));
    },
  },
  "unknown keys": {
    share: 80,
    draw: (source) => {
      const key = `zael-${Array.from({ length: 8 }, () => source.random().toString(36)).join("")}`;
      return whole(
        head("GET /v1/models", [`Authorization: Bearer ${key.slice(0, number(source, 5, 300))}`]),
      );
    },
  },
  "odd methods": {
    share: 60,
    draw: (source) => whole(head(`${of(source, METHODS)} ${of(source, PATHS)}`, [auth(source)])),
  },
  "method overrides": {
    share: 20,
    draw: (source) => {
      const name = of(source, ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"]);
      return whole(head(`GET ${CHAT}`, [auth(source), `${name}: POST`]));
    },
  },
  upgrades: {
    share: 40,
    draw: (source) => {
      const upgrade = of(source, ["websocket", "h2c", "TLS/1.0", "odd"]);
      const headers = [auth(source), "Connection: Upgrade", `Upgrade: ${upgrade}`];
      return whole(head(`${of(source, ["GET", "POST"])} ${CHAT}`, headers));
    },
  },
  "other protocols": {
    share: 40,
    draw: (source) =>
      open(
        of(source, [
          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
          "GET / HTTP/0.9\r\n\r\n",
          "GET /\r\n",
          "\u0016\u0003\u0001\u0002\u0000\u0001",
          "GET / HTTP/1.1\nHost: a\n\n",
          "\0\0\0\0\0\0",
        ]),
      ),
  },
  "absolute targets": {
    share: 20,
    draw: (source) => {
      const target = of(source, [
        "http://evil/v1/files",
        "//evil/v1/files",
        "http://a@b/x",
        "evil:1",
      ]);
      return whole(head(`GET ${target}`, [auth(source)]));
    },
  },
  "changed bytes": {
    share: 60,
    draw: (source) => {
      const { bytes } = post(source, valid(source));
      for (let changes = number(source, 1, 5); changes > 0; changes -= 1) {
        bytes[number(source, 0, bytes.length - 1)] = number(source, 0, 255);
      }
      return { bytes, isWhole: false };
    },
  },
  "deep bodies": {
    share: 15,
    draw: (source) => post(source, `{"a":`.repeat(number(source, 100, 20_000))),
  },
  "odd bodies": {
    share: 50,
    draw: (source) =>
      post(
        source,
        of(source, [
          "",
          "null",
          "[]",
          '"text"',
          "{",
          '{"model":1}',
          '{"model":"gpt-4o","model":{}}',
          '{"__proto__":{"model":"gpt-4o"}}',
          `{"model":"${"x".repeat(5000)}"}`,
          '{"model":"gpt-4o","messages":{"length":1e9}}',
          '{"model":"gpt-4o","max_tokens":1e308,"messages":[]}',
          Buffer.from([0x7b, 0xff, 0xfe, 0x7d]).toString("latin1"),
        ]),
      ),
  },
  "many keys": {
    share: 3,
    draw: (source) => post(source, `{${'"a":0,'.repeat(number(source, 60_000, 600_000))}"b":0}`),
  },
  "two million keys": {
    share: 1,
    draw: (source) => post(source, `{${'"a":0,'.repeat(2_000_000)}"b":0}`),
  },
  "long texts": {
    share: 1,
    draw: (source) => post(source, `{"model":"gpt-4o","input":"${"\\\\".repeat(MIB)}"}`),
  },
};
