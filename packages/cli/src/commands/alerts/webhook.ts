/** `alerts webhook`: where the alerts of a namespace are delivered to. */

import type { Webhook } from "@zae-limiter/limiter/records/alerts/webhooks.ts";
import { CommandFailure, type Group, leaf } from "../../frame/command.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { table } from "../../terminal/table.ts";

interface SetOptions extends PrincipalOptions {
  readonly slack?: boolean;
  readonly allowPrivate?: boolean;
}

const NAME = { name: "<name>", text: "the name of the webhook, such as ops" } as const;
const SHAPE = {
  name: "text",
  url: "text",
  format: "text",
  allow_private: "true or false",
} as const;

const set = leaf<SetOptions>({
  name: "set",
  summary: "sets an address that alerts are posted to, and prints its secret",
  details:
    "The secret is new each time, and shown this once: receivers check with it that a message " +
    "came from here, as Standard Webhooks describes. Messages for Slack need no check.",
  arguments: [NAME, { name: "<url>", text: "an https address; redirects are not followed" }],
  store: "write",
  options: [
    { flags: "--slack", text: "posts the text of a message, for an incoming webhook of Slack" },
    {
      flags: "--allow-private",
      text: "the address may be in a private network or on this machine, also with http",
    },
    PRINCIPAL_OPTION,
  ],
  examples: [
    "alerts webhook set ops https://example.com/alerts",
    "alerts webhook set chat https://hooks.slack.com/services/T/B/X --slack",
  ],
  json: { ...SHAPE, secret: "text" },
  run: async ({ args, options, open }) => {
    const [name = "", url = ""] = args;
    const { slack = false, allowPrivate = false } = options;
    const spec = { url, format: slack ? "slack" : "json", allowPrivate } as const;
    const { secret } = await (await open("write")).webhooks.set(name, spec, principalOf(options));
    return {
      json: () => ({ ...webhookJson({ name, ...spec }), secret }),
      text: () =>
        slack
          ? `Alerts are posted to ${name}`
          : `Alerts are posted to ${name}. Its secret, shown this once:\n${secret}`,
    };
  },
});

const list = leaf({
  name: "list",
  summary: "lists webhooks, without their secrets",
  store: "read",
  examples: ["alerts webhook list"],
  json: { webhooks: [SHAPE] },
  run: async ({ open, terminal }) => {
    const webhooks = await (await open("read")).webhooks.list();
    return {
      json: () => ({ webhooks: webhooks.map(webhookJson) }),
      text: async () => {
        if (webhooks.length === 0) return "There are no webhooks";
        const rows = webhooks.map(({ name, url, format, allowPrivate }) => [
          name,
          url,
          format,
          allowPrivate ? "may be private" : "",
        ]);
        return table(["name", "address", "format", ""], rows, terminal.palette.title);
      },
    };
  },
});

const remove = leaf<PrincipalOptions>({
  name: "delete",
  summary: "removes a webhook",
  arguments: [NAME],
  store: "change",
  options: [PRINCIPAL_OPTION],
  examples: ["alerts webhook delete ops"],
  json: { name: "text", deleted: "true or false" },
  run: async ({ args, options, open }) => {
    const name = args[0] as string;
    const deleted = await (await open("change")).webhooks.delete(name, principalOf(options));
    if (!deleted) throw new CommandFailure(`There is no webhook ${name}`);
    return { json: () => ({ name, deleted }), text: () => `Removed the webhook ${name}` };
  },
});

export const webhook: Group = {
  name: "alerts webhook",
  summary: "addresses that alerts are posted to",
  commands: [set, list, remove],
};

function webhookJson({ name, url, format, allowPrivate }: Webhook) {
  return { name, url, format, allow_private: allowPrivate };
}
