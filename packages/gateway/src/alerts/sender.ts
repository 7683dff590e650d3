/**
 * Delivers alerts to the webhooks of a namespace: at least once each, always with the same id. Any
 * number of senders may run. An alert that a webhook has not taken within a day is given up.
 */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import type { StoredAlert } from "@zae-limiter/limiter/records/alerts/alert-item.ts";
import { AlertQueue } from "@zae-limiter/limiter/records/alerts/alert-queue.ts";
import { readWebhooks, type SignedWebhook } from "@zae-limiter/limiter/records/alerts/webhooks.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { bodyOf } from "./message.ts";
import { type PostOptions, post } from "./post.ts";
import { signedHeaders } from "./signature.ts";

const EVERY_MS = 5000;
/** How long a namespace without webhooks is left alone. */
const WITHOUT_MS = 60_000;
const DAY_MS = 86_400_000;
const AT_ONCE = 8;
const PROBLEM_MAX = 300;

export interface AlertSenderOptions extends Omit<PostOptions, "timer"> {
  readonly timer?: Timer;
  /** Webhooks besides those that the namespace stores; a stored one of the same name wins. */
  readonly webhooks?: readonly SignedWebhook[];
  /** Gets a line for each alert that is delivered or given up, and each attempt that fails. */
  readonly tell: (line: string) => void;
}

export class AlertSender {
  readonly #repository: Repository;
  readonly #queue: AlertQueue;
  readonly #options: AlertSenderOptions;
  readonly #timer: Timer;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #problem = "";
  #pauseMs = EVERY_MS;

  constructor(repository: Repository, options: AlertSenderOptions) {
    const { records, timer } = repository[INTERNALS];
    this.#repository = repository;
    this.#queue = new AlertQueue(records);
    this.#options = options;
    this.#timer = options.timer ?? timer;
  }

  /** Delivers what is due, every five seconds until it is stopped; without webhooks each minute. */
  start(): void {
    this.#running = this.#run();
  }

  /** Ends after the attempt under way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.deliver();
        this.#problem = "";
      } catch (error) {
        const { message } = error as Error;
        if (message !== this.#problem) this.#options.tell(`Cannot deliver alerts: ${message}`);
        this.#problem = message;
      }
      await this.#timer.sleep(this.#pauseMs, signal, true);
    }
  }

  /** Delivers what is due, and returns how many alerts that were. */
  async deliver(): Promise<number> {
    const stored = await readWebhooks(this.#repository[INTERNALS].records);
    const isOwn = ({ name }: SignedWebhook) => stored.every((webhook) => webhook.name !== name);
    const webhooks = [...stored, ...(this.#options.webhooks ?? []).filter(isOwn)];
    this.#pauseMs = webhooks.length === 0 ? WITHOUT_MS : EVERY_MS;
    if (webhooks.length === 0) return 0;
    let count = 0;
    for (;;) {
      const due = await this.#queue.due(AT_ONCE);
      const claims = await Promise.all(due.map((alert) => this.#queue.claim(alert)));
      const claimed = claims.filter((alert) => alert !== undefined);
      if (claimed.length === 0) return count;
      await Promise.all(claimed.map((alert) => this.#attempt(alert, webhooks)));
      count += claimed.length;
    }
  }

  async #attempt(alert: StoredAlert, webhooks: readonly SignedWebhook[]): Promise<void> {
    const { clock } = this.#repository[INTERNALS];
    const { id, delivery } = alert;
    if (clock() - alert.atMs >= DAY_MS) {
      const { deliveredTo } = delivery;
      await this.#queue.attempted(alert, { deliveredTo, state: "given_up" });
      return this.#options.tell(`Gave up ${id}: not delivered within a day`);
    }
    const missing = webhooks.filter(({ name }) => !delivery.deliveredTo.includes(name));
    const problems = await Promise.all(missing.map((webhook) => this.#post(alert, webhook)));
    const reached = missing.filter((_, at) => problems[at] === undefined);
    const deliveredTo = [...delivery.deliveredTo, ...reached.map(({ name }) => name)];
    const found = problems.find((each) => each !== undefined);
    const state = found === undefined ? "delivered" : "open";
    const problem = found?.slice(0, PROBLEM_MAX);
    await this.#queue.attempted(alert, { deliveredTo, problem, state });
    for (const { name } of reached) this.#options.tell(`Delivered ${id} to ${name}`);
  }

  async #post(alert: StoredAlert, webhook: SignedWebhook): Promise<string | undefined> {
    const { clock } = this.#repository[INTERNALS];
    const { url, allowPrivate, secret, format, name } = webhook;
    const body = bodyOf(alert, this.#repository.namespaceName, format);
    const headers = signedHeaders(secret, alert.id, body, clock());
    const { tell, webhooks, ...options } = this.#options;
    const how = { ...options, timer: this.#timer };
    const problem = await post({ url, allowPrivate, headers, body }, how);
    if (problem === undefined) return undefined;
    tell(`${name} did not take ${alert.id}: ${problem}`);
    return `${name}: ${problem}`;
  }
}
