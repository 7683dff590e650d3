/** `entity`: the subjects of limits. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import { EntityNotFoundError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import { DEFAULT_RESOURCE } from "@zae-limiter/limiter/domain/names.ts";
import { CommandFailure, type Group, leaf, UsageError } from "../../frame/command.ts";
import { childrenOf, lostLimits, storedLevels } from "../../store/lost-limits.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { LEVEL_SHAPE, NOTHING_STORED } from "../../terminal/level-text.ts";
import { counted } from "../../terminal/limit-text.ts";
import { fields, table } from "../../terminal/table.ts";
import { resetBalances, topUpBalances } from "../balances.ts";
import { listEntities } from "./entity-list.ts";
import { ENTITY_SHAPE, entityJson } from "./entity-text.ts";
import { flagCommands, ownerText } from "./flag-commands.ts";
import { limitCommands, resourcesCommand } from "./limit-commands.ts";

const ID = { name: "<id>", text: "the entity: a tenant, a project, a key, a user" } as const;
const LIMITED_ID = { name: "<id>", text: "the entity" } as const;

interface CreateOptions extends PrincipalOptions {
  readonly displayName?: string;
  readonly parent?: string;
  readonly allowMissingParent?: boolean;
  readonly cascade: boolean;
  readonly metadata?: Readonly<Record<string, JsonValue>>;
}

const create = leaf<CreateOptions>({
  name: "create",
  summary: "creates an entity",
  details: "Limits apply to any id. Create an entity to give it a parent, a name or metadata.",
  arguments: [ID],
  options: [
    { flags: "--display-name <name>", text: "a name for people (else the id)" },
    { flags: "--parent <id>", text: "the entity it belongs to, which must exist" },
    { flags: "--allow-missing-parent", text: "the parent may come later" },
    { flags: "--cascade", text: "acquires consume from the parent too", default: false },
    { flags: "--no-cascade", text: "acquires consume from the entity only (default)" },
    { flags: "--metadata <json>", text: "a JSON object to keep with it", parse: jsonObject },
    PRINCIPAL_OPTION,
  ],
  store: "write",
  examples: ["entity create project-1", "entity create key-1 --parent project-1 --cascade"],
  json: ENTITY_SHAPE,
  run: async ({ args: [id = ""], options, open, terminal, hint }) => {
    const { displayName, parent, cascade, metadata, allowMissingParent } = options;
    const { entities } = await open();
    const fields = { name: displayName, parentId: parent, metadata, allowMissingParent };
    const by = principalOf(options);
    const entity = await entities
      .create({ id, cascade, ...defined(fields), ...by })
      .catch((error: unknown) => {
        if (!(error instanceof EntityNotFoundError)) throw error;
        const command = hint("entity", "create", error.entityId);
        throw new CommandFailure(
          `There is no entity "${error.entityId}" to be the parent. Check the id, create it with: ` +
            `${command}, or pass --allow-missing-parent`,
          1,
          { cause: error },
        );
      });
    return {
      json: () => entityJson(entity),
      text: () => `Created ${id}\n${describe(entity, terminal.palette.faint)}`,
    };
  },
});

const show = leaf({
  name: "show",
  summary: "shows an entity",
  arguments: [ID],
  store: "read",
  json: ENTITY_SHAPE,
  run: async ({ args: [id = ""], open, terminal, hint }) => {
    const entity = await (await open()).entities.get(id);
    if (entity === undefined) {
      const command = hint("entity", "create", id);
      throw new CommandFailure(`There is no entity "${id}". Create it with: ${command}`);
    }
    return {
      json: () => entityJson(entity),
      text: () => `${terminal.palette.title(id)}\n${describe(entity, terminal.palette.faint)}`,
    };
  },
});

const remove = leaf<PrincipalOptions>({
  name: "delete",
  summary: "removes an entity with its limits, balances and usage; its audit log stays",
  arguments: [ID],
  options: [PRINCIPAL_OPTION],
  store: "change",
  confirms: true,
  json: { id: "text", deleted: "boolean" },
  run: async ({ args: [id = ""], options, open, agree, note, hint }) => {
    const repository = await open();
    const { keyIdsOf } = await import("@zae-limiter/gateway/keys.ts");
    const keyIds = await keyIdsOf(repository, id);
    if (keyIds.length > 0) {
      const count = counted(keyIds.length, "gateway key");
      note(`${id} has ${count}. Gateways refuse the keys of a deleted entity. Revoke them with:`);
      for (const keyId of keyIds) note(`  ${hint("gateway", "key", "revoke", keyId)}`);
    }
    await agree(`Delete ${id} with its limits, balances and usage?`, "deleted");
    const { entities } = repository;
    const known = (await entities.get(id)) !== undefined;
    await entities.delete(id, principalOf(options));
    return {
      json: () => ({ id, deleted: known }),
      text: () =>
        known ? `Deleted ${id}` : `There was no entity ${id}; its leftover data was deleted`,
    };
  },
});

const children = leaf({
  name: "children",
  summary: "lists the entities that belong to an entity",
  arguments: [ID],
  store: "read",
  json: { id: "text", children: [ENTITY_SHAPE] },
  run: async ({ args: [id = ""], open, terminal }) => {
    const found = await (await open()).entities.children(id);
    return {
      json: () => ({ id, children: found.map(entityJson) }),
      text: () => {
        if (found.length === 0) return `${id} has no children`;
        const rows = found.map(({ id: childId, name = childId, cascade }) => [
          childId,
          name,
          cascade ? "yes" : "no",
        ]);
        return table(["ENTITY", "NAME", "CASCADE"], rows, terminal.palette.faint);
      },
    };
  },
});

interface SetParentOptions extends PrincipalOptions {
  readonly parent?: string;
  /** `false` with `--no-parent`. */
  readonly none?: boolean;
}

const setParent = leaf<SetParentOptions>({
  name: "set-parent",
  summary: "gives an entity another parent, or none",
  details: "What was consumed from the old parent stays there, also by leases that are still open.",
  arguments: [ID],
  options: [
    { flags: "--parent <id>", text: "the new parent" },
    { flags: "--none", text: "remove the parent" },
    PRINCIPAL_OPTION,
  ],
  store: "change",
  examples: ["entity set-parent key-1 --parent project-2", "entity set-parent key-1 --none"],
  json: ENTITY_SHAPE,
  run: async ({ args: [id = ""], options, open, terminal }) => {
    const { parent, none } = options;
    if ((parent === undefined) === (none !== true)) {
      throw new UsageError("expected either --parent <id> or --none");
    }
    const { entities } = await open();
    const moved = await entities.setParent(id, parent ?? null, principalOf(options));
    return {
      json: () => entityJson(moved),
      text: () => `Moved ${id}\n${describe(moved, terminal.palette.faint)}`,
    };
  },
});

const limits = limitCommands<{ readonly resource: string }>({
  title: "an entity",
  wasDefaults: false,
  arguments: [LIMITED_ID],
  options: [
    {
      flags: "-r, --resource <name>",
      text: "for one resource; else for all without limits of their own",
      default: DEFAULT_RESOURCE,
    },
  ],
  setExamples: [
    "entity set-limits key-1 -l rpm:500 -l tpm:20000",
    "entity set-limits key-1 -r gpt-4 -l rpm:50",
  ],
  details: "These are the limits stored for exactly this; `peek` shows those that apply.",
  shape: { owner: { entity_id: "text", resource: "text" }, stored: LEVEL_SHAPE },
  at: (entityId, { resource }) => ({
    owner: {
      json: { entity_id: entityId, resource },
      name: resource === DEFAULT_RESOURCE ? entityId : ownerText({ entityId, resource }),
    },
    set: (records, given, by) => records.setEntity(entityId, given, { resource, ...by }),
    lost: (records, given) =>
      lostLimits(entityId, new Map([[resource, given]]), storedLevels(records)),
    get: (records) => records.level({ entityId, resource }),
    remove: async (records, by) => {
      const before = await records.getEntity(entityId, { resource });
      await records.deleteEntity(entityId, { resource, ...by });
      return before.length > 0;
    },
  }),
});

const childrenLimits = limitCommands<{ readonly resource: string }>({
  title: "the children of an entity",
  noun: "children-limits",
  wasDefaults: false,
  arguments: [LIMITED_ID],
  options: [
    {
      flags: "-r, --resource <name>",
      text: "for one resource; else for all without limits of their own",
      default: DEFAULT_RESOURCE,
    },
  ],
  setExamples: [
    "entity set-children-limits team-a -l rpm:20",
    "entity set-children-limits team-a -r @all -l rpm:20 -l tpm:50000",
  ],
  setDetails:
    "Each entity directly below it has them by itself, unless limits are stored for that entity. " +
    "The Python library does not see them.",
  shape: {
    owner: { entity_id: "text", resource: "text" },
    stored: { limits: LEVEL_SHAPE.limits },
  },
  at: (entityId, { resource }) => {
    const owner = childrenOf(entityId);
    return {
      owner: {
        json: { entity_id: entityId, resource },
        name: resource === DEFAULT_RESOURCE ? owner : ownerText({ entityId: owner, resource }),
      },
      set: (records, given, by) => records.setChildren(entityId, given, { resource, ...by }),
      lost: (records, given) =>
        lostLimits(owner, new Map([[resource, given]]), storedLevels(records)),
      get: async (records) => ({
        ...NOTHING_STORED,
        limits: await records.getChildren(entityId, { resource }),
      }),
      remove: async (records, by) => {
        const before = await records.getChildren(entityId, { resource });
        await records.deleteChildren(entityId, { resource, ...by });
        return before.length > 0;
      },
    };
  },
});

export const entity: Group = {
  name: "entity",
  summary: "entities and limits of their own",
  commands: [
    create,
    show,
    remove,
    setParent,
    children,
    ...limits,
    ...childrenLimits,
    listEntities,
    resourcesCommand({
      name: "list-resources",
      summary: "lists the resources for which entities have limits of their own",
      read: (records) => records.listEntityResources(),
      none: "No entity has limits of its own",
    }),
    resetBalances,
    topUpBalances,
    ...flagCommands({
      group: "entity",
      argument: LIMITED_ID,
      example: ["key-1", "-r", "gpt-4"],
      options: [{ flags: "-r, --resource <name>", text: "for one resource; else for all" }],
      shape: { entity_id: "text", resource: "text | null" },
      target: (entityId, { resource }) => ({ entityId, ...defined({ resource }) }),
    }),
  ],
};

function describe(entity: Entity, paint: (label: string) => string): string {
  const { id, name, metadata } = entity;
  return fields(
    [
      ...(name === undefined || name === id ? [] : [["Name", name] as const]),
      ["Parent", entity.parentId ?? "(none)"],
      ["Cascade", entity.cascade ? "yes" : "no"],
      ["Created", entity.createdAt ?? "-"],
      ...(Object.keys(metadata).length === 0
        ? []
        : [["Metadata", JSON.stringify(metadata)] as const]),
    ],
    paint,
  );
}

function jsonObject(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // The same advice as for JSON that is no object.
  }
  throw new UsageError('expected a JSON object like {"tier":"gold"}');
}
