/** Namespaces for the page: the list, and their life cycle. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { NamespacesJson } from "./wire.ts";

export async function allNamespaces({ namespaces }: Repository): Promise<NamespacesJson> {
  const [active, deleted, purging] = await Promise.all([
    namespaces.list(),
    namespaces.orphans(),
    namespaces.purging(),
  ]);
  const gone = (status: string) => (orphan: (typeof deleted)[number]) => ({
    name: orphan.namespace,
    namespaceId: orphan.namespaceId,
    status,
    since: orphan.deletedAt ?? null,
  });
  return {
    namespaces: [
      ...active.map(({ name, namespaceId, status, createdAt }) => ({
        name,
        namespaceId,
        status,
        since: createdAt,
      })),
      ...deleted.map(gone("deleted")),
      ...purging.map(gone("purging")),
    ],
  };
}

/** Registers, deletes, recovers or purges a namespace. */
export async function changeNamespace({ namespaces }: Repository, body: unknown): Promise<void> {
  const { action, name, namespaceId } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (action === "register") await namespaces.register(name as string);
  else if (action === "delete") await namespaces.delete(name as string);
  else if (action === "recover") await namespaces.recover(namespaceId as string);
  else if (action === "purge") await namespaces.purge(namespaceId as string);
  else {
    const actions = "register, delete, recover or purge";
    throw new ValidationError("action", action, `expected ${actions}, got ${String(action)}`);
  }
}
