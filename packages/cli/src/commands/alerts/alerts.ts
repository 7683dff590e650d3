/** `alerts`: percentages of quotas that were used, and their delivery. */

import { once } from "node:events";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import type { StoredAlert } from "@zae-limiter/limiter/records/alerts/alert-item.ts";
import type { SignedWebhook } from "@zae-limiter/limiter/records/alerts/webhooks.ts";
import { type Call, type Group, leaf } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { interruptible } from "../../terminal/interruption.ts";
import { shownAmount, wholeNumber } from "../../terminal/numbers.ts";
import { table } from "../../terminal/table.ts";
import { readOrSay } from "../gateway/gateway-upstreams.ts";

const ALERT_SHAPE = {
  id: "text",
  entity_id: "text",
  resource: "text",
  limit_name: "text",
  limit: "text",
  percent: "number",
  used: "number",
  granted: "number",
  period_start_ms: "number",
  period_end_ms: "number",
  at_ms: "number",
  delivery: "object",
} as const;

interface ListOptions {
  readonly entity?: string;
  readonly state?: "open" | "ended";
  readonly limit: number;
}

const list = leaf<ListOptions>({
  name: "list",
  summary: "lists alerts, the newest first",
  store: "read",
  options: [
    { flags: "-e, --entity <id>", text: "only those of this entity" },
    {
      flags: "--state <state>",
      text: "open: waiting to be delivered; ended: delivered, or given up",
      choices: ["open", "ended"],
    },
    { flags: "--limit <n>", text: "at most this many", default: 50, parse: wholeNumber(1, 10_000) },
  ],
  examples: ["alerts list", "alerts list --entity team-a --state open"],
  json: { alerts: [ALERT_SHAPE] },
  run: async ({ options, open, terminal }) => {
    const { entity, state, limit } = options;
    const query = {
      limit,
      ...(entity === undefined ? {} : { entityId: entity }),
      ...(state === undefined ? {} : { state }),
    };
    const alerts = await (await open("read")).alerts.list(query);
    return {
      json: () => ({ alerts: alerts.map(alertJson) }),
      text: async () => {
        if (alerts.length === 0) return "There are no alerts";
        const head = [
          "written (UTC)",
          "entity",
          "resource",
          "limit",
          "percent",
          "used",
          "delivery",
        ];
        return table(head, alerts.map(alertRow), terminal.palette.title);
      },
    };
  },
});

interface RunOptions {
  readonly once?: boolean;
  readonly config?: string;
}

const run = leaf<RunOptions>({
  name: "run",
  summary: "delivers alerts to the webhooks of a namespace, until it is ended",
  details:
    "A gateway does that itself. Any number of senders may run: each alert is delivered at least " +
    "once to each webhook, always with the same id, and is given up after a day.",
  store: "change",
  options: [
    { flags: "--once", text: "delivers what is due now, and ends" },
    {
      flags: "--config <file>",
      text: "a gateway's file, whose webhooks count besides stored ones",
    },
  ],
  examples: ["alerts run --name my-app", "alerts run --once --config upstreams.yaml"],
  json: "object",
  run: (call) => interruptible(call.terminal, (signal) => deliver(call, signal)),
});

export const alerts: Group = {
  name: "alerts",
  summary: "percentages of quotas that were used, and their webhooks",
  commands: [list, run],
};

async function deliver(call: Call<RunOptions>, signal: AbortSignal) {
  const { terminal, json, note } = call;
  const webhooks = await webhooksOf(call);
  const repository = await call.open("change");
  const command = call.hint("alerts", "webhook", "set", "<name>", "<url>");
  const { AlertSender } = await import("@zae-limiter/gateway/alerts/sender.ts");
  const tell = (text: string) => terminal.out(`${json ? JSON.stringify({ text }) : text}\n`);
  const sender = new AlertSender(repository, { tell, webhooks });
  const isSilent = webhooks.length === 0 && (await repository.webhooks.list()).length === 0;
  if (isSilent) note(`There is no webhook yet: ${command}`);
  if (call.options.once === true) {
    await sender.deliver();
    return { code: EXIT.ok };
  }
  sender.start();
  if (!signal.aborted) await once(signal, "abort");
  await sender.stop();
  return { code: EXIT.ok };
}

/** Returns the webhooks of the file that the options name. */
async function webhooksOf(call: Call<RunOptions>): Promise<readonly SignedWebhook[]> {
  const { config } = call.options;
  if (config === undefined) return [];
  const { parseWebhooks } = await import("@zae-limiter/gateway/upstreams-file.ts");
  const read = (text: string) => parseWebhooks(text, call.terminal.env);
  return readOrSay(config, call, "nothing was delivered", read);
}

function alertRow(alert: StoredAlert): string[] {
  const { atMs, entityId, resource, limitName, percent, used, granted, delivery } = alert;
  const state = delivery.state === "open" ? (delivery.problem ?? "open") : delivery.state;
  return [
    new Date(atMs).toISOString().slice(0, 16).replace("T", " "),
    entityId,
    resource,
    limitName,
    `${percent} %`,
    `${shownAmount(limitName, used)} of ${shownAmount(limitName, granted)}`,
    state.replace("_", " "),
  ];
}

function alertJson(alert: StoredAlert): JsonValue {
  const { delivery } = alert;
  return {
    id: alert.id,
    entity_id: alert.entityId,
    resource: alert.resource,
    limit_name: alert.limitName,
    limit: alert.limit,
    percent: alert.percent,
    used: alert.used,
    granted: alert.granted,
    period_start_ms: alert.periodStartMs,
    period_end_ms: alert.periodEndMs,
    at_ms: alert.atMs,
    delivery: {
      state: delivery.state,
      ended_at_ms: delivery.endedAtMs ?? null,
      attempts: delivery.attempts,
      delivered_to: delivery.deliveredTo,
      problem: delivery.problem ?? null,
    },
  };
}
