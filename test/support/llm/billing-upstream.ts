/**
 * A double of a provider that keeps its own bill, over real sockets. It bills as providers do: a
 * stream that is hung up costs what was generated so far, a plain call that is hung up costs all of
 * it, an error before any work costs nothing, and work whose answer gets lost is billed.
 *
 * A plan says what happens to a call; the call names its plan in its prompt, so that it is found
 * again however often, and through whichever client, the call is sent. Nothing here waits for time:
 * a call that is slow waits until the test releases it.
 */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import {
  type BilledApi,
  type BilledTokens,
  pendingResponse,
  streamedAnswer,
  type UsageWord,
  wholeAnswer,
} from "./billed-answers.ts";
import { compressed, cut, framed, type Piece, sendAll, sendJson } from "./billed-sending.ts";

/** The fate of one arrival of a call. `at` is the part of the answer's bytes sent before. */
export type Fate =
  | { readonly kind: "answer" }
  /** Waits for the test to release it; a plain call before its first byte. */
  | { readonly kind: "hold"; readonly at: number }
  /** Is silent from there on, until the caller gives up. */
  | { readonly kind: "stall"; readonly at: number }
  /** Resets the connection: before the answer where `at` is below 0, else within it. */
  | { readonly kind: "reset"; readonly at: number; readonly hasWorked: boolean }
  /** Closes a connection that was used before, as a server does that is done with waiting. */
  | { readonly kind: "close reused" }
  /** An error; with usage where some work was done for it. */
  | { readonly kind: "status"; readonly status: number; readonly hasUsage?: boolean }
  /** An error that repeats the credentials of the request, in a header and in its body. */
  | { readonly kind: "leak" }
  | { readonly kind: "redirect"; readonly to: string }
  /** Switches protocols, though it was not asked to. */
  | { readonly kind: "upgrade" };

export interface CallPlan {
  /** Tokens that the text of the prompt does not show: stored elsewhere. */
  readonly storedInput: number;
  readonly reasoning: number;
  readonly text: number;
  readonly usage: UsageWord;
  readonly lineEnd: "\n" | "\r" | "\r\n";
  readonly isCompressed: boolean;
  /** Fates of the first arrival, the second …; the last stays. */
  readonly fates: readonly Fate[];
}

export const PLAIN_PLAN: CallPlan = {
  storedInput: 0,
  reasoning: 0,
  text: 10,
  usage: "true",
  lineEnd: "\n",
  isCompressed: false,
  fates: [{ kind: "answer" }],
};

/** One arrival of a call, and what it costs. */
export interface Billed {
  readonly plan: string;
  readonly api: BilledApi;
  readonly fate: Fate;
  readonly isStream: boolean;
  /** Tokens of the prompt's text: what is stored elsewhere is not among them. */
  readonly prompt: number;
  input: number;
  /** Text and reasoning that were generated. */
  output: number;
  /** Whether the last byte of the answer was sent. */
  isComplete: boolean;
}

/** A request as it arrived. */
export interface ArrivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

const APIS: readonly (readonly [string, BilledApi])[] = [
  ["/chat/completions", "chat"],
  ["/responses", "responses"],
  ["/messages", "messages"],
  ["/embeddings", "embeddings"],
];
const PLAN_NAME = /plan-[a-z0-9]+/;
const BYTES_PER_TOKEN = 4;
/** Characters that are kept of a body, for tests that send many long ones. */
const KEPT_LENGTH = 20_000;

/** Returns a prompt of `tokens` tokens that names a plan. */
export function promptOf(plan: string, tokens: number): string {
  return `${plan} `.padEnd(tokens * BYTES_PER_TOKEN, "x");
}

export class BillingUpstream {
  readonly url: string;
  /** Every arrival for which work was done or might have been. */
  readonly bill: Billed[] = [];
  readonly arrived: ArrivedRequest[] = [];
  /** Models that `GET /v1/models` lists. */
  models: readonly string[] | undefined = ["gpt-4o", "claude-test", "text-embedding-3-small"];
  readonly #server: Server;
  readonly #plans = new Map<string, CallPlan>();
  readonly #arrivals = new Map<string, number>();
  readonly #sockets = new Set<Socket>();
  readonly #usedSockets = new WeakSet<Socket>();
  readonly #signals = new Map<string, Signal>();

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.on("request", (request, response) => void this.#serve(request, response));
    // An upgrade is answered as any other request.
    server.on("upgrade", (_, socket) => socket.destroy());
  }

  static async start(): Promise<BillingUpstream> {
    const server = createServer({ keepAliveTimeout: 0 });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new BillingUpstream(server);
  }

  /** Sets what happens to a call; `name` has the form `plan-1`. */
  plan(name: string, plan: Partial<CallPlan>): void {
    if (PLAN_NAME.exec(name)?.[0] !== name) throw new Error(`${name} cannot be found in a prompt`);
    this.#plans.set(name, { ...PLAIN_PLAN, ...plan });
    this.#arrivals.delete(name);
  }

  /** Resolves when a call holds or is silent: the answer has come as far as its plan says. */
  reached(plan: string): Promise<void> {
    return this.#signal(`reached ${plan}`).fired;
  }

  /** Lets a call that holds go on. */
  release(plan: string): void {
    this.#signal(`release ${plan}`).fire();
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  /** Returns how often a call arrived. */
  arrivalsOf(plan: string): number {
    return this.#arrivals.get(plan) ?? 0;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #signal(name: string): Signal {
    const signal = this.#signals.get(name) ?? new Signal();
    this.#signals.set(name, signal);
    return signal;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url: path = "/", headers, socket } = request;
    const wasUsed = this.#usedSockets.has(socket);
    this.#usedSockets.add(socket);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      // The caller has hung up before its request was complete: no work was done.
      return;
    }
    const body = Buffer.concat(chunks).toString();
    this.arrived.push({ method, path, headers, body: body.slice(0, KEPT_LENGTH) });
    if (method === "GET") return this.#serveGet(path, response);
    const api = APIS.find(([end]) => path.split("?", 1)[0]?.endsWith(end))?.[1];
    const name = PLAN_NAME.exec(body)?.[0];
    const plan = this.#plans.get(name ?? "");
    if (api === undefined || name === undefined || plan === undefined) {
      return void sendJson(response, 404, { error: { message: "unknown path or plan" } });
    }
    const arrival = this.arrivalsOf(name);
    this.#arrivals.set(name, arrival + 1);
    const fate = plan.fates[Math.min(arrival, plan.fates.length - 1)] ?? { kind: "answer" };
    const fields = JSON.parse(body) as Fields;
    const tokens = {
      input: inputTokens(api, fields) + plan.storedInput,
      reasoning: api === "embeddings" ? 0 : plan.reasoning,
      text: api === "embeddings" ? 0 : plan.text,
    };
    const call = { name, plan, api, fate, fields, tokens, request, response };
    if (fate.kind === "close reused" && wasUsed) return void socket.destroy();
    if (isAnsweredAtOnce(fate)) this.#answerAtOnce(call, fate);
    else await this.#work(call);
  }

  #serveGet(path: string, response: ServerResponse): void {
    if (path.endsWith("/models")) {
      const data = (this.models ?? []).map((id) => ({
        id,
        object: "model",
        created: 1,
        owned_by: "us",
      }));
      return void sendJson(response, 200, { object: "list", data });
    }
    const id = /\/responses\/resp_(plan-[a-z0-9]+)$/.exec(path)?.[1] ?? "";
    const billed = this.bill.find(({ plan, api }) => plan === id && api === "responses");
    const plan = this.#plans.get(id);
    if (billed === undefined || plan === undefined) {
      return void sendJson(response, 404, { error: { message: "no such response" } });
    }
    const tokens = { input: billed.input, reasoning: plan.reasoning, text: plan.text };
    sendJson(response, 200, wholeAnswer("responses", `resp_${id}`, "gpt-4o", tokens, plan.usage));
  }

  /** Answers without work; an error that says it had some is billed by its usage. */
  #answerAtOnce(call: Call, fate: AtOnce): void {
    const { request, response, tokens } = call;
    const { authorization = "", "x-api-key": key = "" } = request.headers;
    switch (fate.kind) {
      case "upgrade":
        request.socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: odd\r\n");
        request.socket.write("Connection: upgrade\r\n\r\nodd bytes");
        return;
      case "redirect":
        response.writeHead(307, { location: fate.to }).end();
        return;
      case "leak": {
        const message = `Incorrect API key provided: ${authorization}${key}`;
        response.setHeader("x-echoed", `${authorization}${key}`);
        return void sendJson(response, 400, { error: { message, type: "invalid_request_error" } });
      }
      case "status": {
        const error = { error: { message: "The model failed", type: "server_error" } };
        // Clients that repeat a call do so at once.
        response.setHeader("retry-after-ms", "1");
        if (fate.hasUsage !== true) return void sendJson(response, fate.status, error);
        this.#begin(call).output = tokens.reasoning + tokens.text;
        const answer = wholeAnswer(call.api, "failed", "m", tokens) as { usage: object };
        return void sendJson(response, fate.status, { ...error, usage: answer.usage });
      }
    }
  }

  #begin({ name, plan, api, fate, fields, tokens }: Call): Billed {
    const isStream = fields["stream"] === true;
    const { input } = tokens;
    const prompt = input - plan.storedInput;
    const billed = { plan: name, api, fate, isStream, prompt, input, output: 0, isComplete: false };
    this.bill.push(billed);
    return billed;
  }

  async #work(call: Call): Promise<void> {
    const { name, plan, api, fate, fields, tokens, request, response } = call;
    const whole = tokens.reasoning + tokens.text;
    if (fate.kind === "reset" && fate.at < 0) {
      if (fate.hasWorked) this.#begin(call).output = whole;
      request.socket.resetAndDestroy();
      return;
    }
    const billed = this.#begin(call);
    const model = typeof fields["model"] === "string" ? fields["model"] : "gpt-4o";
    const id = `resp_${name}`;
    if (billed.isStream && api !== "embeddings") {
      const options = fields["stream_options"] as Fields | undefined;
      const asks = options?.["include_usage"] === true;
      const events = streamedAnswer(api, id, model, tokens, plan.usage, asks);
      const pieces = events.map(({ data, tokens: cost }) => {
        return { bytes: framed(data, plan.lineEnd, api !== "chat"), tokens: cost };
      });
      return this.#send(call, billed, pieces, "text/event-stream; charset=utf-8");
    }
    // A plain answer is made to its end, whether or not there is a reader.
    billed.output = whole;
    if (fields["background"] === true) {
      billed.isComplete = true;
      return void sendJson(response, 200, pendingResponse(id, model, "queued"));
    }
    const text = JSON.stringify(wholeAnswer(api, id, model, tokens, plan.usage));
    await this.#send(call, billed, [{ bytes: Buffer.from(text), tokens: 0 }], "application/json");
  }

  /** Sends an answer piece by piece, as far as its fate lets it come. */
  async #send(call: Call, billed: Billed, all: Piece[], type: string): Promise<void> {
    const { plan, fate, request, response } = call;
    const pieces = plan.isCompressed ? compressed(all) : all;
    // A plain call that holds has not answered yet.
    const holdsFirst = fate.kind === "hold" && !billed.isStream;
    if (holdsFirst) await this.#pause(call);
    const encoding = plan.isCompressed ? { "content-encoding": "gzip" } : {};
    response.writeHead(200, { "content-type": type, ...encoding });
    response.flushHeaders();
    const [before, after] = holdsFirst || !("at" in fate) ? [pieces, []] : cut(pieces, fate.at);
    await sendAll(response, billed, before);
    if (fate.kind === "reset") return void request.socket.resetAndDestroy();
    if (after.length > 0) await this.#pause(call);
    await sendAll(response, billed, after);
    billed.isComplete = !response.destroyed;
    response.end();
  }

  async #pause({ name, fate, response }: Call): Promise<void> {
    if (response.destroyed) return;
    const closed = new Promise<void>((resolve) => response.once("close", resolve));
    this.#signal(`reached ${name}`).fire();
    const released = fate.kind === "stall" ? closed : this.#signal(`release ${name}`).fired;
    await Promise.race([closed, released]);
  }
}

type Fields = Readonly<Record<string, unknown>>;
type AtOnce = Extract<Fate, { kind: "status" | "leak" | "redirect" | "upgrade" }>;

interface Call {
  readonly name: string;
  readonly plan: CallPlan;
  readonly api: BilledApi;
  readonly fate: Fate;
  readonly fields: Fields;
  readonly tokens: BilledTokens;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Fires once; later listeners are called at once. */
class Signal {
  fire: () => void = () => {};
  readonly fired = new Promise<void>((resolve) => {
    this.fire = resolve;
  });
}

function isAnsweredAtOnce(fate: Fate): fate is AtOnce {
  return ["status", "leak", "redirect", "upgrade"].includes(fate.kind);
}

/** Returns the tokens of the texts in a prompt. */
function inputTokens(api: BilledApi, fields: Fields): number {
  const prompt = api === "chat" || api === "messages" ? fields["messages"] : fields["input"];
  const texts = typeof prompt === "string" ? [prompt] : textsIn(prompt);
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

function textsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (typeof value === "string") return [value];
  const { content, text } = (value ?? {}) as Fields;
  return [...textsOf(content), ...textsOf(text)];
}

function textsOf(value: unknown): string[] {
  return value === undefined ? [] : textsIn(value);
}
