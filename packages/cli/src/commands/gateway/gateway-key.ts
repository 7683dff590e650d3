/** `gateway key`: the keys that clients of a gateway use. */

import { createKey, findKeys, listKeys, type StoredKey } from "@zae-limiter/gateway/keys.ts";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import { CommandFailure, type Group, leaf, UsageError } from "../../frame/command.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { table } from "../../terminal/table.ts";

interface CreateOptions extends PrincipalOptions {
  readonly entity: string;
  readonly displayName?: string;
  readonly expires?: number;
  readonly createEntity?: boolean;
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const KEY_SHAPE = {
  id: "text",
  entity_id: "text",
  hint: "text",
  name: "text or null",
  expires_at: "text or null",
  created_at: "text or null",
};

const create = leaf<CreateOptions>({
  name: "create",
  summary: "makes a key and shows it once",
  details:
    "Only the hash of the key is stored. The entity must exist: a mistyped one would have none " +
    "of the limits that were meant.",
  store: "write",
  options: [
    { flags: "-e, --entity <id>", text: "the entity that calls count for", required: true },
    { flags: "--create-entity", text: "create the entity where it does not exist" },
    { flags: "--display-name <name>", text: "a name for people" },
    {
      flags: "--expires <when>",
      text: "after 30m, 12h or 90d, or at a date; default: never",
      parse: expiryOf,
    },
    PRINCIPAL_OPTION,
  ],
  examples: [
    "gateway key create --entity team-a",
    "gateway key create --entity team-a --create-entity",
    "gateway key create --entity team-a --display-name laptop --expires 90d",
  ],
  json: { key: "text", ...KEY_SHAPE },
  run: async ({ options, open }) => {
    const { entity, displayName, expires, createEntity } = options;
    const repository = await open("write");
    if (createEntity !== true && (await repository.entities.get(entity)) === undefined) {
      throw new CommandFailure(
        `There is no entity "${entity}". Check the id, or pass --create-entity to create it`,
      );
    }
    const more = { ...principalOf(options), ...defined({ name: displayName }) };
    const made = await createKey(repository, entity, expires, more);
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
              ["key", "name", "entity", "expires", "id"],
              keys.map(({ hint, name = "", entityId, id, ...key }) => [
                `${hint}…`,
                name,
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
  arguments: [
    { name: "<key>", text: "the key itself, or its id, name or beginning from `gateway key list`" },
  ],
  store: "change",
  options: [PRINCIPAL_OPTION],
  examples: ["gateway key revoke laptop", "gateway key revoke zael-AbCdE"],
  json: { id: "text" },
  run: async ({ args, options, open }) => {
    const repository = await open("change");
    const [key, ...others] = await findKeys(repository, args[0] as string);
    if (key === undefined) {
      throw new CommandFailure("There is no such key; `gateway key list` shows all of them");
    }
    if (others.length > 0) throw ambiguous([key, ...others]);
    const { id } = key;
    await repository.entities.delete(id, principalOf(options));
    return { json: () => ({ id }), text: () => `Revoked ${id}` };
  },
});

/** Makes the failure for several keys with the same name or beginning, whose ids differ. */
function ambiguous(keys: readonly StoredKey[]): CommandFailure {
  const candidates = keys.map(({ id, hint, name = "without a name", entityId }) => {
    return `${id} (${hint}…, ${name}, counts for ${entityId})`;
  });
  return new CommandFailure(
    `${keys.length} keys match. Revoke one of them by its id: ${candidates.join("; ")}`,
  );
}

export const gatewayKey: Group = {
  name: "gateway key",
  summary: "keys of clients of a gateway",
  commands: [create, list, revoke],
};

function keyJson({ id, entityId, hint, name, expiresMs, createdAt }: StoredKey) {
  return {
    id,
    entity_id: entityId,
    hint,
    name: name ?? null,
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
