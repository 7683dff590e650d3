/** `gateway key`: the keys that clients of a gateway use. */

import { createKey, idOf, listKeys, type StoredKey } from "@zae-limiter/gateway/keys.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import { CommandFailure, type Group, leaf, UsageError } from "../../frame/command.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { table } from "../../terminal/table.ts";

interface CreateOptions extends PrincipalOptions {
  readonly entity: string;
  readonly expires?: number;
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const KEY_SHAPE = {
  id: "text",
  entity_id: "text",
  hint: "text",
  expires_at: "text or null",
  created_at: "text or null",
};

const create = leaf<CreateOptions>({
  name: "create",
  summary: "makes a key and shows it once",
  details: "Only the hash of the key is stored. The entity is created where it does not exist.",
  store: "write",
  options: [
    { flags: "-e, --entity <id>", text: "the entity that calls count for", required: true },
    {
      flags: "--expires <when>",
      text: "after 30m, 12h or 90d, or at a date; default: never",
      parse: expiryOf,
    },
    PRINCIPAL_OPTION,
  ],
  examples: [
    "gateway key create --entity team-a",
    "gateway key create --entity team-a --expires 90d",
  ],
  json: { key: "text", ...KEY_SHAPE },
  run: async ({ options, open }) => {
    const { entity, expires } = options;
    const made = await createKey(await open("write"), entity, expires, principalOf(options));
    return {
      json: () => ({ key: made.key, ...keyJson(made.stored) }),
      text: () => `${made.key}\nIt counts for ${entity}, and is not shown again.`,
    };
  },
});

const list = leaf<{ readonly entity?: string }>({
  name: "list",
  summary: "lists keys, without the keys themselves",
  store: "read",
  options: [{ flags: "-e, --entity <id>", text: "only keys of this entity" }],
  examples: ["gateway key list", "gateway key list --entity team-a"],
  json: { keys: [KEY_SHAPE] },
  run: async ({ options, open, terminal }) => {
    const keys = await listKeys(await open("read"), options.entity);
    return {
      json: () => ({ keys: keys.map(keyJson) }),
      text: async () =>
        keys.length === 0
          ? "There are no keys"
          : table(
              ["key", "entity", "expires", "id"],
              keys.map(({ hint, entityId, id, ...key }) => [
                `${hint}…`,
                entityId,
                expiryText(key.expiresMs) ?? "never",
                id,
              ]),
              terminal.palette.title,
            ),
    };
  },
});

const revoke = leaf<PrincipalOptions>({
  name: "revoke",
  summary: "ends a key; gateways that run follow within half a minute",
  arguments: [{ name: "<key>", text: "the key itself, or its id from `gateway key list`" }],
  store: "change",
  options: [PRINCIPAL_OPTION],
  examples: ["gateway key revoke zael-…"],
  json: { id: "text" },
  run: async ({ args, options, open }) => {
    const repository = await open("change");
    const id = idOf(args[0] as string);
    if ((await repository.entities.get(id)) === undefined) {
      throw new CommandFailure("There is no such key; `gateway key list` shows all of them");
    }
    await repository.entities.delete(id, principalOf(options));
    return { json: () => ({ id }), text: () => `Revoked ${id}` };
  },
});

export const gatewayKey: Group = {
  name: "gateway key",
  summary: "keys of clients of a gateway",
  commands: [create, list, revoke],
};

function keyJson({ id, entityId, hint, expiresMs, createdAt }: StoredKey) {
  return {
    id,
    entity_id: entityId,
    hint,
    expires_at: expiryText(expiresMs) ?? null,
    created_at: createdAt ?? null,
  };
}

function expiryText(expiresMs: number | undefined): string | undefined {
  return expiresMs === undefined ? undefined : new Date(expiresMs).toISOString();
}

/** Reads a duration from now, or a date, as epoch milliseconds. */
function expiryOf(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const nowMs = systemClock();
  const atMs = count === "" ? Date.parse(text) : nowMs + Number(count) * (UNIT_MS[unit] ?? 0);
  if (Number.isFinite(atMs) && atMs > nowMs) return atMs;
  throw new UsageError("expected a time like 30m, 12h or 90d, or a date that is still to come");
}
