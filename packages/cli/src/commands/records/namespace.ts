/** `namespace`: isolated sets of entities and limits in one store, from register to purge. */

import {
  EntityNotFoundError,
  NamespaceNotFoundError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkNamespace } from "@zae-limiter/limiter/domain/names.ts";
import { CommandFailure, type Group, leaf } from "../../frame/command.ts";
import { jsonOf } from "../../terminal/json.ts";
import { counted } from "../../terminal/limit-text.ts";
import { withThousands } from "../../terminal/numbers.ts";
import { fields, table } from "../../terminal/table.ts";

const NAMESPACE_SHAPE = {
  name: "text",
  namespace_id: "text",
  status: "text",
  created_at: "text",
} as const;
const ORPHAN_SHAPE = {
  namespace_id: "text",
  name: "text",
  deleted_at: "text | null",
  status: "text",
} as const;

const ID = { name: "<id>", text: "the id, as `namespace orphans` shows it" } as const;

const register = leaf({
  name: "register",
  summary: "registers namespaces; existing ones stay as they are",
  arguments: [{ name: "<names...>", text: "one or more" }],
  store: "write",
  namespaced: false,
  examples: ["namespace register tenant-a tenant-b"],
  json: { namespaces: [{ name: "text", namespace_id: "text" }] },
  run: async ({ args, openStore }) => {
    for (const name of args) checkNamespace(name);
    const ids = Object.entries(await (await openStore()).namespaces.register(...args));
    return {
      json: () => ({
        namespaces: ids.map(([name, namespaceId]) => ({ name, namespace_id: namespaceId })),
      }),
      text: () => {
        const lines = ids.map(([name, id]) => `${name}: ${id}`);
        if (lines.length === 1) return lines.join("");
        const listed = lines.map((line) => `  ${line}`).join("\n");
        return `Registered ${counted(ids.length, "namespace")}:\n${listed}`;
      },
    };
  },
});

const list = leaf({
  name: "list",
  summary: "lists the namespaces",
  store: "read",
  namespaced: false,
  json: { namespaces: [NAMESPACE_SHAPE] },
  run: async ({ openStore, terminal }) => {
    const found = await (await openStore()).namespaces.list();
    return {
      json: () => ({ namespaces: found.map((each) => jsonOf(NAMESPACE_SHAPE, { ...each })) }),
      text: () => {
        if (found.length === 0) return "There are no namespaces";
        const rows = found.map((each) => [each.name, each.namespaceId, each.createdAt]);
        return table(["NAME", "ID", "CREATED"], rows, terminal.palette.faint);
      },
    };
  },
});

const show = leaf({
  name: "show",
  summary: "shows a namespace",
  arguments: [{ name: "<name>", text: "the namespace" }],
  store: "read",
  namespaced: false,
  json: NAMESPACE_SHAPE,
  run: async ({ args: [name = ""], openStore, terminal, storeHint }) => {
    const { namespaces } = await openStore();
    const found = await namespaces.get(name);
    if (found === undefined) {
      const orphan = (await namespaces.orphans()).find(({ namespace }) => namespace === name);
      if (orphan === undefined) throw new NamespaceNotFoundError(name);
      throw new CommandFailure(
        `The namespace "${name}" was deleted. Recover it with: ` +
          storeHint("namespace", "recover", orphan.namespaceId),
      );
    }
    const { palette } = terminal;
    return {
      json: () => jsonOf(NAMESPACE_SHAPE, { ...found, name }),
      text: () => {
        const rows = [
          ["Id", found.namespaceId],
          ["Status", found.status],
          ["Created", found.createdAt],
        ] as const;
        return `${palette.title(name)}\n${fields(rows, palette.faint)}`;
      },
    };
  },
});

const remove = leaf({
  name: "delete",
  summary: "deletes the name of a namespace; its data stays until it is purged",
  arguments: [{ name: "<name>", text: "the namespace" }],
  store: "change",
  namespaced: false,
  confirms: true,
  json: { name: "text", namespace_id: "text | null", deleted: "boolean" },
  run: async ({ args: [name = ""], openStore, agree, storeHint }) => {
    checkNamespace(name);
    await agree(`Delete the namespace ${name}? It can be recovered until it is purged.`, "deleted");
    const { namespaces } = await openStore();
    const namespaceId = (await namespaces.get(name))?.namespaceId;
    await namespaces.delete(name);
    return {
      json: () => ({
        name,
        namespace_id: namespaceId ?? null,
        deleted: namespaceId !== undefined,
      }),
      text: () =>
        namespaceId === undefined
          ? `There was no namespace ${name}`
          : `Deleted ${name}. Recover it with: ${storeHint("namespace", "recover", namespaceId)}`,
    };
  },
});

const recover = leaf({
  name: "recover",
  summary: "restores the name of a deleted namespace",
  arguments: [ID],
  store: "change",
  namespaced: false,
  json: { name: "text", namespace_id: "text" },
  run: async ({ args: [id = ""], openStore, storeHint }) => {
    const { namespaces } = await openStore();
    const name = await namespaces.recover(id).catch((error: unknown) => {
      if (!(error instanceof EntityNotFoundError)) throw error;
      const command = storeHint("namespace", "orphans");
      throw new CommandFailure(
        `No namespace has the id "${id}". List deleted ones with: ${command}`,
      );
    });
    return { json: () => ({ name, namespace_id: id }), text: () => `Recovered ${name}: ${id}` };
  },
});

const orphans = leaf({
  name: "orphans",
  summary: "lists the deleted namespaces that still have data",
  store: "read",
  namespaced: false,
  json: { orphans: [ORPHAN_SHAPE] },
  run: async ({ openStore, terminal }) => {
    const { namespaces } = await openStore();
    const found = [
      ...(await namespaces.orphans()).map((orphan) => ({ ...orphan, status: "deleted" })),
      ...(await namespaces.purging()).map((orphan) => ({ ...orphan, status: "purging" })),
    ];
    return {
      json: () => ({
        orphans: found.map((orphan) => jsonOf(ORPHAN_SHAPE, { ...orphan, name: orphan.namespace })),
      }),
      text: () => {
        if (found.length === 0) return "No deleted namespace has data left";
        const columns = ["ID", "NAME", "DELETED", "STATUS"];
        const rows = found.map((orphan) => [
          orphan.namespaceId,
          orphan.namespace,
          orphan.deletedAt ?? "-",
          orphan.status,
        ]);
        return table(columns, rows, terminal.palette.faint);
      },
    };
  },
});

const purge = leaf({
  name: "purge",
  summary: "removes everything in a deleted namespace, for good",
  details: "It may be repeated after it was interrupted. A namespace has to be deleted first.",
  arguments: [ID],
  store: "change",
  namespaced: false,
  confirms: true,
  json: { namespace_id: "text", records_deleted: "number" },
  run: async ({ args: [id = ""], openStore, agree, progress }) => {
    await agree(`Purge ${id}? Its data is then gone for good.`, "purged");
    const { namespaces } = await openStore();
    let count = 0;
    await namespaces.purge(id, {
      onProgress: ({ deleted }) => {
        count = deleted;
        progress(`Purging ${id}: ${withThousands(deleted)} records deleted`);
      },
    });
    return {
      json: () => ({ namespace_id: id, records_deleted: count }),
      text: () => `Purged ${id}: ${counted(count, "record")} deleted`,
    };
  },
});

export const namespace: Group = {
  name: "namespace",
  summary: "isolated sets of entities and limits in one store",
  commands: [register, list, show, remove, recover, orphans, purge],
};
